//! The ledger: who owes how much delay. Plain logic over numbers; the time comes in as an argument.
//!
//! # The model
//!
//! Real time `t` is CLOCK_MONOTONIC. **D(t)** is the delay that the whole program owes so far; it
//! grows only while an experiment with a speedup above zero runs and something is inside the
//! target. Every *participant* - a thread while it runs, a task while it waits - has its own **L**,
//! the delay that it has already taken. Its virtual time is `v = t - L`; the global virtual clock
//! is `V = t - D`. All rules follow from one idea: *a participant's virtual time moves as its real
//! time would have moved had the target really been faster.*
//!
//! | event | rule | here |
//! |---|---|---|
//! | runs `dt` outside the target | `L` unchanged | |
//! | runs `dt` inside the target | `L += s dt`, `D = max(D, L)` | [`Ledger::enter`], [`Ledger::exit`]; sampled: [`Ledger::credit`] |
//! | is behind (`L < D`) | pauses for `D - L` | [`Ledger::lag`], [`Ledger::took`], [`Ledger::lagging`] |
//! | task A wakes task B | `v_B = max(v_B at its park, v_A)` | [`Parked::woken_by`] |
//! | timer or socket wakes B | `L_B` unchanged | [`Parked::woken_outside`] |
//! | the wait itself is the target | `L_B += s waited`, `D = max(D, L_B)` | [`Ledger::begin_wait`], [`Ledger::end_wait`] |
//! | a thread was idle, or blocked by another thread | `L = min(D, L + idle)` | [`Ledger::absorb`] |
//! | and another one, whose L was `m`, had got it going | `L = max(L, min(m, L + idle))`, and it pays the rest | [`Ledger::inherit`] |
//! | a thread waited for a processor behind one whose L was `m` | `L = max(L, min(m, L + waited))` | [`Ledger::inherit`] |
//! | anyone reads D while a target runs | the greatest of D and every `L(t)` inside | [`Ledger::global_delay`] |
//! | a message of another process comes, whose sender had taken M | `D = max(D, M)`, and `v = max(v at its park, now - M)` for who waited for it | [`Ledger::raise`], [`Ledger::absorb_message`] |
//! | A spawns B | `v_B = v_A` | the spawner's `v` is B's first ready time |
//! | B's ready time is ahead of V | B is deferred | [`Ledger::time_until_due`], [`Ledger::join`] |
//!
//! Credit (`L > D`) is what a pause overshot; it is kept and used up by later growth of D.
//!
//! # Between experiments
//!
//! With `s = 0` nothing grows and everything is plain passing time, so experiments follow each
//! other. What a participant still owes when the next one [begins](Ledger::begin) is forgiven: a
//! participant that waited through several experiments (an idle connection) must not be held back
//! for all their delays at once. So nothing is ever held for longer than D grew in one experiment.
//!
//! # Threads and orderings
//!
//! An [`Account`] is written only by the thread that it belongs to, but for what samples add.
//! Others read it to learn D while that thread is inside the target; `since` serves as a sequence
//! number (`Ledger::taken_inside`). D itself only rises, by `fetch_max`. All accesses are SeqCst
//! but for those that say otherwise.

mod account;
mod accounts;
#[cfg(all(test, loom))]
mod model;
mod parked;
mod remote;
#[cfg(test)]
mod tests;
mod waits;
mod watched_poll;

pub use account::{ACCOUNTS, Account};
pub use parked::Parked;
pub use remote::Stamp;
pub use waits::TargetWait;

use crate::cache_padded::CachePadded;
use crate::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use crate::sync::{Mutex, const_fn};
use crate::time::{Nanos, Real, Speedup, Virtual};
use account::OUTSIDE;
use accounts::Accounts;
use remote::Shared;
use waits::{Lines, NO_LINE};

/// `ended` of an experiment that still runs.
const RUNNING: i64 = i64::MAX;

/// The ledger of one program.
#[derive(Debug)]
pub struct Ledger {
    read: CachePadded<Read>,
    /// Number of the running or last experiment.
    experiment: AtomicU32,
    /// When that experiment ended, or [`RUNNING`]; nothing is credited past it.
    ended: AtomicI64,
    /// Nothing is credited past it. See [`Ledger::known_until`].
    known: AtomicI64,
    lines: Mutex<Lines>,
    /// The slope of the lines, ppm.
    slope: AtomicU32,
    /// Where other processes take part.
    shared: Shared,
    accounts: Accounts,
}

/// Fields that every poll reads, on one cache line: nobody reads one of them alone.
#[derive(Debug)]
struct Read {
    /// D as of the last exit from the target.
    owed: AtomicI64,
    /// Threads inside the target.
    inside: AtomicUsize,
    /// The highest of `lines`, or [`NO_LINE`].
    top_line: AtomicI64,
    /// D when the running experiment began: nobody owes older debts.
    floor: AtomicI64,
    /// The running experiment's speedup, ppm; 0 between experiments.
    speedup: AtomicU32,
    /// 1 while an experiment runs or a baseline is held, else 0.
    held: AtomicU32,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    const_fn! {
    /// A ledger on which nobody owes anything.
    pub fn new() -> Ledger {
        Ledger {
            read: CachePadded::new(Read {
                owed: AtomicI64::new(0),
                inside: AtomicUsize::new(0),
                top_line: AtomicI64::new(NO_LINE),
                floor: AtomicI64::new(0),
                speedup: AtomicU32::new(0),
                held: AtomicU32::new(0),
            }),
            experiment: AtomicU32::new(0),
            ended: AtomicI64::new(i64::MIN),
            known: AtomicI64::new(Real::NEVER.0),
            lines: Mutex::new(Lines::new()),
            slope: AtomicU32::new(0),
            shared: Shared::new(),
            accounts: Accounts::new(),
        }
    }
    }

    /// Begins an experiment with this speedup and returns D. What is still owed from earlier ones
    /// is forgiven. The one before must have [ended](Ledger::end).
    pub fn begin(&self, speedup: Speedup, now: Real) -> Nanos {
        let owed = self.global_delay(now);
        self.read.floor.store(owed.0, SeqCst);
        self.slope.store(speedup.ppm(), SeqCst);
        self.shared.begin(now);
        self.experiment.fetch_add(1, SeqCst);
        self.ended.store(RUNNING, SeqCst);
        self.read.speedup.store(speedup.ppm(), SeqCst);
        self.read.held.store(1, SeqCst);
        owed
    }

    /// Ends the experiment and returns D. What is inside the target is credited up to `now` and no
    /// further. Nothing happens when it has ended already.
    pub fn end(&self, now: Real) -> Nanos {
        let mut lines = self.lines();
        if self.ended.load(SeqCst) == RUNNING {
            self.read.owed.fetch_max(self.global_delay(now).0, SeqCst);
            lines.clear();
            self.publish_top(&lines);
            self.read.speedup.store(0, SeqCst);
            self.read.held.store(0, SeqCst);
            self.ended.store(self.credited(now).0, SeqCst);
        }
        self.global_delay(now)
    }

    /// Until `limit` the program is known to run. Nothing is credited past that, so that D does not
    /// grow while the program is stopped or has no processor: whoever knows moves the limit on as
    /// long as it runs. At first there is none, [`Real::NEVER`].
    pub fn known_until(&self, limit: Real) {
        self.known.store(limit.0, SeqCst);
    }

    /// The instant up to which time is credited at `now`.
    fn credited(&self, now: Real) -> Real {
        Real(now.0.min(self.ended.load(SeqCst)).min(self.known.load(SeqCst)))
    }

    /// Ends the experiment in a child of fork, where the threads of all accounts but one are gone:
    /// nobody is inside the target any more, and all debts are forgiven. Takes no lock and
    /// allocates nothing.
    pub fn reset_after_fork(&self) {
        self.read.speedup.store(0, SeqCst);
        self.ended.store(i64::MIN, SeqCst);
        self.read.held.store(0, SeqCst);
        self.read.top_line.store(NO_LINE, SeqCst);
        for account in self.accounts.opened() {
            account.since.store(OUTSIDE, SeqCst);
            account.runs_as.store(0, Relaxed);
        }
        self.read.inside.store(0, SeqCst);
        self.read.floor.store(self.read.owed.load(SeqCst), SeqCst);
    }

    /// The speedup of the running experiment; zero between experiments.
    #[inline]
    pub fn speedup(&self) -> Speedup {
        // Relaxed: a thread that sees the change a moment later enters the target a moment later.
        Speedup::from_ppm(self.read.speedup.load(Relaxed))
    }

    /// Whether an experiment runs, or a baseline is held. What experiments alone ask the kernel for
    /// is asked in baselines too: what it costs is on both sides of a comparison then.
    #[inline]
    pub fn is_held(&self) -> bool {
        // Relaxed, as in `speedup`.
        self.read.held.load(Relaxed) != 0
    }

    /// The running or last experiment.
    pub(crate) fn experiment(&self) -> u32 {
        self.experiment.load(SeqCst)
    }

    /// The speedup of the running or last experiment.
    pub(crate) fn slope(&self) -> Speedup {
        Speedup::from_ppm(self.slope.load(SeqCst))
    }

    /// D when the running experiment began. Nobody's L counts as less.
    #[inline]
    pub fn forgiven_delay(&self) -> Nanos {
        Nanos(self.read.floor.load(SeqCst))
    }

    /// D(now): what the whole program owes, the greatest of the stored D and of every L that grows
    /// at the moment.
    #[inline]
    pub fn global_delay(&self, now: Real) -> Nanos {
        // D last: what left the target before it was seen to be empty has raised D.
        if self.is_at_rest() {
            Nanos(self.read.owed.load(SeqCst))
        } else {
            self.owed_while_growing(now)
        }
    }

    #[cold]
    #[inline(never)]
    fn owed_while_growing(&self, now: Real) -> Nanos {
        let mut owed = i64::MIN;
        if self.read.inside.load(SeqCst) > 0 {
            owed = owed.max(self.greatest_inside(now));
        }
        let line = self.read.top_line.load(SeqCst);
        if line != NO_LINE {
            owed = owed.max(line + self.slope().of(Nanos(self.credited(now).0)).0);
        }
        // Last: whoever was seen outside has raised it before.
        Nanos(owed.max(self.read.owed.load(SeqCst)))
    }

    /// The greatest L(now) of the threads inside the target.
    fn greatest_inside(&self, now: Real) -> i64 {
        let inside = self.accounts.opened().filter_map(|account| self.taken_inside(account, now));
        inside.max().map_or(i64::MIN, |taken| taken.0)
    }

    /// D(now), less what it would have grown by while threads inside the target had no processor:
    /// `stopped` tells for how long that was, of one that entered at an instant. Only those are
    /// asked for that D depends on.
    pub(crate) fn global_delay_less(
        &self,
        now: Real,
        stopped: impl Fn(&Account, Real) -> Nanos,
    ) -> Nanos {
        if self.read.top_line.load(SeqCst) != NO_LINE {
            return self.global_delay(now);
        }
        let inside = self.accounts.opened().filter(|it| it.since.load(SeqCst) != OUTSIDE);
        let mut owed = Nanos(self.read.owed.load(SeqCst));
        for account in inside {
            if self.local_delay(account, now) > owed {
                owed = owed.max(self.local_delay_less(account, now, &stopped));
            }
        }
        // Last: whoever was seen outside has raised it before.
        owed.max(Nanos(self.read.owed.load(SeqCst)))
    }

    /// L(now) of a thread, less what it would have grown by while it had no processor inside the
    /// target, as `stopped` tells. Never less than as it entered.
    pub(crate) fn local_delay_less(
        &self,
        account: &Account,
        now: Real,
        stopped: impl Fn(&Account, Real) -> Nanos,
    ) -> Nanos {
        let taken = self.local_delay(account, now);
        let since = account.since.load(SeqCst);
        let is_expected = account.until.load(SeqCst) != Real::NEVER.0;
        if since == OUTSIDE || is_expected {
            return taken;
        }
        let speedup = Speedup::from_ppm(account.speedup.load(SeqCst));
        let least = account.base().max(self.forgiven_delay());
        (taken - speedup.of(stopped(account, Real(since)))).max(least)
    }

    /// V at `now`.
    #[inline]
    pub fn virtual_now(&self, now: Real) -> Virtual {
        now.less(self.global_delay(now))
    }

    /// How far `ready` is ahead of V, positive when a task that is ready then must be deferred.
    #[inline]
    pub fn time_until_due(&self, ready: Virtual, now: Real) -> Nanos {
        ready - self.virtual_now(now)
    }

    /// Opens an account for a thread that starts now, owing nothing. `None` when all are taken.
    pub fn open(&self, now: Real) -> Option<&Account> {
        let account = self.accounts.take()?;
        account.sampled.store(0, SeqCst);
        account.taken.store(self.global_delay(now).0, SeqCst);
        Some(account)
    }

    /// Closes an account whose thread ends. If it is inside the target it leaves it.
    pub fn close(&self, account: &Account, now: Real) {
        self.exit(account, now, Nanos(i64::MAX));
        account.set_runs_as(0);
        account.open.store(false, SeqCst);
    }

    /// The thread enters the target. Nothing happens between experiments, or when it is inside
    /// already.
    pub fn enter(&self, account: &Account, now: Real) {
        if account.since.load(SeqCst) != OUTSIDE && account.until.load(SeqCst) != Real::NEVER.0 {
            // It was expected inside another target, of an experiment that has ended.
            self.settle(account, Nanos::ZERO, now);
        }
        self.enter_at(account, self.speedup(), now, Real::NEVER);
    }

    /// From `now` until `until` the thread is expected to be inside the target for `inside`, as far
    /// as its samples tell: so L of it grows to those who read D, until it [is
    /// known](Ledger::settle) how far it has come. Nothing happens between experiments, or when it
    /// is inside.
    pub fn expect(&self, account: &Account, inside: Nanos, now: Real, until: Real) {
        let ppm = i128::from(inside.0) * 1_000_000 / i128::from((until - now).0.max(1));
        let part = Speedup::from_ppm(u32::try_from(ppm).unwrap_or(0).min(1_000_000));
        let saved = part.of(Nanos(i64::from(self.speedup().ppm())));
        let speedup = Speedup::from_ppm(u32::try_from(saved.0).unwrap_or(0));
        self.enter_at(account, speedup, now, until);
    }

    /// Since it was [expected](Ledger::expect) to be, if it was, the thread has been inside the
    /// target for `inside`. Returns by how much L grew.
    pub fn settle(&self, account: &Account, inside: Nanos, now: Real) -> Nanos {
        let since = account.since.load(SeqCst);
        if since == OUTSIDE {
            self.credit(account, inside)
        } else {
            let inside = inside.min(Nanos(self.credited(now).0 - since)).max(Nanos::ZERO);
            let counts = account.experiment.load(SeqCst) == self.experiment.load(SeqCst);
            self.leave(account, counts.then(|| self.slope().of(inside)))
        }
    }

    fn enter_at(&self, account: &Account, speedup: Speedup, now: Real, until: Real) {
        if speedup == Speedup::ZERO || account.since.load(SeqCst) != OUTSIDE {
            return;
        }
        self.update(account, now, |taken| taken);
        account.speedup.store(speedup.ppm(), SeqCst);
        account.until.store(until.0, SeqCst);
        account.experiment.store(self.experiment.load(SeqCst), SeqCst);
        self.read.inside.fetch_add(1, SeqCst);
        account.since.store(now.0, SeqCst);
    }

    /// The thread leaves the target, having really run for `ran` of the time since it entered (the
    /// rest it was preempted). `L += s ran`, `D = max(D, L)`. Returns by how much L grew. Nothing
    /// happens when it is not inside.
    pub fn exit(&self, account: &Account, now: Real, ran: Nanos) -> Nanos {
        let since = account.since.load(SeqCst);
        if since == OUTSIDE {
            return Nanos::ZERO;
        }
        let grown = self.grown_inside(account, since, now);
        let ran = Speedup::from_ppm(account.speedup.load(SeqCst)).of(ran);
        self.leave(account, grown.map(|grown| grown.min(ran)))
    }

    /// The thread leaves the target, where its L has `grown`. `None` if that was in an earlier
    /// experiment. Returns by how much L grew.
    fn leave(&self, account: &Account, grown: Option<Nanos>) -> Nanos {
        let grown = grown.unwrap_or(Nanos::ZERO);
        let before = account.taken.load(SeqCst);
        let taken = before + grown.0;
        if taken != before {
            // D rises before the account is left, so that readers never see it fall. The account is
            // left before its L rises, so that they never see one that counts twice.
            self.read.owed.fetch_max(taken + account.sampled.load(SeqCst), SeqCst);
        }
        account.since.store(OUTSIDE, SeqCst);
        if taken != before {
            account.taken.store(taken, SeqCst);
        }
        self.read.inside.fetch_sub(1, SeqCst);
        grown
    }

    /// L(now) of a thread.
    #[inline]
    pub fn local_delay(&self, account: &Account, now: Real) -> Nanos {
        self.taken_inside(account, now).unwrap_or_else(|| account.base()).max(self.forgiven_delay())
    }

    /// L(now) of a thread; if it entered the target no longer than `within` ago, as it did.
    pub(crate) fn taken_as_entered(&self, account: &Account, within: Nanos, now: Real) -> Nanos {
        let since = account.since.load(SeqCst);
        if since == OUTSIDE || now.0 - since > within.0 {
            return self.local_delay(account, now);
        }
        account.base().max(self.forgiven_delay())
    }

    /// The owner sets L of its account, outside the target.
    #[inline]
    fn update(&self, account: &Account, now: Real, new: impl FnOnce(Nanos) -> Nanos) {
        // The same `sampled` on both sides: what the sampler adds meanwhile stays added.
        let sampled = account.sampled.load(SeqCst);
        let base = self
            .taken_inside(account, now)
            .unwrap_or_else(|| Nanos(account.taken.load(SeqCst) + sampled))
            .max(self.forgiven_delay());
        let taken = new(base).0 - sampled;
        // A SeqCst store waits until all stores before it are out, and most often nothing changes.
        if taken != account.taken.load(SeqCst) {
            account.taken.store(taken, SeqCst);
        }
    }

    /// A sample found the thread inside the target: it is credited with `ran` there.
    /// Async-signal-safe: from the thread itself, or the handler that interrupted it anywhere.
    /// Returns by how much L grew.
    pub fn credit(&self, account: &Account, ran: Nanos) -> Nanos {
        let saved = self.speedup().of(ran);
        if saved > Nanos::ZERO {
            // What was forgiven at the begin of the experiment is forgiven here too.
            let below_floor = (self.forgiven_delay() - account.base()).max(Nanos::ZERO);
            account.sampled.fetch_add((below_floor + saved).0, SeqCst);
            self.read.owed.fetch_max(account.base().0, SeqCst);
        }
        saved.max(Nanos::ZERO)
    }

    /// L(now) of a thread that is inside the target, from any thread. `None` when it is outside, or
    /// on its way.
    ///
    /// `since` is the sequence number of what was stored beside it: it is [`OUTSIDE`] while the
    /// owner writes, and no two entries of one thread have the same, since the clock moves between
    /// them.
    #[inline]
    fn taken_inside(&self, account: &Account, now: Real) -> Option<Nanos> {
        let since = account.since.load(SeqCst);
        if since == OUTSIDE { None } else { self.taken_since(account, since, now) }
    }

    /// L(now) of a thread that entered the target at `since`, from any thread. `None` when it is
    /// outside by now, or on its way.
    #[cold]
    #[inline(never)]
    fn taken_since(&self, account: &Account, since: i64, now: Real) -> Option<Nanos> {
        let grown = self.grown_inside(account, since, now)?;
        let taken = account.base();
        (account.since.load(SeqCst) == since).then_some(taken + grown)
    }

    /// By how much L of a thread grew that entered at `since`. `None` when it entered in an earlier
    /// experiment: what it saved there is forgiven.
    fn grown_inside(&self, account: &Account, since: i64, now: Real) -> Option<Nanos> {
        if account.experiment.load(SeqCst) != self.experiment.load(SeqCst) {
            return None;
        }
        let until = self.credited(now).0.min(account.until.load(SeqCst));
        Some(Speedup::from_ppm(account.speedup.load(SeqCst)).of(Nanos((until - since).max(0))))
    }

    /// The thread's virtual time.
    #[inline]
    pub fn virtual_of(&self, account: &Account, now: Real) -> Virtual {
        now.less(self.local_delay(account, now))
    }

    /// Delay that the thread owes, `D - L`: it pauses for as long before it acts on others.
    /// Negative: credit.
    pub fn lag(&self, account: &Account, now: Real) -> Nanos {
        self.global_delay(now) - self.local_delay(account, now)
    }

    /// Delay that the thread owes, if that does not change with time: nothing grows, and the thread
    /// is outside the target. As [`debt`](Ledger::lag), without a clock.
    #[inline]
    pub fn lag_at_rest(&self, account: &Account) -> Option<Nanos> {
        self.at_rest(account).map(|(debt, _)| debt)
    }

    /// Delay that the thread owes and delay that it has taken, if neither changes with time.
    #[inline]
    pub(crate) fn at_rest(&self, account: &Account) -> Option<(Nanos, Nanos)> {
        // D last: what left the target before it was seen to be empty has raised D.
        let at_rest = self.is_at_rest() && account.since.load(SeqCst) == OUTSIDE;
        at_rest.then(|| {
            let taken = account.base().max(self.forgiven_delay());
            (Nanos(self.read.owed.load(SeqCst)) - taken, taken)
        })
    }

    /// Whether D stands still at the moment: nothing is in the target.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        self.read.inside.load(SeqCst) == 0 && self.read.top_line.load(SeqCst) == NO_LINE
    }

    /// All accounts that a thread has or had.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.opened()
    }

    /// The names of the owners that run, not known to be inside the target, and owe more than
    /// `least`.
    pub fn lagging(&self, least: Nanos, now: Real) -> impl Iterator<Item = i32> {
        let owed = self.global_delay(now);
        self.accounts.opened().filter_map(move |account| {
            let name = account.runs_as.load(Relaxed);
            (name != 0
                && (account.since.load(SeqCst) == OUTSIDE
                    || account.until.load(SeqCst) != Real::NEVER.0)
                && owed - self.local_delay(account, now) > least)
                .then_some(name)
        })
    }

    /// The thread, outside the target, took `delay`: it paused for it, or spent it on what only an
    /// experiment asks for.
    pub fn took(&self, account: &Account, delay: Nanos, now: Real) {
        self.update(account, now, |taken| taken + delay);
    }

    /// The thread starts to run a task that is ready at `ready`. The two go on together, at the
    /// later of their virtual times: if the task is a little ahead, the thread owes the rest.
    #[inline]
    pub fn join(&self, account: &Account, ready: Virtual, now: Real) {
        self.update(account, now, |taken| taken.min(ready.delay_at(now)));
    }

    /// The thread, outside the target, was idle or blocked by another thread for `idle`: it
    /// absorbed as much of its debt, and no more than that.
    pub fn absorb(&self, account: &Account, idle: Nanos, now: Real) {
        let owed = self.global_delay(now);
        self.rested(account, idle, now, |taken| owed.min(taken + idle).max(taken));
    }

    /// The thread, outside the target, was idle or blocked for `idle`, until another one got it
    /// going whose L was `by`: it goes on in the virtual time of that one, if it was idle by then.
    /// If that one has credit, so has the thread: what one comes late by from its pause, all who
    /// wait for it come late by. Credit of its own it keeps: who got it going is a guess, and if
    /// that is wrong it would pay once more.
    pub fn inherit(&self, account: &Account, idle: Nanos, by: Nanos, now: Real) {
        self.rested(account, idle, now, |taken| by.min(taken + idle).max(taken));
    }

    /// The thread has rested for `idle`, and took some of it.
    fn rested(&self, account: &Account, idle: Nanos, now: Real, new: impl FnOnce(Nanos) -> Nanos) {
        let mut took = Nanos::ZERO;
        self.update(account, now, |taken| {
            let grown = new(taken);
            took = grown - taken;
            grown
        });
        if idle > took && self.is_held() {
            self.shared.keep_rest(idle - took);
        }
    }
}

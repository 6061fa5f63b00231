//! A task's clock: when the task is ready in virtual time, and until when it is held.
//!
//! # Protocol
//!
//! A wake first [writes](TaskClock::woken) when it makes the task ready, then the caller passes it
//! on to the runtime, or holds it; the poll that follows [takes](TaskClock::take_ready) what was
//! written. Passing on is what orders the two: a runtime's state transition releases in the wake
//! and acquires in the poll. So the accesses here are Relaxed, but for `due`, by which one wake is
//! passed on for another, and a wake that races with the poll that takes its time is seen by the
//! next poll, which it causes. Times can only be late by that.

use super::Model;
use crate::ledger::{Parked, TargetWait};
use crate::sync::atomic::{AtomicI64, AtomicPtr, Ordering};
use crate::time::{Nanos, Real, Virtual};
use crate::wait::Cause;
use std::ptr;

/// Source of a wake: the one answer to who woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeSource {
    /// A participant of the program, or a part of the task that is ready itself.
    Task {
        /// Its virtual time.
        at: Virtual,
        /// Cause of the wake of that one, where it passes its wake on.
        by: Cause,
    },
    /// The world outside, which is not delayed: a socket, or a timer of the kernel.
    External {
        /// When that came which the calling thread has noticed now.
        came: Real,
        /// A timer, where that is known.
        by: Cause,
    },
    /// A timer that goes by the virtual clock.
    Timer,
    /// A socket of which the program has the other end too: whoever wrote into it had paid what it
    /// owed.
    Loopback,
    /// The runtime: the task has yielded, and others had their turn.
    Runtime,
}

/// End of a wait as the poll tells that begins it, where the wake itself does not: no task runs on
/// the thread that wakes. What a poll says last is not what counts, but the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum WaitHint {
    /// A timer, or a socket to another program.
    External,
    /// A socket of which this program has the other end too.
    Loopback,
    /// The runtime, as soon as others had their turn.
    Runtime,
}

impl WaitHint {
    fn from_number(number: i64) -> WaitHint {
        match number & 3 {
            2 => WaitHint::Runtime,
            1 => WaitHint::Loopback,
            _ => WaitHint::External,
        }
    }
}

/// Effect of a wake: what the caller is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Pass the wake on: the task is ready at this virtual time.
    PassOn(Virtual),
    /// [Hold](TaskClock::hold) the wake until V gets there, or pass it on where nothing can be
    /// held: the poll is deferred then.
    Hold(Virtual),
}

/// A hold that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Until when the task was held.
    pub due: Virtual,
    /// Cause of the wake that was held.
    pub by: Cause,
    /// More came from outside meanwhile, and is due later: the task is to be held once more, for
    /// the last time before its next poll. Who is woken again and again is not held for ever.
    pub again: Option<Virtual>,
}

/// When a task parked, which whoever polls it keeps between polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parking {
    /// The task's virtual time as it parked, or was born.
    pub at: Virtual,
    /// Since when it waits, by real time; [`Real::NEVER`] before its first poll has ended.
    pub since: Real,
}

impl Parking {
    /// Of a task that is born at `at`, and was not polled yet.
    #[inline]
    pub fn born(at: Virtual) -> Parking {
        Parking { at, since: Real::NEVER }
    }
}

/// State of a task's clock as a poll of the task began.
#[derive(Clone, Copy, Debug)]
pub struct PollBegun {
    /// A wake of its own caused it.
    woken: bool,
    /// The delay that the task had taken when its wait began.
    waited: Nanos,
}

impl PollBegun {
    /// Whether a wake of the task's own caused the poll.
    #[inline]
    pub fn is_woken(&self) -> bool {
        self.woken
    }
}

/// End of a poll, as its caller saw it.
#[derive(Clone, Copy, Debug)]
pub struct PollEnded {
    /// The virtual time of the thread.
    pub at: Virtual,
    /// How long the poll lasted.
    pub lasted: Nanos,
    /// A wait began in it: it left a waker somewhere.
    pub began_wait: bool,
    /// End of the wait, as far as the poll has told.
    pub hint: WaitHint,
}

/// Nothing was written since it was last taken: [`Virtual::NEVER`] and [`Real::NEVER`].
const NOTHING: i64 = i64::MAX;

/// Takes what wakes wrote. Only polls take, one at a time: where nothing was written there is
/// nothing to swap.
#[inline]
fn take(written: &AtomicI64) -> i64 {
    if written.load(Ordering::Relaxed) == NOTHING {
        return NOTHING;
    }
    written.swap(NOTHING, Ordering::Relaxed)
}

/// Writes `time` unless an earlier one is there.
#[inline]
fn lower(written: &AtomicI64, time: i64) {
    if seldom(time >= written.load(Ordering::Relaxed)) {
        return;
    }
    written.fetch_min(time, Ordering::Relaxed);
}

/// Returns `is`, which seldom is so: the compiler puts what follows from it out of the way.
#[inline]
pub fn seldom(is: bool) -> bool {
    #[cold]
    #[inline]
    fn seldom() {}
    if is {
        seldom();
    }
    is
}

/// The clock of one task, which wakes write and polls take. One for each live task: every byte
/// counts.
#[derive(Debug)]
pub struct TaskClock {
    /// The earliest virtual time of a participant that woke the task since its last poll.
    by_task: AtomicI64,
    /// The latest real time at which the world outside woke it since its last poll.
    by_external: AtomicI64,
    /// L of the task as it parked, four times, plus its [`WaitHint`].
    taken: AtomicI64,
    /// Until when it is held, twice, plus one if it is so for the last time; [`NOTHING`] when it is
    /// not.
    due: AtomicI64,
    /// The real time of the first wake since its last poll, four times, plus its [`Cause`]. Until
    /// then [`NOTHING`], or, below zero, since when it waits, where that was written down. Without
    /// locked instructions: how the wait ended of a wake that comes just as a poll begins may not
    /// be counted. When the task is ready is what the others say.
    woken: AtomicI64,
    /// The wait that is the target, if the task is in one. This owns it.
    wait: AtomicPtr<TargetWait>,
}

impl TaskClock {
    /// Of a task that has taken this delay and is ready at `ready`.
    pub fn new(taken: Nanos, ready: Virtual) -> TaskClock {
        TaskClock {
            by_task: AtomicI64::new(ready.0),
            by_external: AtomicI64::new(NOTHING),
            taken: AtomicI64::new(pack(taken, WaitHint::External)),
            due: AtomicI64::new(NOTHING),
            woken: AtomicI64::new(NOTHING),
            wait: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// L of the task as it parked, and what grew since.
    #[inline]
    pub fn local_delay(&self) -> Nanos {
        Nanos(self.taken.load(Ordering::Relaxed) >> 2)
    }

    /// End of its wait, as far as the poll told that began it.
    #[inline]
    pub fn hint(&self) -> WaitHint {
        WaitHint::from_number(self.taken.load(Ordering::Relaxed))
    }

    /// Takes in a wake that is made at `now`. Inlined with all that it calls: the rules are
    /// constants then, and of the sources only that is left which the caller has.
    #[inline(always)]
    pub fn woken(&self, model: Model<'_>, source: WakeSource, now: Real) -> Effect {
        let v = || model.ledger.virtual_now(now);
        match source {
            WakeSource::Task { at, by } => self.is_ready(model, at, now, (now, by)),
            WakeSource::External { came, by } => self.external(model, came, by, now),
            WakeSource::Timer => self.is_ready(model, v(), now, (now, Cause::Timer)),
            WakeSource::Loopback => self.is_ready(model, v(), now, (now, Cause::Task)),
            // Ready since it parked: it waited for nobody, and was in the run queue all the time.
            WakeSource::Runtime => {
                self.is_ready(model, Virtual(i64::MIN), now, (Real(0), Cause::Task))
            }
        }
    }

    /// The task is ready at `at`. Its wait is over at `now`; `woken` is what is counted of that.
    #[inline(always)]
    fn is_ready(&self, model: Model<'_>, at: Virtual, now: Real, woken: (Real, Cause)) -> Effect {
        self.end_wait(model, now);
        self.set_woken(woken.0, woken.1);
        lower(&self.by_task, at.0);
        Effect::PassOn(at)
    }

    /// The world outside woke the task by what came at `came` and was noticed at `now`. A wait that
    /// is the target ended as it came.
    #[inline(always)]
    fn external(&self, model: Model<'_>, came: Real, by: Cause, now: Real) -> Effect {
        self.end_wait(model, came);
        self.set_woken(now, by);
        self.set_by_external(model, came);
        let due = came.less(self.local_delay().max(model.ledger.forgiven_delay()));
        if seldom(model.is_early(due, now)) { Effect::Hold(due) } else { Effect::PassOn(due) }
    }

    /// The world outside woke the task at `came`. It can't be kept from seeing, once it is polled,
    /// what has come by then: `join!` needs both answers, and may not have the second one before
    /// that is due. So it is ready when the latest is.
    #[inline(always)]
    fn set_by_external(&self, model: Model<'_>, came: Real) {
        let raised = model.rules.raised_holds;
        let other = |at: i64| {
            let is_past = at == NOTHING || if raised { at < came.0 } else { came.0 < at };
            is_past.then_some(came.0)
        };
        self.by_external.fetch_update(Ordering::Relaxed, Ordering::Relaxed, other).ok();
    }

    /// When the wakes since the last call make a task ready that parked at `at`. [`Virtual::NEVER`]
    /// without any.
    #[inline]
    pub fn take_ready(&self, model: Model<'_>, at: Virtual) -> Virtual {
        let by_task = Virtual(take(&self.by_task));
        let by_external = Real(take(&self.by_external));
        // The delay that it has taken by now: a wait that is the target adds to it.
        let parked = Parked { at, taken: self.local_delay() };
        let mut ready = Virtual::NEVER;
        if by_task != Virtual::NEVER {
            ready = parked.woken_by(by_task);
        }
        if by_external != Real::NEVER {
            ready = ready.min(parked.woken_outside(by_external, model.ledger.forgiven_delay()));
        }
        ready
    }

    /// When and by what the task was first woken since the last call.
    #[inline]
    pub fn take_woken(&self) -> Option<(Real, Cause)> {
        let woken = self.woken.load(Ordering::Relaxed);
        if woken != NOTHING {
            // No swap, which costs as much as all the rest here: of a wake that comes at this very
            // moment it is not counted how the wait ended.
            self.woken.store(NOTHING, Ordering::Relaxed);
        }
        (0..NOTHING).contains(&woken).then_some((Real(woken >> 2), cause(woken)))
    }

    /// Since when the task waits, where that was written down and no wake has come since.
    #[inline]
    pub fn waits_since(&self) -> Option<Real> {
        let woken = self.woken.load(Ordering::Relaxed);
        (woken < 0).then_some(Real(-woken))
    }

    /// The task was woken at `now`; counted if it is the first time since its last poll.
    #[inline]
    pub fn set_woken(&self, now: Real, by: Cause) {
        let woken = (now.0 << 2) | by as i64;
        let before = self.woken.load(Ordering::Relaxed);
        if seldom((0..NOTHING).contains(&before)) {
            return;
        }
        // Of two that come at the same moment either is the first.
        self.woken.store(woken, Ordering::Relaxed);
    }

    /// Begins a poll of the task, on a thread that has taken this delay; `woken` says whether a
    /// wake of its own caused it.
    #[inline]
    pub fn poll_begun(&self, taken: Nanos, woken: bool) -> PollBegun {
        let waited = self.local_delay();
        self.taken.store(pack(taken, WaitHint::External), Ordering::Relaxed);
        PollBegun { woken, waited }
    }

    /// Ends a poll that ends pending at `now`: the task parks.
    ///
    /// A poll without a wake of its own changed nothing here: what the task waits for goes on since
    /// it parked before. So it does where the poll began no wait, and did hardly anything: of two
    /// answers that a `join!` waits for the first has come. The task's clock has gone on then, but
    /// what else it waits for has done so since it parked first.
    #[inline]
    pub fn poll_ended(
        &self,
        model: Model<'_>,
        begun: PollBegun,
        parking: &mut Parking,
        ended: PollEnded,
        now: Real,
    ) {
        if begun.woken {
            let goes_on = model.rules.ongoing_waits
                && !ended.began_wait
                && ended.lasted < model.rules.min_hold;
            parking.at = ended.at;
            parking.since = if goes_on { ended.at.more(begun.waited) } else { now };
        }
        let taken = parking.at.delay_at(parking.since);
        self.parks(model, parking.since, taken, ended.hint);
    }

    /// The task parks, having taken this delay, and waits since `since`.
    #[inline]
    pub fn parks(&self, model: Model<'_>, since: Real, taken: Nanos, hint: WaitHint) {
        self.taken.store(pack(taken, hint), Ordering::Relaxed);
        // Only experiments ask for it.
        if model.ledger.is_held() {
            self.waits_from(since);
        }
    }

    /// Writes down since when it waits. If it was woken already, that stays.
    pub fn waits_from(&self, since: Real) {
        self.woken.compare_exchange(NOTHING, -since.0, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    /// The task, parked, is in a wait that is the target, from `now` until its next wake or poll.
    pub fn begin_wait(&self, model: Model<'_>, now: Real) {
        if let Some(wait) = model.ledger.begin_wait(self.local_delay(), now) {
            // A wake that does not see it yet leaves it to the poll that it causes. Only polls
            // begin waits, and each has ended the one before.
            self.set_wait(Box::into_raw(Box::new(wait)));
        }
    }

    /// Ends that wait, if there is one.
    #[inline]
    pub fn end_wait(&self, model: Model<'_>, now: Real) {
        if !self.wait.load(Ordering::Relaxed).is_null() {
            self.end_wait_that_is(model, now);
        }
    }

    /// Whether the task is in a wait that is the target.
    pub fn is_in_wait(&self) -> bool {
        !self.wait.load(Ordering::Relaxed).is_null()
    }

    #[cold]
    fn end_wait_that_is(&self, model: Model<'_>, now: Real) {
        if let Some(wait) = self.set_wait(ptr::null_mut()) {
            let (taken, floor) = (self.local_delay(), model.ledger.forgiven_delay());
            let grown = model.ledger.end_wait(*wait, now);
            let more = taken.max(floor) + grown - taken;
            self.taken.fetch_add(more.0 << 2, Ordering::Relaxed);
        }
    }

    /// Puts a wait in the place of the one that was there. `wait` is null, or from a box.
    fn set_wait(&self, wait: *mut TargetWait) -> Option<Box<TargetWait>> {
        // AcqRel: who takes it out sees what was put in.
        let before = self.wait.swap(wait, Ordering::AcqRel);
        // SAFETY: what is in there came from a box, and whoever swaps it out is the only one to
        // have it.
        (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
    }

    /// Defers a poll until V gets to `ready`, which is too early now. Returns whether the task is
    /// to be held; it is already otherwise.
    pub fn defer_poll(&self, ready: Virtual) -> bool {
        lower(&self.by_task, ready.0);
        self.hold(ready, false)
    }

    /// Holds the task until V gets to `due`, for the `last` time before its next poll or not.
    /// Returns whether it was not held: the caller is to call [`released`](TaskClock::released)
    /// when V has got there. Else that is to come for another wake, and covers this one.
    pub fn hold(&self, due: Virtual, last: bool) -> bool {
        let until_due = (due.0 << 1) | i64::from(last);
        let first = |held| Some(if held == NOTHING { until_due } else { held });
        // AcqRel, and a write in any case: a wake that finds the task held is passed on by the
        // release that follows. What was done before it must be seen by the poll after that.
        self.due.fetch_update(Ordering::AcqRel, Ordering::Relaxed, first) == Ok(NOTHING)
    }

    /// Ends a hold. `None` where it was [let go](TaskClock::let_go).
    pub fn released(&self, model: Model<'_>, now: Real) -> Option<Released> {
        let by = cause(self.woken.load(Ordering::Relaxed));
        // A wake from here on holds the task anew, one from before is covered by this one. AcqRel:
        // pairs with `hold`.
        let held = self.due.swap(NOTHING, Ordering::AcqRel);
        let due = Virtual(held >> 1);
        (held != NOTHING).then(|| {
            // A hold for nothing more was released early, for its task to run in time.
            let again = self.all_due(model).filter(|&all| {
                let is_more = model.rules.raised_holds && all > due;
                is_more && !is_last(held) && model.is_early(all, now)
            });
            Released { due, by, again }
        })
    }

    /// When all is due that came from outside while the task was held.
    fn all_due(&self, model: Model<'_>) -> Option<Virtual> {
        let came = Real(self.by_external.load(Ordering::Relaxed));
        (came != Real::NEVER)
            .then(|| came.less(self.local_delay().max(model.ledger.forgiven_delay())))
    }

    /// Forgets a hold: the future is gone, and nobody is to be woken for it.
    #[inline]
    pub fn let_go(&self) {
        // Relaxed: only the caller has polled, and so held. A wake that comes now wakes nobody who
        // would see anything.
        if seldom(self.due.load(Ordering::Relaxed) != NOTHING) {
            self.due.store(NOTHING, Ordering::Relaxed);
        }
    }

    /// When the task is due, in virtual time, if it is held.
    pub fn due(&self) -> Option<Virtual> {
        // Relaxed: only polls write it, and the caller is the one that polls.
        let due = self.due.load(Ordering::Relaxed);
        (due != NOTHING).then_some(Virtual(due >> 1))
    }

    /// Whether the task is held.
    pub fn is_held(&self) -> bool {
        self.due.load(Ordering::Relaxed) != NOTHING
    }

    /// Whether a task must be held that is polled and parked at `at`, where its wake can't be held:
    /// it comes again by itself, and what comes until then it waits for as one that is held.
    /// `is_early` says whether what is ready then is too early; `finds` whether what came from
    /// outside, and was due then, would be found by now.
    pub fn holds_poll(
        &self,
        model: Model<'_>,
        at: Virtual,
        is_early: impl Fn(Virtual) -> bool,
        finds: impl Fn(Virtual) -> bool,
    ) -> bool {
        let waits = |ready| is_early(ready) || !finds(ready);
        let parked = Parked { at, taken: self.local_delay() };
        let by_task = Virtual(self.by_task.load(Ordering::Relaxed));
        let by_task = (by_task != Virtual::NEVER).then(|| parked.woken_by(by_task));
        // Only polls write it, and there is one at a time. A wake that comes at this moment takes
        // it as it was or as it will be.
        let due = self.due.load(Ordering::Relaxed);
        let until = if due != NOTHING {
            let awaited = Virtual(due >> 1);
            let all = || self.all_due(model).filter(|&all| !is_last(due) && waits(all));
            let until =
                if waits(awaited) { Some((awaited, due & 1)) } else { all().map(|all| (all, 1)) };
            // Another task may have woken it meanwhile.
            until.filter(|_| by_task.is_none_or(&is_early))
        } else {
            let external = Real(self.by_external.load(Ordering::Relaxed));
            let external = (external != Real::NEVER)
                .then(|| parked.woken_outside(external, model.ledger.forgiven_delay()));
            let ready = by_task.into_iter().chain(external).min();
            let all_wait = by_task.is_none_or(&is_early) && external.is_none_or(waits);
            ready.filter(|_| all_wait).map(|ready| (ready, 0))
        };
        let held = until.map_or(NOTHING, |(until, last)| (until.0 << 1) | last);
        self.due.store(held, Ordering::Relaxed);
        until.is_some()
    }
}

impl Drop for TaskClock {
    /// A wait that is still under way goes on in the ledger until the experiment ends: its task is
    /// gone, and nobody woke it.
    fn drop(&mut self) {
        drop(self.set_wait(ptr::null_mut()));
    }
}

/// Packs a delay taken and a hint into a number, as [`TaskClock::taken`] has it.
#[inline]
fn pack(taken: Nanos, hint: WaitHint) -> i64 {
    (taken.0 << 2) | hint as i64
}

/// Whether a task is held for the last time, as [`TaskClock::due`] has it.
fn is_last(due: i64) -> bool {
    due & 1 == 1
}

/// Returns what woke, as [`TaskClock::woken`] has it.
fn cause(woken: i64) -> Cause {
    match woken & 3 {
        0 => Cause::Outside,
        1 => Cause::Task,
        _ => Cause::Timer,
    }
}

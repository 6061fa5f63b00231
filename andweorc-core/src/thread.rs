//! The process-wide ledger, and what the calling thread is to it.
//!
//! A thread opens its [`Account`] by itself, the first time that it polls a profiled task or hits a
//! target, and closes it when it ends. On an async worker the thread is a participant only while it
//! polls: what wakes a task between polls is the driver, that is, the world outside. A plain thread
//! is a participant all the time once it has [registered](register).

mod block;
mod context_switches;
mod driver_lateness;
mod message;
mod on_cpu;
mod plain;
mod poll;
mod poll_phase;
mod preemption;
mod processor;
pub(crate) mod processors;
mod profiler_overhead;
mod runqueue_wait;
mod sampled;
pub(crate) mod shared;
mod switch;
mod sync_points;
mod target_scope;
mod timeline_cursor;
mod wakeup_latency;
mod worker;

pub use crate::asked::{enabled, is_target, was_enabled};
pub use crate::engine::{Entered, Stay};
pub use crate::point::Within;
pub use crate::process::ledger;
pub use block::{Blocking, blocked, catch_up_before_waking};
pub use message::{current_experiment, number_next, received, stamp};
pub use plain::{blocking_is_seen, takes_part, when_of_a_runtime};
pub use poll::{CaughtUp, Poll};
pub use poll_phase::Polled;
pub(crate) use poll_phase::hits;
pub(crate) use preemption::set_idle;
pub(crate) use profiler_overhead::Overhead;
pub(crate) use runqueue_wait::paid_waits_again;
pub(crate) use sampled::sampled;
pub use switch::{enable, when_switched};
pub(crate) use switch::{let_go, set_target};
pub use sync_points::{BeforeWake, after_final_wake, before_wake, catch_up, sync_point};
pub use target_scope::{enter, exit, exit_under, leave};
pub use wakeup_latency::{pass_on, spawns};
pub use worker::{
    came, handed_back, in_pool, is_busy_worker, noticed, parked, parked_since, unparked, wakes_in,
};

use crate::asked;
use crate::clock;
use crate::counter;
use crate::defer;
use crate::engine::{Depth, Model, Payment, ThreadKind, ThreadState};
use crate::late_events::DriverPoll;
use crate::ledger::Account;
use crate::pause;
use crate::process::process;
use crate::sampler::site_timeline::SiteTimelines;
use crate::sampler::{target_fraction, threads};
use crate::schedstat::Schedstat;
use crate::target::{Target, is_main};
use crate::time::{Nanos, Real, Virtual};
use crate::wait::{Cause, Ended};
use andweorc_sampling::signal;
use context_switches::ContextSwitches;
use driver_lateness::DriverLateness;
use on_cpu::OnCpu;
use poll_phase::PollPhase;
use runqueue_wait::{Comes, RunqueueWait};
use std::cell::Cell;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering;
use timeline_cursor::TimelineCursor;

/// The model that this process goes by.
#[inline]
pub fn model() -> Model<'static> {
    Model::shipped(ledger())
}

/// How many threads found no free account and so are not delayed.
pub(crate) fn without_account() -> u64 {
    process().threads.without_account.load(Ordering::SeqCst)
}

/// The calling thread's state. Plain cells without a destructor, so that a signal handler may read
/// them.
#[repr(C, align(64))]
struct Thread {
    // What each poll and wake reads, on one cache line.
    account: Cell<Option<&'static Account>>,
    /// Time spent in targets inside the innermost one that is open.
    inner: Cell<Nanos>,
    /// Since when it may have been idle: since its last poll, where no hooks tell, or since it
    /// parked. `None` where it is busy.
    idle_since: Cell<Option<Real>>,
    /// How many times the target was entered and not left.
    depth: Cell<Depth>,
    /// The innermost target that was entered and not left, as a [context](share); 0 for none.
    context: Cell<u32>,
    /// The part of a [context](share) that is that of the poll.
    phase: Cell<u32>,
    /// The experiment on a sampled target in which the context is credited with its share; 0 where
    /// it is not.
    shared: Cell<u32>,
    /// The experiment on a sampled target in which it is known to have no share; 0 between
    /// experiments, and where it has to ask.
    clear: Cell<u32>,
    /// Its name for who tells it to pay; 0 where it blocks the signal for that.
    tid: Cell<i32>,
    /// True once the thread has asked for an account, whether or not it got one.
    asked: Cell<bool>,
    state: Cell<ThreadState>,
    kind: Cell<ThreadKind>,
    /// The account is being written: a signal handler must leave it alone.
    writing: Cell<bool>,
    /// The wait that is the target began in this poll: if the task parks now, it is in it.
    waits: Cell<bool>,
    // What fewer do.
    /// How the wait of the task that is polled ended with this poll, where that is known.
    ended: Cell<Option<Ended>>,
    /// Virtual time at which the task had parked that is polled; [`Virtual::NEVER`] outside of
    /// polls.
    parked_at: Cell<Virtual>,
    /// How many visits it ended that were not inside of others, since that was asked for.
    visits: Cell<u32>,
    /// When it parked last.
    parked: Cell<Real>,
    /// Its last look at what came from the world outside.
    look: Cell<DriverPoll>,
    /// How long it really ran: inside the target, or in a context that has a share of a sampled
    /// one.
    ran: OnCpu,
    /// Whether it waited for its processor, as it was woken in the driver.
    queued: DriverLateness,
    /// Whether it waited for its processor behind others.
    runqueue_wait: RunqueueWait,
    schedstat: Schedstat,
    sleeps: ContextSwitches,
    /// Which of its polls the task is in that it polls.
    turn: Cell<PollPhase>,
    /// How often it has acted in this poll.
    acts: Cell<u32>,
    /// Where it can be outside of all targets, once it is sampled.
    timelines: Cell<Option<&'static SiteTimelines>>,
    /// Where it is on one of them.
    stretch: Cell<Option<TimelineCursor>>,
}

const _: () = assert!(mem::offset_of!(Thread, ended) <= 64, "a poll reads one cache line more");

/// Closes the account when the thread ends.
struct Close;

impl Drop for Close {
    fn drop(&mut self) {
        with(|thread| {
            if let Some(since) = thread.parked_since() {
                defer::worker_unparked(since, clock::now());
            }
            thread.end_stretch();
            thread.timelines.set(None);
            thread.schedstat.close();
            threads::close();
            thread.leave_processor();
            if let Some(account) = thread.account.take() {
                ledger().close(account, clock::now());
            }
        });
    }
}

crate::plain_thread_local! {
    // A signal handler may read it.
    static THREAD: Thread = Thread {
            account: Cell::new(None),
            asked: Cell::new(false),
            state: Cell::new(ThreadState::Outside),
            kind: Cell::new(ThreadKind::Unknown),
            depth: Cell::new(Depth::OUTSIDE),
            ran: OnCpu::new(),
            queued: DriverLateness::new(),
            runqueue_wait: RunqueueWait::new(),
            schedstat: Schedstat::new(),
            sleeps: ContextSwitches::new(),
            inner: Cell::new(Nanos::ZERO),
            idle_since: Cell::new(None),
            visits: Cell::new(0),
            parked: Cell::new(Real(0)),
            look: Cell::new(DriverPoll::NONE),
            writing: Cell::new(false),
            tid: Cell::new(0),
            ended: Cell::new(None),
            parked_at: Cell::new(Virtual::NEVER),
            waits: Cell::new(false),
            context: Cell::new(0),
            phase: Cell::new(0),
            turn: Cell::new(PollPhase::NONE),
            acts: Cell::new(PollPhase::NO_ACTS),
            shared: Cell::new(0),
            clear: Cell::new(0),
            timelines: Cell::new(None),
            stretch: Cell::new(None),
    };
}

thread_local! {
    static CLOSE: Close = const { Close };
}

impl Thread {
    /// How long it really ran up to `now`, since it came into the target or this was last asked.
    fn ran(&self, now: Real) -> Nanos {
        self.ran.end(now, &self.schedstat)
    }

    #[inline]
    fn account(&self, now: Real) -> Option<&'static Account> {
        self.account.get().or_else(|| self.ask(now))
    }

    /// Opens an account, the first time.
    #[cold]
    #[inline(never)]
    fn ask(&self, now: Real) -> Option<&'static Account> {
        if self.asked.replace(true) {
            return None;
        }
        // A thread that is being torn down gets no account: nobody would close it.
        let open = || CLOSE.try_with(|_| ledger().open(now)).ok().flatten();
        self.account.set(open());
        let (tid, is_deaf) = (nix::unistd::gettid().as_raw(), signal::is_blocked());
        if let Some(account) = self.account.get() {
            account.set_thread(tid);
        }
        self.tid.set(if is_deaf { 0 } else { tid });
        if self.account.get().is_none() {
            process().threads.without_account.fetch_add(1, Ordering::SeqCst);
        } else {
            self.timelines.set(threads::open(tid, is_deaf, sampled));
        }
        self.account.get()
    }

    /// Sets in whose name the thread acts, and so whether it is told to pay.
    #[inline]
    fn set_state(&self, state: ThreadState) {
        self.state.set(state);
        if let Some(account) = self.account.get() {
            let told = state.is_told_to_pay(self.kind.get());
            account.set_runs_as(if told { self.tid.get() } else { 0 });
        }
    }

    /// Since when the thread has been between its park hooks, where it is.
    fn parked_since(&self) -> Option<Real> {
        self.state.get().is_idle().then(|| self.parked.get())
    }

    /// L of the thread, if it owes nothing to speak of and nothing changes that. So it is most
    /// often, and known without a clock: what the hot paths ask first. All else is out of their
    /// way. Not inlined, as it is asked in so many places, each of which would have two cache lines
    /// of code for it.
    #[inline(never)]
    fn caught_up(&self) -> Option<Nanos> {
        let account = self.account.get()?;
        if !self.is_clear_of(target_fraction::aim()) || self.depth.get().is_inside() {
            return None;
        }
        let (debt, taken) = ledger().at_rest(account)?;
        Payment::is_needless(debt).then_some(taken)
    }

    /// Whether the thread owes nothing to speak of.
    #[inline]
    fn owes_nothing(&self) -> bool {
        self.caught_up().is_some() || self.owes_nothing_yet()
    }

    /// Whether the thread owes nothing to speak of, where that may change.
    #[cold]
    #[inline(never)]
    fn owes_nothing_yet(&self) -> bool {
        self.share();
        self.depth.get().is_inside()
            || self
                .account
                .get()
                .and_then(|account| ledger().lag_at_rest(account))
                .is_some_and(Payment::is_needless)
    }

    /// Pays what the thread owes. Returns when it was done, no earlier than `now`, a moment ago.
    #[inline]
    fn catch_up(&self, now: Real) -> Real {
        if self.owes_nothing() { now } else { self.catch_up_now() }
    }

    #[cold]
    #[inline(never)]
    fn catch_up_now(&self) -> Real {
        self.share_no_more();
        let mut now = clock::now();
        let Some(account) = self.account(now) else { return now };
        self.absorb_runqueue_wait(account, Comes::Preempted, now);
        let mut payment = Payment::begin();
        while let Some(pause) = payment.next_pause(self.owes_now(account, now)) {
            let begun = now;
            now = pause::until(begun + pause);
            ledger().took(account, Payment::taken_by(pause, now - begun), now);
            self.paused_since(begun, now);
        }
        self.note_caught_up(now);
        // Before its share begins anew, which counts what it spends by itself.
        let goes_on = self.spent_since(now, account);
        // What a pause spins is nobody's time.
        self.share_anew();
        goes_on
    }

    /// The virtual time of whoever acts on this thread.
    #[inline]
    fn participant_at(&self, now: Real) -> Option<Virtual> {
        if self.state.get().is_outside() {
            return None;
        }
        self.caught_up()
            .map(|taken| now.less(taken))
            .or_else(|| self.participant_while_growing(now))
    }

    #[cold]
    #[inline(never)]
    fn participant_while_growing(&self, now: Real) -> Option<Virtual> {
        // Spent after `now`, and in L by now.
        let mut spent = self.share();
        let account = self.account(now)?;
        // In a poll that the target preempted: nobody has asked yet for how long.
        if !self.depth.get().is_inside() && ledger().is_held() {
            spent += self.share_no_more();
            let since = clock::now();
            self.absorb_runqueue_wait(account, Comes::Preempted, now);
            // The time of `now`: what is spent on telling it comes after that.
            let at = now.less(ledger().local_delay(account, now) - spent);
            self.spent_since(since, account);
            self.share_anew();
            return Some(at);
        }
        Some(now.less(ledger().local_delay(account, now) - spent))
    }

    /// The virtual time of the thread, which has just got its share, and an account if one was
    /// free; V when none was.
    fn virtual_at(&self, now: Real) -> Virtual {
        match self.account.get() {
            Some(account) => ledger().virtual_of(account, now),
            None => ledger().virtual_now(now),
        }
    }
}

/// Returns the calling thread's state.
#[inline(always)]
fn here() -> &'static Thread {
    // The state is taken by address, so that its users are inlined, however long they are:
    // `LocalKey::with` isn't when that is long.
    let thread = THREAD.with(ptr::from_ref);
    // SAFETY: it is the calling thread's, which goes on beyond this call, and without a destructor
    // it is there for as long as its thread. Nobody hands it to another one: it is not `Sync`.
    unsafe { &*thread }
}

/// Runs `f` with the calling thread's state, undisturbed by [`catch_up_in_signal_handler`].
#[inline]
fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    let thread = here();
    let before = thread.writing.replace(true);
    let result = f(thread);
    thread.writing.set(before);
    result
}

/// Pays what the calling thread owes, from a signal handler that interrupted it anywhere. Does
/// nothing when the handler interrupted this module, or when the thread is no participant, or
/// blocked.
///
/// Async-signal-safe: reads thread-local cells without destructors, uses atomics, reads clocks and
/// sleeps.
pub(crate) fn catch_up_in_signal_handler() {
    THREAD.with(|thread| {
        if thread.state.get() == ThreadState::Active
            && thread.account.get().is_some()
            && !thread.writing.replace(true)
        {
            if !thread.owes_nothing() {
                clock::in_signal_handler(|| {
                    thread.catch_up_now();
                });
            }
            thread.writing.set(false);
        }
    });
}

/// Whether the calling thread is in the poll that began at this real time, ns. Async-signal-safe,
/// as above.
pub(crate) fn is_in_poll_since(since: i64) -> bool {
    THREAD.with(|thread| thread.account.get().is_some_and(|it| it.poll.is_since(Real(since))))
}

/// Makes the calling thread a participant until it ends: a plain thread, whose wakes carry its
/// virtual time. Returns its account, if one was free.
pub fn register() -> Option<&'static Account> {
    with(|thread| {
        let account = thread.account(clock::now());
        thread.set_state(thread.state.get().registered());
        asked::look_often();
        account
    })
}

/// A small number of the calling thread, below 128: the first 64 threads that live at a time have
/// one of their own each, those beyond share a few.
#[inline]
pub fn number() -> usize {
    counter::number()
}

/// The virtual time of whoever runs on the calling thread; V when nobody does.
#[inline]
pub fn virtual_at(now: Real) -> Virtual {
    participant_at(now).unwrap_or_else(|| ledger().virtual_now(now))
}

/// The virtual time, at this moment, of whoever runs on the calling thread; V when nobody does. Not
/// inlined, so that its code is there once for all intervals.
#[inline(never)]
pub fn virtual_now() -> Virtual {
    virtual_at(clock::now())
}

/// How many threads have a number of their own at a time.
pub(crate) const NUMBERS: usize = counter::OWNED;

/// Where the calling thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Id of the innermost target; 0 outside of all.
    pub(crate) target: u32,
    /// Number, among those of this thread, of the poll or the outermost span around it.
    pub(crate) number: u32,
}

/// Where the calling thread is, once visits [are counted](crate::process::asked::Switches). May be
/// asked for anywhere, also in the allocator.
#[inline]
pub(crate) fn visit() -> Visit {
    let thread = here();
    Visit { target: target_fraction::target_of(thread.context.get()), number: thread.visits.get() }
}

/// Where the calling thread is: what of its targets is the innermost that is open.
#[inline]
pub fn within() -> Within {
    match THREAD.with(|thread| thread.context.get()) {
        0 => Within::Nothing,
        context if is_main(target_fraction::target_of(context)) => Within::Main,
        _ => Within::Task,
    }
}

/// Id of the innermost target that the calling thread has entered and not left; 0 for none.
pub(crate) fn innermost_target() -> u32 {
    target_fraction::target_of(THREAD.with(|thread| thread.context.get()))
}

/// The virtual time of the participant that runs on the calling thread, in whose name it acts.
/// `None` when it acts for the world outside: a timer or a socket.
#[inline]
pub fn participant_at(now: Real) -> Option<Virtual> {
    if here().state.get().is_outside() {
        return None;
    }
    with(|thread| thread.participant_at(now))
}

/// The task that the calling thread polls has left what `wait` is the wait of: if it parks now, it
/// waits there.
#[inline]
pub fn wait_begins(wait: &Target) {
    if is_target(wait) {
        with(|thread| thread.waits.set(true));
    }
}

/// The task is back in what `wait` is the wait of, or has closed it.
#[inline]
pub fn wait_ends(wait: &Target) {
    if is_target(wait) {
        with(|thread| thread.waits.set(false));
    }
}

/// Counts a wait of `wait`, which is inside of `around`, from `since` to `until`, by how the wait
/// of the task that the calling thread polls ended with this poll, where that is known. Not
/// inlined: few visits of a span end a wait.
#[inline(never)]
pub fn record_wait(wait: &Target, around: Option<&Target>, since: Real, until: Real) {
    let ended = THREAD.with(|thread| thread.ended.get());
    wait.record_wait(since, ended, until);
    if let (Some(around), Some(ended)) = (around, ended)
        && ended.by() != Cause::Task
        && ended.parked() >= since
    {
        around.record_wait_inside(u64::try_from((ended.woken() - since).0).unwrap_or(0));
    }
}

//! Deferral: tasks held back until the virtual clock gets to where they are ready.
//!
//! A task whose wake came from the world outside is ready at its own virtual time, which may be
//! ahead of V by what D grew during its wait. It must not run before V gets there, and no worker
//! may be blocked for it: its neighbours owe nothing. So its wake is held by one thread with a
//! queue ordered by due time, which sleeps until the first is due. V moves slower while the target
//! runs, so that what has come due by the real clock is looked at again, and sleeps again, until V
//! is there.
//!
//! The thread comes back late from its sleep, and what is late would be lost to the task. It
//! measures by how much it is late and gets up that much earlier (`Lead`).
//!
//! While all workers are busy, nothing gets to run between two polls anyway: then a worker releases
//! what is due at the end of each poll, and the thread sleeps on. Without that it took a tenth of
//! the processors from a service at its limit, where one wake after the other is held.
//!
//! Workers of a runtime that andweorc has hooks in need no thread for that: `andweorc-tokio` holds
//! what comes from the world outside in a [queue](Waiting) and a timer of its own there. The thread
//! holds what other threads notice, and polls that came too early.
//!
//! # Nothing is held for long
//!
//! Nothing that is held is ever dropped: if the thread cannot be started, wakes are passed on at
//! once. And nothing is held longer than [`GRACE`] after it is due, whatever happens to the thread
//! that was to release it:
//!
//! - The thread of this module leaves what is due to busy workers for [`GRACE`] at most.
//! - Others that hold something, such as the timers of runtimes, are guarded (`guard`): the thread
//!   looks at them, and releases what is overdue.
//! - A wake of a foreign executor, which may block or panic, never runs on this thread or on a
//!   worker: [`until_elsewhere`] has threads of its own for these.

pub(crate) mod deferral;
#[cfg(not(loom))]
mod elsewhere;
mod guard;
mod waiting;

#[cfg(not(loom))]
pub use elsewhere::until_elsewhere;
pub use guard::{Guarded, due_at, guard};
pub use waiting::Waiting;

use crate::clock;
use crate::fork::forked;
use crate::process::{ledger, process};
use crate::time::{Nanos, Real, Virtual};
use crate::{own_thread, pause};
use deferral::{Deferral, Entries};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Something that waits to be passed on.
pub trait Held: Send + Sync {
    /// Passes the wake on. Called once for each [`until`].
    fn release(self: Arc<Self>);
}

/// How long after it is due a wake is released at the latest where whoever was to do so does not
/// come. The thread that does it then looks as often, so that it may take twice as long, and longer
/// while it has no processor.
pub const GRACE: Nanos = Nanos::from_millis(3);

/// Least time between two looks at what others hold. V moves slowly while something stays in the
/// target, so that by the real clock the same thing is overdue again and again, and each look takes
/// a processor from the program.
const MIN_LOOK: Nanos = GRACE;

/// A worker is idle from now on: the thread releases in time what it may run.
pub(crate) fn worker_parked() {
    let deferral = deferral();
    deferral.hooked.store(true, SeqCst);
    deferral.idle.fetch_add(1, SeqCst);
    if deferral.first.load(SeqCst) != Virtual::NEVER.0 {
        deferral.earlier.notify_one();
    }
}

/// Whether a worker is idle, of those that tell.
pub(crate) fn is_worker_idle() -> bool {
    // Relaxed: one that parks at this moment has not been notified yet.
    deferral().idle.load(Relaxed) > 0
}

/// Releases what is due. A busy worker calls this between two polls: nobody could run it earlier,
/// and the thread would only take processor time from who works. Says whether anything was held at
/// all: most often it is not, and no time has passed.
#[inline]
pub(crate) fn release_due() -> bool {
    // Relaxed: what is pushed at this moment is released at the next poll.
    let first = Virtual(deferral().first.load(Relaxed));
    let held = first != Virtual::NEVER;
    if held {
        release_until_now(first);
    }
    held
}

#[inline(never)]
fn release_until_now(first: Virtual) {
    if ledger().time_until_due(first, clock::now()) > Nanos::ZERO {
        return;
    }
    let deferral = deferral();
    let mut entries = deferral.entries.lock();
    let due = entries.waiting.take_due(ledger().virtual_now(clock::now()));
    deferral.publish_first(&entries);
    drop(entries);
    due.into_iter().for_each(|held| held.release());
}

/// A worker that parked at `since` is busy again.
pub(crate) fn worker_unparked(since: Real, now: Real) {
    let deferral = deferral();
    deferral.idle.fetch_sub(1, SeqCst);
    let released = deferral.released.load(SeqCst);
    let took = Nanos(now.0.saturating_sub(released));
    // Another wake may have got it going: then the mean takes in a time that is somewhat wrong,
    // once.
    if released > since.0 && took < Lead::MOST {
        let mean = deferral.handoff.load(SeqCst);
        deferral.handoff.store(mean + (took.0 - mean) / 16, SeqCst);
    }
}

/// Does once what the thread of the queue does: for models, which have a thread of their own.
#[cfg(loom)]
pub fn release_one() {
    deferral().release_one(&mut Lead::default());
}

/// Models have one executor.
#[cfg(loom)]
pub use until as until_elsewhere;

/// Releases `held` once V has got to `due`.
pub fn until(due: Virtual, held: Arc<dyn Held>) {
    deferral().hold(due, held);
}

/// Returns what is held back in this process.
#[inline(always)]
fn deferral() -> &'static Deferral {
    &process().deferral
}

impl Deferral {
    /// Whether there is a thread of the queue; starts it on the first call.
    fn runs(&self) -> bool {
        *self.runs.get_or_init(|| {
            // Models do themselves what the thread does.
            cfg!(loom) || own_thread::spawn("andweorc-defer", || deferral().run()).is_ok()
        })
    }

    fn hold(&self, due: Virtual, held: Arc<dyn Held>) {
        // In a child of fork nobody would pass it on.
        if forked() || !self.runs() {
            held.release();
            return;
        }
        let mut entries = self.entries.lock();
        let empty = entries.waiting.first().is_none();
        let first = entries.waiting.push(due, held);
        self.publish_first(&entries);
        drop(entries);
        if empty || (first && self.idle.load(SeqCst) > 0) {
            self.earlier.notify_one();
        }
    }

    fn publish_first(&self, entries: &Entries) {
        self.first.store(entries.waiting.first().unwrap_or(Virtual::NEVER).0, SeqCst);
    }

    /// By how much a wake is released early so that its task runs in time.
    fn handoff(&self) -> Nanos {
        Nanos(if self.idle.load(SeqCst) > 0 { self.handoff.load(SeqCst) } else { 0 })
    }

    fn run(&self) {
        pause::on_time();
        let mut lead = Lead::default();
        loop {
            self.release_one(&mut lead);
        }
    }

    /// Sleeps until the first is due, and releases it. What others hold longer than they should is
    /// released meanwhile.
    fn release_one(&self, lead: &mut Lead) {
        let mut entries = self.entries.lock();
        loop {
            let now = clock::now();
            if let Some(overdue) = entries.overdue_in(now)
                && overdue <= Nanos::ZERO
            {
                entries.guarded = Virtual::NEVER;
                drop(entries);
                guard::look(now);
                entries = self.entries.lock();
                continue;
            }
            let left = entries.waiting.first().map(|first| ledger().time_until_due(first, now));
            if left.is_some_and(|left| left <= lead.nearest() + self.handoff()) {
                let held = entries.waiting.pop();
                self.publish_first(&entries);
                drop(entries);
                self.released.store(clock::now().0, SeqCst);
                if let Some(held) = held {
                    held.release();
                }
                return;
            }
            let busy = self.hooked.load(SeqCst) && self.idle.load(SeqCst) == 0;
            let sleeps = left.map(|left| {
                let in_time = (left - lead.0 - self.handoff()).max(Nanos(1));
                if busy { in_time.max(GRACE) } else { in_time }
            });
            let looks = entries.overdue_in(now).map(|overdue| overdue.max(MIN_LOOK));
            let Some(sleep) = sleeps.into_iter().chain(looks).min() else {
                entries = self.earlier.wait(entries);
                continue;
            };
            let timeout;
            (entries, timeout) = self.earlier.wait_timeout(entries, sleep.to_duration());
            if timeout && !busy && sleeps == Some(sleep) {
                lead.measured(clock::now() - (now + sleep));
            }
        }
    }
}

impl Entries {
    /// How long it takes until the first of what others hold is overdue.
    fn overdue_in(&self, now: Real) -> Option<Nanos> {
        let held = self.guarded != Virtual::NEVER;
        held.then(|| ledger().time_until_due(self.guarded, now) + GRACE)
    }
}

/// By how much who sleeps until something is due gets up too late, on average: a moving mean, by
/// which to aim earlier.
#[derive(Debug, Default)]
pub struct Lead(Nanos);

impl Lead {
    /// No sleep is ever aimed earlier than this: it would be a machine too busy to be measured on.
    const MOST: Nanos = Nanos::from_micros(200);

    /// The mean.
    pub fn mean(&self) -> Nanos {
        self.0
    }

    /// Takes in one sleep that ended `late`. A single very late one moves the mean by no more than
    /// one of 200 us.
    pub fn measured(&mut self, late: Nanos) {
        let late = late.max(Nanos::ZERO).min(Self::MOST);
        self.0 += Nanos((late - self.0).0 / 16);
    }

    /// Time within which what is due is released rather than slept for: half as long as another
    /// sleep would be late.
    fn nearest(&self) -> Nanos {
        Nanos(self.0.0 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Real;
    use std::sync::mpsc;

    struct Tell(mpsc::Sender<(i64, Real)>, i64);

    impl Held for Tell {
        fn release(self: Arc<Self>) {
            self.0.send((self.1, clock::now())).expect("the test listens");
        }
    }

    #[test]
    fn releases_in_order_of_due_time_and_not_before() {
        let (sender, receiver) = mpsc::channel();
        let start = clock::now();
        for ms in [30, 10, 20] {
            let due = ledger().virtual_now(start).0 + Nanos::from_millis(ms).0;
            until(Virtual(due), Arc::new(Tell(sender.clone(), ms)));
        }
        let released: Vec<_> = receiver.iter().take(3).collect();
        assert_eq!(released.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), [10, 20, 30]);
        for (ms, at) in released {
            assert!(at - start > Nanos::from_millis(ms) - Lead::MOST);
        }
    }

    #[test]
    fn nothing_is_held_where_there_is_no_thread() {
        let (sender, receiver) = mpsc::channel();
        let far = Virtual(ledger().virtual_now(clock::now()).0 + Nanos::from_millis(3_600_000).0);
        let deferral = Deferral::new();
        deferral.runs.get_or_init(|| false);
        deferral.hold(far, Arc::new(Tell(sender, 0)));
        receiver.try_recv().unwrap();
    }

    #[test]
    fn lead_follows_the_lateness_and_ignores_outliers() {
        let mut lead = Lead::default();
        for _ in 0..200 {
            lead.measured(Nanos::from_micros(30));
        }
        assert!((25..=30).contains(&(lead.0.0 / 1000)));
        lead.measured(Nanos::from_millis(500));
        assert!(lead.0 < Nanos::from_micros(45));
    }
}

//! The guard of wakes that others hold: the thread of the queue releases those that are overdue.
//!
//! A runtime's timer goes off in the runtime's driver, and nobody may ever look there again: its
//! only thread may do something else, or its workers may all be in long polls. So whoever holds
//! something says [when it is due](due_at), and the thread of the queue, which no user code runs
//! on, comes [`GRACE`] after that.
//!
//! While things are held again and again the thread looks once in [`GRACE`] and nobody has to call
//! it. It rests after [`EMPTY_LOOKS`] looks at which nothing was held.

use super::{GRACE, deferral};
use crate::fork::forked;
use crate::process::ledger;
use crate::time::{Real, Virtual};
use std::sync::Weak;
use std::sync::atomic::Ordering::SeqCst;

/// Somebody who holds what is to be released by somebody else.
pub trait Guarded: Send + Sync {
    /// Releases what was due at `until` or before, and returns when the first is due of what is
    /// left.
    ///
    /// Called on a thread of andweorc's own.
    fn release_due_by(&self, until: Virtual) -> Option<Virtual>;
}

/// Looks at which nothing was held before the thread rests.
const EMPTY_LOOKS: u32 = 8;

/// Guards what `holds` from now on. Returns whether there is a thread that does: where there is
/// none, nothing may be held.
pub fn guard(holds: Weak<dyn Guarded>) -> bool {
    let deferral = deferral();
    let mut guarded = deferral.guarded.lock();
    guarded.retain(|one| one.strong_count() > 0);
    guarded.push(holds);
    deferral.runs()
}

/// Says that something which is held by somebody guarded is due at `due`.
pub fn due_at(due: Virtual) {
    // Whoever holds it has unlocked what it is held in, and `look` locks that after its store:
    // either this sees that no look is to come, or that look sees what is held.
    if due.0 >= deferral().next_look.load(SeqCst) || forked() {
        return;
    }
    if comes_for(due) {
        deferral().earlier.notify_one();
    }
}

/// Has the thread look at what is due at `due`. Returns whether that is earlier than it would have.
fn comes_for(due: Virtual) -> bool {
    let mut entries = deferral().entries.lock();
    let earlier = due < entries.guarded;
    entries.guarded = entries.guarded.min(due);
    deferral().next_look.store(entries.guarded.0, SeqCst);
    earlier
}

/// Releases what is overdue at `now`, and says when the next look is to be. The thread of the queue
/// calls this.
pub(super) fn look(now: Real) {
    // A wake held from here on asks for a look of its own, unless the scan sees it. See `due_at`.
    let deferral = deferral();
    deferral.next_look.store(Virtual::NEVER.0, SeqCst);
    let all: Vec<_> = {
        let guarded = deferral.guarded.lock();
        guarded.iter().filter_map(Weak::upgrade).collect()
    };
    let v = ledger().virtual_now(now);
    let until = Virtual(v.0 - GRACE.0);
    let first = all.iter().filter_map(|holds| holds.release_due_by(until)).min();
    drop(all);
    // Only this thread writes it.
    let empty =
        if first.is_some() { 0 } else { deferral.empty_looks.load(SeqCst).saturating_add(1) };
    deferral.empty_looks.store(empty, SeqCst);
    if let Some(due) = first.or_else(|| (empty < EMPTY_LOOKS).then_some(v)) {
        comes_for(due);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock;
    use crate::sync::Mutex;
    use crate::time::Nanos;
    use std::sync::{Arc, mpsc};

    /// Guarded what is due then, and tells of its release.
    struct Keeper {
        due: Mutex<Option<Virtual>>,
        tell: mpsc::Sender<Real>,
    }

    impl Guarded for Keeper {
        fn release_due_by(&self, until: Virtual) -> Option<Virtual> {
            let mut due = self.due.lock();
            if due.is_some_and(|due| due <= until) {
                *due = None;
                self.tell.send(clock::now()).unwrap();
            }
            *due
        }
    }

    #[test]
    fn overdue_wakes_are_released_though_their_holder_never_runs() {
        let (tell, told) = mpsc::channel();
        let keeper = Arc::new(Keeper { due: Mutex::new(None), tell });
        assert!(guard(Arc::downgrade(&keeper) as Weak<dyn Guarded>));
        // Again after the thread has gone to rest, and with a second one that is due earlier than
        // the first.
        for ms in [1, 40, 2] {
            let due = ledger().virtual_now(clock::now()).0 + ms * 1_000_000;
            let (far, due) = (Virtual(due + 3_600_000_000_000), Virtual(due));
            for due in [far, due] {
                *keeper.due.lock() = Some(due);
                due_at(due);
            }
            let at = told.recv().unwrap();
            assert!(ledger().time_until_due(due, at) <= Nanos::ZERO, "it was not due yet");
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::clock;
    use loom::sync::Mutex;
    use std::sync::Arc;

    /// Holds what is due then.
    struct Keeper(Mutex<Option<Virtual>>);

    impl Guarded for Keeper {
        fn release_due_by(&self, until: Virtual) -> Option<Virtual> {
            let mut due = self.0.lock().unwrap();
            due.take_if(|due| *due <= until);
            *due
        }
    }

    #[test]
    fn loom_what_is_held_while_the_thread_looks_is_seen_or_calls_for_a_look() {
        loom::model(|| {
            clock::set(Real(0));
            let keeper = Arc::new(Keeper(Mutex::new(None)));
            guard(Arc::downgrade(&keeper) as Weak<dyn Guarded>);
            // A look is to come, for something that was due earlier and is gone.
            due_at(Virtual(1));
            let due = Virtual(2);
            let keeps = Arc::clone(&keeper);
            let holder = loom::thread::spawn(move || {
                *keeps.0.lock().unwrap() = Some(due);
                due_at(due);
            });
            // As the thread of the queue does.
            deferral().entries.lock().guarded = Virtual::NEVER;
            look(Real(GRACE.0 + 1));
            holder.join().unwrap();
            assert!(deferral().entries.lock().guarded <= due, "nobody comes for it");
        });
    }
}

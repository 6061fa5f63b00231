//! Time in which a thread is preempted inside the target.
//!
//! What takes its processor from it has so much to do for each unit of the program's work, however
//! fast the target is. While all processors are busy that has to be done in any case: with a faster
//! target it would be done in the place of something else, and the program gain nothing. But where
//! a processor is idle, with a faster target much of it would be done beside the program, in time
//! that nobody waits for. So what preempts the target is the target's time by the part of the time
//! in which some processor is idle, or runs what is nice, as it was in the last baseline. That is
//! taken to be the mean number of idle processors, if that is less than one: more than one is
//! seldom idle on few, and on many at least one most of the time.
//!
//! (In `blocking`, with 0.87 of two processors idle, the target is preempted for 69 us a request,
//! and for 14 where it really takes a quarter of its time; in tonic's echo for 6.0 us, and for 2.4
//! where it really takes half of it.)

use crate::process::process;
use crate::time::{Nanos, Speedup};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

/// Below this it is left: to ask the kernel takes more than a microsecond.
const LEAST: Nanos = Nanos::from_micros(5);

/// So many processors were idle, on average, of those that the process may use.
pub(crate) fn set_idle(processors: f64) {
    // Relaxed: it publishes nothing.
    process().threads.idle.store((processors.clamp(0.0, 1.0) * 1e6) as u32, Relaxed);
}

/// The part of the time in which some processor was.
pub(super) fn idle() -> Speedup {
    // Relaxed, as above.
    Speedup::from_ppm(process().threads.idle.load(Relaxed))
}

/// Preemptions of the calling thread inside the target, as far as they are known. Plain cells
/// without a destructor: a signal handler may use them that interrupted nobody who does.
pub(super) struct Preemption {
    /// How long it had waited for processors when the kernel was last asked.
    waited: Cell<Nanos>,
    /// Time in which the thread was preempted that was the target's, in all.
    sum: Cell<Nanos>,
}

impl Preemption {
    pub(super) const fn new() -> Preemption {
        Preemption { waited: Cell::new(Nanos::ZERO), sum: Cell::new(Nanos::ZERO) }
    }

    /// The thread was inside the target and did not run for `lost` of that. `waited` tells for how
    /// long it has waited for processors, in all, where the kernel does.
    pub(super) fn inside(
        &self,
        lost: Nanos,
        idle: Speedup,
        waited: impl FnOnce() -> Option<Nanos>,
    ) {
        if idle != Speedup::ZERO
            && lost >= LEAST
            && let Some(waited) = waited()
        {
            // It may have slept in there too, and have waited before it came in.
            let preempted = lost.min(waited - self.waited.replace(waited));
            self.sum.set(self.sum.get() + idle.of(preempted));
        }
    }

    /// Time in which the thread was preempted that was the target's, so far.
    pub(super) fn in_all(&self) -> Nanos {
        self.sum.get()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock;
    use crate::experiment::{Experimenter, Phases};
    use crate::process::tests::Own;
    use crate::schedstat::tests::kernel_tells_waits;
    use crate::thread::processor::tests::{allowed, alone, stay_on, work};
    use crate::thread::with;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn preemption_counts_in_proportion_to_idle_processors() {
        let us = Nanos::from_micros;
        let preempted = Preemption::new();
        let look = |lost, idle: f64, waited: Option<i64>| {
            let before = preempted.in_all();
            let idle = Speedup::new(idle).unwrap();
            preempted.inside(us(lost), idle, || waited.map(us));
            preempted.in_all() - before
        };
        // What it waited for before it came in counts for no more than it lost inside.
        assert_eq!(look(100, 0.5, Some(700)), us(50));
        assert_eq!(look(100, 0.5, Some(760)), us(30), "it slept for 40 us of that");
        assert_eq!(look(100, 0.0, Some(860)), us(0), "all processors are busy");
        assert_eq!(look(100, 0.9, None), us(0), "the kernel does not tell");
        assert_eq!(look(3, 0.9, Some(2000)), us(0), "it ran throughout");
    }

    #[test]
    fn a_baseline_tells_how_many_processors_were_idle() {
        Own::run(|_| {
            // No number of ticks is that part of 50 ms.
            set_idle(0.123_456);
            let mut experimenter = Experimenter::new().expect("one at a time");
            let held =
                experimenter.run(None, Speedup::ZERO, Phases::from_millis(1, 50, 1)).record();
            let told = idle();
            drop(experimenter);
            assert!(held.is_some() && told.ppm() != 123_456, "{told:?}");
        })
    }

    /// How long a thread is said to have run inside the target, over how long it did, beside
    /// another one that wants the same processor.
    fn beside_another(idle: f64) -> f64 {
        let (processor, done) = (allowed().next().unwrap(), AtomicBool::new(false));
        Own::run(|own| {
            let _alone = alone();
            set_idle(idle);
            thread::scope(|scope| {
                scope.spawn(|| {
                    own.enter();
                    stay_on(processor);
                    while !done.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
                let inside = scope.spawn(|| {
                    own.enter();
                    stay_on(processor);
                    let before = clock::thread_cpu();
                    with(|thread| thread.ran.begin(clock::now()));
                    work(Nanos::from_millis(60));
                    let ran = with(|thread| thread.ran(clock::now()));
                    done.store(true, Relaxed);
                    ran.as_secs_f64() / (clock::thread_cpu() - before).as_secs_f64()
                });
                inside.join().unwrap()
            })
        })
    }

    #[test]
    fn where_processors_are_idle_a_preempted_target_goes_on() {
        if !kernel_tells_waits() {
            return;
        }
        let [busy, idle] = [0.0, 1.0].map(beside_another);
        assert!((0.9..1.2).contains(&busy), "{busy} of what it ran");
        assert!(idle > 1.5, "{idle} of what it ran");
    }
}

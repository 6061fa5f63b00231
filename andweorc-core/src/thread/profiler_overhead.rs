//! The processor time that andweorc's own threads take from others.
//!
//! They run by real time, so many times a second, however fast the program is. Were the target
//! faster, it would be interrupted less often, by as much as it is faster: so what they take of a
//! processor while the target has it is the target's own time, and made faster with it. What other
//! threads of the program take there is not, since they have so much to do for each unit of work.

use super::processor::Processor;
use crate::clock;
use crate::process::processors;
use crate::time::Nanos;
use std::cell::Cell;

/// How much of a processor a thread of andweorc's own takes.
pub(crate) struct Overhead {
    /// Its CPU time when that was last counted.
    counted: Cell<Nanos>,
}

impl Overhead {
    /// The calling thread is one of andweorc's own, from now on.
    pub(crate) fn new() -> Overhead {
        Overhead { counted: Cell::new(clock::thread_cpu()) }
    }

    /// Counts what the calling thread has taken of the processor that it runs on. To be called
    /// before it goes to sleep.
    pub(crate) fn count(&self) {
        let now = clock::thread_cpu();
        let took = now - self.counted.replace(now);
        if let Some(processor) = Processor::current() {
            processors().taken.add(processor, took);
        }
    }
}

/// Processor time that was taken from one thread. Plain cells without a destructor: a signal
/// handler may use them that interrupted nobody who does.
pub(super) struct From {
    /// Where it ran when it looked last, and what had been taken there by then.
    at: Cell<Option<(Processor, Nanos)>>,
    /// Processor time that was taken while the thread stayed on one processor, in all.
    sum: Cell<Nanos>,
}

impl From {
    pub(super) const fn new() -> From {
        From { at: Cell::new(None), sum: Cell::new(Nanos::ZERO) }
    }

    /// The sum that [`in_all`](From::in_all) last returned.
    pub(super) fn known(&self) -> Nanos {
        self.sum.get()
    }

    /// Processor time that was taken, so far, on the processors that the calling thread has been
    /// on. What was taken since it looked last, and before it came to where it is now, is not known
    /// and left out.
    pub(super) fn in_all(&self) -> Nanos {
        let now = Processor::current().map(|here| (here, processors().taken.of(here)));
        if let (Some((there, before)), Some((here, taken))) = (self.at.replace(now), now)
            && there == here
        {
            self.sum.set(self.sum.get() + (taken - before));
        }
        self.sum.get()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::process::tests::Own;
    use crate::schedstat::Schedstat;
    use crate::thread::on_cpu::OnCpu;

    #[test]
    fn processor_time_taken_counts_as_time_the_thread_ran() {
        // Other tests take it for time of their targets.
        Own::run(|_| {
            let (ran, schedstat, taken) = (OnCpu::new(), Schedstat::new(), Nanos::from_millis(50));
            let stretch = || {
                let began = clock::now();
                ran.begin(began);
                while clock::now() - began < Nanos::from_micros(100) {}
                if let Some(here) = Processor::current() {
                    processors().taken.add(here, taken);
                }
                ran.end(clock::now(), &schedstat)
            };
            // It may be moved to another processor meanwhile.
            let most = (0..20).map(|_| stretch()).max().unwrap();
            assert!(most > taken, "{most}");
        })
    }

    #[test]
    fn processor_time_taken_is_seen_on_the_same_processor() {
        Own::run(|own| {
            std::thread::spawn(move || {
                own.enter();
                let (takes, from) = (Overhead::new(), From::new());
                assert_eq!(from.in_all(), Nanos::ZERO, "nothing is known before the first look");
                let (mut counted, mut seen) = (Nanos::ZERO, Nanos::ZERO);
                // It may be moved to another processor meanwhile, and loses what is counted then.
                for _ in 0..1000 {
                    let before = takes.counted.get();
                    takes.count();
                    counted += takes.counted.get() - before;
                    seen = from.in_all();
                }
                assert!(seen.0 > counted.0 / 2 && counted > Nanos::ZERO, "{seen} of {counted}");
            })
            .join()
            .unwrap();
        })
    }
}

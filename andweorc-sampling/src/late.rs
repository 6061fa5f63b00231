//! How late the handler comes: from where a sample interrupts a thread to where the handler reads
//! the clock it takes the timer's interrupt and the signal, on a virtual machine some 30 us. As far
//! as that a thread would seem to have come on its way when it was somewhere else.
//!
//! Measured once, on a thread that does nothing but note the time.

use crate::clock;
use crate::period::FINE;
use crate::signal::SIGNAL;
use crate::source::{Kind, Source};
use andweorc_profile::time::Nanos;
use nix::sys::signal::SigSet;
use std::sync::atomic::{AtomicI64, Ordering};

/// ns; 0 until it is known.
static LATE: AtomicI64 = AtomicI64::new(0);

/// How many samples are looked at, at most, and for how long.
const SAMPLES: usize = 31;
const MOST: Nanos = Nanos::from_millis(30);

/// Times that the calling thread notes while it measures. 0 while it does not.
struct Note {
    /// The time when it last looked at the clock.
    looked: AtomicI64,
    /// How much later the handler did.
    late: AtomicI64,
}

crate::plain_thread_local! {
    // A signal handler may read it.
    static NOTE: Note = Note { looked: AtomicI64::new(0), late: AtomicI64::new(0) };
}

/// How late the handler comes; zero as long as that is not known. Async-signal-safe.
pub fn late() -> Nanos {
    // Relaxed: a number that stands for itself.
    Nanos(LATE.load(Ordering::Relaxed))
}

/// Forgets it: for timers, which come by ticks.
pub(crate) fn forget() {
    // Relaxed: as above.
    LATE.store(0, Ordering::Relaxed);
}

/// Measures it on the calling thread, unless that was done before. Where timers stand in for perf
/// events, which come by ticks, it is left out.
pub fn measure(kind: Kind) {
    if let Kind::Perf(event) = kind
        && late() == Nanos::ZERO
        && let Ok(source) = Source::perf(nix::unistd::gettid().as_raw(), event, FINE)
    {
        let taken = SigSet::from(SIGNAL);
        let late = taken.thread_unblock().ok().and_then(|()| NOTE.with(Note::take));
        drop(source);
        // The thread takes no signals otherwise. One that blocks none is no worse than a thread of
        // the program.
        taken.thread_block().unwrap_or_default();
        // Relaxed: as above.
        LATE.store(late.map_or(0, |late| late.0), Ordering::Relaxed);
    }
}

/// Whether the calling thread measures, and has taken note of the sample. Async-signal-safe.
pub fn noted() -> bool {
    NOTE.with(|note| {
        // Relaxed, all of these: of one thread, and the handler that interrupts it.
        let looked = note.looked.load(Ordering::Relaxed);
        if looked != 0 {
            let mut now = looked;
            clock::in_signal_handler(|| now = clock::now().0);
            note.late.store(now - looked, Ordering::Relaxed);
        }
        looked != 0
    })
}

impl Note {
    /// Takes note for a while. `None` when there were no samples.
    fn take(&self) -> Option<Nanos> {
        let begun = clock::now();
        let mut seen = Vec::with_capacity(SAMPLES);
        while seen.len() < SAMPLES {
            let now = clock::now();
            if now - begun > MOST {
                break;
            }
            self.looked.store(now.0, Ordering::Relaxed);
            let late = self.late.swap(0, Ordering::Relaxed);
            if late != 0 {
                seen.push(late);
            }
        }
        self.looked.store(0, Ordering::Relaxed);
        median(seen).map(Nanos)
    }
}

fn median(mut of: Vec<i64>) -> Option<i64> {
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_lateness_ignores_an_outlier() {
        assert_eq!(median(vec![30, 500, 29, 31, 28]), Some(30));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn only_a_thread_that_measures_takes_note() {
        std::thread::spawn(|| {
            assert!(!noted());
            NOTE.with(|note| note.looked.store(clock::now().0, Ordering::Relaxed));
            assert!(noted());
            assert!(NOTE.with(|note| note.late.load(Ordering::Relaxed)) >= 0);
        })
        .join()
        .unwrap();
    }
}

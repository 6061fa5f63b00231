//! Whether a thread has slept, as the kernel tells.

use nix::sys::resource::{UsageWho, getrusage};
use std::cell::Cell;

/// How often a thread has given its processor up, in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switches {
    /// To sleep.
    slept: i64,
    /// For another thread.
    preempted: i64,
}

/// ContextSwitches of the calling thread, as far as they are known. Plain cells without a
/// destructor: a signal handler may use them that interrupted nobody who does.
pub(super) struct ContextSwitches {
    /// How often it had slept when that was last asked.
    count: Cell<i64>,
}

impl ContextSwitches {
    pub(super) const fn new() -> ContextSwitches {
        ContextSwitches { count: Cell::new(0) }
    }

    /// Whether it has slept since this was last asked; `None` where the kernel does not tell (one
    /// in user space, say). To have waited for a processor only is no sleep.
    pub(super) fn has_slept(&self) -> Option<bool> {
        let before = self.count.get();
        self.ask().map(|switches| switches.slept != before)
    }

    /// How often it has given its processor up; `None` where the kernel does not tell.
    pub(super) fn ask(&self) -> Option<Switches> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
        let slept = usage.voluntary_context_switches();
        self.count.set(slept);
        (slept != 0).then_some(Switches { slept, preempted: usage.involuntary_context_switches() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn busy_thread_has_not_slept() {
        std::thread::spawn(|| {
            let sleeps = ContextSwitches::new();
            std::thread::sleep(Duration::from_millis(1));
            if sleeps.has_slept().is_none() {
                return println!("skipped: this kernel does not count how often a thread sleeps");
            }
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(sleeps.has_slept(), Some(true));
            let works = |_| {
                sleeps.has_slept();
                let since = Instant::now();
                while since.elapsed() < Duration::from_millis(1) {}
                sleeps.has_slept() == Some(false)
            };
            // Now and then it waits for a page.
            assert!((0..20).any(works));
        })
        .join()
        .unwrap();
    }
}

//! Whether a thread has slept, as the kernel tells.

use nix::sys::resource::{UsageWho, getrusage};
use std::cell::Cell;

/// What is known of the calling thread. Plain cells without a destructor: a signal handler may use them that interrupted nobody who does.
pub(super) struct Sleeps {
    /// How often it had slept when that was last asked.
    count: Cell<i64>,
}

impl Sleeps {
    pub(super) const fn new() -> Sleeps {
        Sleeps { count: Cell::new(0) }
    }

    /// Whether it has slept since this was last asked; true where the kernel does not tell. To have waited for a processor only is no sleep.
    pub(super) fn has_slept(&self) -> bool {
        let count = getrusage(UsageWho::RUSAGE_THREAD)
            .map_or(0, |usage| usage.voluntary_context_switches());
        self.count.replace(count) != count || count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn who_works_does_not_sleep() {
        std::thread::spawn(|| {
            let sleeps = Sleeps::new();
            std::thread::sleep(Duration::from_millis(1));
            assert!(sleeps.has_slept());
            let works = |_| {
                sleeps.has_slept();
                let since = Instant::now();
                while since.elapsed() < Duration::from_millis(1) {}
                !sleeps.has_slept()
            };
            // Now and then it waits for a page.
            assert!((0..20).any(works));
        })
        .join()
        .unwrap();
    }
}

//! Which event samples are taken by.

use std::str::FromStr;

/// Quantity that a perf event counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// CPU time, by the kernel's software clock: works in virtual machines without hardware
    /// counters.
    #[default]
    TaskClock,
    /// Cycles of the processor.
    Cycles,
    /// Instructions that it retired.
    Instructions,
    /// Accesses that its last cache did not hold.
    CacheMisses,
    /// Branches that it predicted wrong.
    BranchMisses,
}

impl Event {
    const ALL: [Event; 5] = [
        Event::TaskClock,
        Event::Cycles,
        Event::Instructions,
        Event::CacheMisses,
        Event::BranchMisses,
    ];

    /// The name that perf(1) has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Event::TaskClock => "task-clock",
            Event::Cycles => "cycles",
            Event::Instructions => "instructions",
            Event::CacheMisses => "cache-misses",
            Event::BranchMisses => "branch-misses",
        }
    }
}

impl FromStr for Event {
    type Err = ();

    fn from_str(name: &str) -> Result<Event, ()> {
        Event::ALL.into_iter().find(|event| event.name() == name).ok_or(())
    }
}

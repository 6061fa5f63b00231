//! Which events are counted by target, beside CPU time.

use std::str::FromStr;

/// Event of a processor, or of the kernel, that is counted by target.
///
/// Context switches are none of them: their signal wakes the thread that has just gone to sleep,
/// which is then switched to and from once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CountedEvent {
    /// Cycles of the processor.
    Cycles,
    /// Instructions that it retired.
    Instructions,
    /// Accesses that its last cache did not hold.
    CacheMisses,
    /// Branches that it predicted wrong.
    BranchMisses,
    /// Faults of pages, by the kernel.
    PageFaults,
    /// Faults of pages that no disk was read for, by the kernel.
    MinorFaults,
    /// Time on a processor in ns, by the kernel's clock.
    CpuClock,
}

impl CountedEvent {
    /// All of them.
    pub const ALL: [CountedEvent; 7] = [
        CountedEvent::Cycles,
        CountedEvent::Instructions,
        CountedEvent::CacheMisses,
        CountedEvent::BranchMisses,
        CountedEvent::PageFaults,
        CountedEvent::MinorFaults,
        CountedEvent::CpuClock,
    ];

    /// The name that perf(1) has for it.
    pub const fn name(self) -> &'static str {
        match self {
            CountedEvent::Cycles => "cycles",
            CountedEvent::Instructions => "instructions",
            CountedEvent::CacheMisses => "cache-misses",
            CountedEvent::BranchMisses => "branch-misses",
            CountedEvent::PageFaults => "page-faults",
            CountedEvent::MinorFaults => "minor-faults",
            CountedEvent::CpuClock => "cpu-clock",
        }
    }
}

impl FromStr for CountedEvent {
    type Err = ();

    fn from_str(name: &str) -> Result<CountedEvent, ()> {
        CountedEvent::ALL.into_iter().find(|event| event.name() == name).ok_or(())
    }
}

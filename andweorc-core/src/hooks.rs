//! All that sibling crates and the facade use of the core. What is not here is the core's own, or
//! for tests and benches.

pub use crate::{enabled, plain_thread_local, signals_of_others, weak_symbol};

/// Switches that hot paths look at.
pub mod asked {
    pub use crate::asked::switches;
    pub use crate::process::asked::Switches;
}

/// Counting of allocations.
pub mod allocations {
    pub use crate::allocations::{Mark, allocated, freed, left_out};
}

/// Real time.
pub mod clock {
    pub use crate::clock::{c_clock_gettime, now};
}

/// Tasks and wakes that are held back until the virtual clock gets there.
pub mod defer {
    pub use crate::defer::{Guarded, Held, Lead, Waiting, due_at, guard, until, until_elsewhere};
}

/// Clocks of tasks, and what a wake or a poll does to them.
pub mod engine {
    pub use crate::engine::{
        Effect, Parking, PollBegun, PollEnded, Released, Rules, TaskClock, WaitHint, WakeSource,
        seldom,
    };
}

/// How far a run has come.
pub mod experiment {
    pub use crate::experiment::Status;
}

/// Children of fork, in which andweorc is off.
pub mod fork {
    pub use crate::fork::forked;
}

/// Sentences for where nothing is seen.
pub mod hints {
    pub use crate::hints::add;
}

/// Threads of andweorc's own.
pub mod own_thread {
    pub use crate::own_thread::spawn;
}

/// Precise sleeps.
pub mod pause {
    pub use crate::pause::nap;
}

/// Progress points.
pub mod point {
    pub use crate::point::{Point, point};
}

/// The clock that the program reads.
pub mod program_clock {
    pub use crate::program_clock::{
        Kind, behind, by_real_time, driver_is_left, driver_returned, from_timespec, is_on, is_read,
        is_virtual, noticed_a_timer, noticed_a_virtual_timer, now, read, to_timespec,
    };
}

/// Messages between processes that hold an experiment together.
pub mod remote {
    pub use crate::ledger::Stamp;
    pub use crate::thread::{current_experiment, number_next, received, stamp};
}

/// The classic API.
pub mod runner {
    pub use crate::runner::{ProfilingResults, RunError, Runner, RunnerConfig};
}

/// Whether threads can be sampled.
pub mod sampler {
    pub use crate::sampler::{CountedEvent, Event, PerfError, check};
}

/// A run from its start to its report.
pub mod session {
    pub use crate::session::{Outcome, Session, StartError};
}

/// Settings, from the environment or in code.
pub mod settings {
    pub use crate::settings::{
        ProgramClock, Scope, ScopeError, SettingError, Settings, is_own_file,
    };
}

/// Words for the user.
pub mod stderr {
    pub use crate::stderr::print;
}

/// Names of functions and lines.
pub mod symbols {
    pub use crate::symbols::{Place, SymbolError, of_task};
}

/// Targets: what is virtually sped up.
pub mod target {
    pub use crate::target::{Target, TaskTargets, target};
}

/// State of the calling thread, and events on it.
pub mod thread {
    pub use crate::thread::{
        BeforeWake, Blocking, CaughtUp, Entered, Poll, Polled, Stay, after_final_wake, before_wake,
        blocked, blocking_is_seen, came, catch_up, catch_up_before_waking, enable, enter,
        exit_under, handed_back, in_pool, is_busy_worker, leave, ledger, model, noticed, number,
        parked, parked_since, participant_at, pass_on, record_wait, register, spawns, sync_point,
        takes_part, unparked, virtual_at, virtual_now, wait_begins, wait_ends, wakes_in,
        was_enabled, when_of_a_runtime, when_switched, within,
    };
}

/// Units of time, and speedups.
pub mod time {
    pub use crate::time::{Nanos, Real, Speedup, Virtual};
}

/// A word where nothing has switched profiling on.
pub mod unstarted {
    pub use crate::unstarted::would_be_profiled;
}

/// Tasks that nobody wrapped, as a runtime reports them.
pub mod unwrapped {
    pub use crate::unwrapped::{How, Spawned, Task, Tasks, install, installed};
}

/// Waits of tasks, and what ended them.
pub mod wait {
    pub use crate::wait::{Cause, Ended};
}

/// Tasks that yield of their own accord.
pub mod yields {
    pub use crate::yields::Yields;
}

/// Where wall time goes.
pub mod wall {
    pub use crate::wall::*;
}

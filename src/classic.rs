//! The classic API: programs of plain threads, whose lines are sampled.

use crate::stderr::say;
use andweorc_core::hooks::runner::{ProfilingResults, RunError, Runner};
use andweorc_core::hooks::sampler::{self, PerfError};
use andweorc_core::hooks::settings::{SettingError, Settings};
use andweorc_core::hooks::unstarted;
use andweorc_profile::plain;

/// Reads the settings and says whether profiling is on: whether `ANDWEORC_ENABLED` is set. Call it
/// first in `main`, and begin to profile only if it says so.
///
/// # Errors
///
/// When a setting is malformed or unknown.
///
/// ```no_run
/// if andweorc::init()? {
///     std::thread::spawn(|| andweorc::run_experiments("item"));
/// }
/// # Ok::<(), andweorc::SettingError>(())
/// ```
pub fn init() -> Result<bool, SettingError> {
    let enabled = Settings::enabled_by_env()?;
    Settings::from_env()?;
    if enabled {
        andweorc_core::hooks::thread::enable();
    }
    Ok(enabled)
}

/// Makes the calling thread part of the profile: its CPU time is sampled, and it is delayed for
/// others. Does nothing when profiling is off.
///
/// # Errors
///
/// When the kernel gives no perf events: the thread is delayed for others, but its own lines are
/// not seen.
pub fn start_profiling() -> Result<(), PerfError> {
    if andweorc_core::hooks::enabled() {
        return match andweorc_core::hooks::thread::register() {
            Some(_) => sampler::check(),
            None => Ok(()),
        };
    }
    unstarted::would_be_profiled();
    Ok(())
}

/// Holds experiments on the hottest lines of all threads that [started profiling](start_profiling),
/// and prints the ranking to stderr. Blocks meanwhile. `ANDWEORC_SCOPE` says which lines can be
/// targets. See [`runner`](crate::runner) for more than the defaults.
///
/// # Errors
///
/// As [`Runner::run`].
pub fn run_experiments(progress_point_name: &str) -> Result<ProfilingResults, RunError> {
    // `init` has refused settings that can't be read.
    let scope = Settings::from_env().map(|settings| settings.scope).unwrap_or_default();
    let results = Runner::new().with_scope(scope).run(progress_point_name)?;
    let point = plain::name(progress_point_name);
    say(&format!("What would raise the throughput of {point}:\n{results}"));
    Ok(results)
}

//! The programs that the tests run: the logs of one are those of another.

use std::env;
use std::process::exit;
use std::time::{Duration, Instant};
use tracing::{Level, debug, debug_span, error, info, info_span, trace, trace_span, warn};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{EnvFilter, fmt, prelude::*, registry};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "SWITCH_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = env::var(PROGRAM) else { return };
    match program.as_str() {
        "fmt().init()" => tracing_subscriber::fmt().init(),
        "a level, and andweorc" => {
            let logs = fmt::layer().with_filter(LevelFilter::INFO);
            tracing_subscriber::registry().with(logs).with(andweorc::layer()).init();
        }
        "fmt::init()" => tracing_subscriber::fmt::init(),
        "with_env_filter" => {
            tracing_subscriber::fmt().with_env_filter(EnvFilter::from_default_env()).init();
        }
        "registry" => registry().with(EnvFilter::from_default_env()).with(fmt::layer()).init(),
        "RUST_LOG, and andweorc" => {
            let logs = fmt::layer().with_filter(EnvFilter::from_default_env());
            tracing_subscriber::registry().with(logs).with(andweorc::layer()).init();
        }
        unknown => panic!("no program {unknown}"),
    }
    // The first one comes before andweorc knows the call sites.
    for id in 0..3 {
        request(id);
    }
    let time = env::var("LOGS_TEST_MILLIS").map_or(0, |millis| millis.parse().unwrap());
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(time) {
        request(3);
    }
    exit(DONE);
}

/// Logs at each level, inside of spans of each level.
fn request(id: u32) {
    info_span!("request", id).in_scope(|| {
        log("in request");
        debug_span!("query", table = "orders").in_scope(|| log("in query"));
        trace_span!(target: "elsewhere", "row").in_scope(|| log("in row"));
        info!(name: "done", id, "a named event");
        debug!(name: "seen", id, "a more verbose one");
    });
    log("outside");
}

fn log(place: &str) {
    error!(place, "failed");
    warn!(place, "slow");
    info!(target: "elsewhere", place, "began");
    info!(place, "goes on");
    debug!(place, "detail");
    trace!(place, "all");
    log::info!("by the crate log, {place}");
    log::debug!("by the crate log, in detail, {place}");
    if tracing::enabled!(Level::DEBUG) {
        info!(place, "with what is costly to say");
    }
}

//! Cost of a part of a service, which an environment variable can really reduce.

use crate::Result;
use crate::parts::dial;
use crate::work::{Cost, Pace};
use std::env;

/// Pace of the machine: `CHAIN_PACE`, or measured.
pub(crate) fn pace() -> Result<Pace> {
    match env::var("CHAIN_PACE") {
        Ok(rounds) => Ok(Pace::new(rounds.parse()?)),
        Err(_) => Ok(Pace::measure()),
    }
}

/// Work of the part `name` that takes `us` microseconds, reduced as `DIAL_NAME` says.
pub(crate) fn work(name: &str, us: u32, pace: Pace) -> Result<Cost> {
    dialled(name, Cost::work(us, pace))
}

/// Wait of the part `name` for the world outside, of `us` microseconds, reduced as `DIAL_NAME`
/// says.
pub(crate) fn wait(name: &str, us: u32) -> Result<Cost> {
    dialled(name, Cost::new(us))
}

fn dialled(name: &str, cost: Cost) -> Result<Cost> {
    let variable = dial(name);
    if let Ok(text) = env::var(&variable) {
        let left = text.parse().ok().filter(|left| (0.0..=1.0).contains(left));
        let left: f64 =
            left.ok_or_else(|| format!("{variable}={text} is no number from 0 to 1"))?;
        cost.reduce(1.0 - left);
    }
    Ok(cost)
}

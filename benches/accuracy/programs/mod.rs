//! The programs. Costs are in microseconds; what makes a program's truth is said where it is defined.

mod batches;
mod contention;
mod handlers;
mod http;
mod lines;
mod locks;
mod messages;
mod offload;
mod pipelines;
mod threads;

use crate::program::Program;

/// Those whose targets are lines and functions.
pub(crate) fn sampled() -> impl Iterator<Item = &'static Program> {
    lines::PROGRAMS.iter()
}

/// Those whose targets are timed. `--quick` takes every third, and neighbours are of one family.
pub(crate) fn timed() -> impl Iterator<Item = &'static Program> {
    [
        pipelines::PROGRAMS,
        handlers::PROGRAMS,
        locks::PROGRAMS,
        messages::PROGRAMS,
        batches::PROGRAMS,
        offload::PROGRAMS,
        threads::PROGRAMS,
        contention::PROGRAMS,
        http::PROGRAMS,
    ]
    .into_iter()
    .flatten()
}

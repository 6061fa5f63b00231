//! The programs. Costs are in microseconds; what makes a program's truth is said where it is
//! defined.

mod batches;
mod clocked;
mod contention;
mod handlers;
mod http;
mod http2;
mod locks;
mod messages;
mod offload;
mod pipelines;
mod plain;
mod rayon;
mod services;
mod sockets;
mod threads;
mod unmarked;

use crate::program::Program;

/// Returns the programs of which only samples can tell anything.
pub(crate) fn unmarked() -> impl Iterator<Item = &'static Program> {
    unmarked::PROGRAMS.iter()
}

/// Returns the programs whose parts can be timed. `--quick` takes every third, and neighbours are
/// of one family.
pub(crate) fn timed() -> impl Iterator<Item = &'static Program> {
    [
        pipelines::PROGRAMS,
        handlers::PROGRAMS,
        locks::PROGRAMS,
        messages::PROGRAMS,
        batches::PROGRAMS,
        clocked::PROGRAMS,
        offload::PROGRAMS,
        plain::PROGRAMS,
        threads::PROGRAMS,
        contention::PROGRAMS,
        http::PROGRAMS,
        sockets::PROGRAMS,
        services::PROGRAMS,
        rayon::PROGRAMS,
        http2::PROGRAMS,
    ]
    .into_iter()
    .flatten()
}

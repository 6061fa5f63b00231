//! The programs. Costs are in microseconds; what makes a program's truth is said where it is defined.

mod handlers;
mod locks;
mod messages;
mod pipelines;

use crate::program::Program;

/// All of them. `--quick` takes every third, so neighbours are of one family.
pub(crate) fn all() -> impl Iterator<Item = &'static Program> {
    [pipelines::PROGRAMS, handlers::PROGRAMS, locks::PROGRAMS, messages::PROGRAMS]
        .into_iter()
        .flatten()
}

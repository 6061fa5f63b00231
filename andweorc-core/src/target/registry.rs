//! The targets of this process.

use super::Target;
use crate::process::process;
use andweorc_profile::TargetKind;

/// Whether this is the id of the task of the main function.
#[inline]
pub(crate) fn is_main(id: u32) -> bool {
    process().targets.is_main(id)
}

/// The target of this kind, name and place; registers it on the first call. Callers cache the
/// answer: this takes a lock. A long name is known by what
/// [`plain::cut_name`](andweorc_profile::plain::cut_name) leaves of it, which differs for each
/// whole name.
pub fn target(
    kind: TargetKind,
    name: &str,
    file: Option<&str>,
    line: Option<u32>,
) -> &'static Target {
    process().targets.get(kind, name, file, line)
}

/// All targets so far, by id.
pub fn targets() -> Vec<&'static Target> {
    process().targets.all()
}

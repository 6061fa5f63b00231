//! The points of this process.

use super::{Point, PointKind};
use crate::process::process;
use std::sync::atomic::Ordering;

/// The point of this kind, name and place; registers it on the first call. `explicit` says that the
/// user wrote it down, rather than that a span came by. Callers cache the answer: this takes a
/// lock. A long name is known by what [`plain::cut_name`](andweorc_profile::plain::cut_name)
/// leaves of it, which differs for each whole name.
pub fn point(
    kind: PointKind,
    name: &str,
    file: Option<&str>,
    line: Option<u32>,
    explicit: bool,
) -> &'static Point {
    process().points.get(kind, name, file, line, explicit)
}

/// All points so far, by id.
pub fn points() -> Vec<&'static Point> {
    process().points.all()
}

/// How many intervals were ended on a thread where they had not begun. They are measured nowhere.
pub fn unmatched() -> u64 {
    process().points.unmatched.load(Ordering::Relaxed)
}

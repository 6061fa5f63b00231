//! Allocations as a file for `dh_view.html`, the viewer of valgrind's DHAT (file version 2, in its
//! manual under "File Format").
//!
//! Each call chain of a target is one *program point*, with the target as the outermost frame; a
//! target in which nothing was sampled is one by itself. There are totals alone: lifetimes and the
//! heap at its peak are not known, which the file says (`bklt`), so that the viewer leaves them
//! out. The unit of time is the microsecond.

use super::stacks::{Frame, Sample, Stacks};
use crate::report::place;
use andweorc_profile::plain;
use andweorc_profile::report::named;
use serde::Serialize;

/// The names of the fields are those of the format.
#[derive(Debug, Serialize)]
struct File<'a> {
    #[serde(rename = "dhatFileVersion")]
    version: u32,
    /// Kind of the profile, as the viewer shows it.
    mode: &'static str,
    /// The verb that the viewer says for "allocated".
    verb: &'static str,
    /// Whether lifetimes of blocks are known.
    bklt: bool,
    /// Whether accesses to blocks are known.
    bkacc: bool,
    /// Unit of time, and of a million of them.
    tu: &'static str,
    #[serde(rename = "Mtu")]
    million: &'static str,
    cmd: &'a str,
    pid: u32,
    /// Time at the end.
    te: u64,
    pps: Vec<ProgramPoint>,
    /// Frames, the first of which is the root.
    ftbl: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ProgramPoint {
    /// Bytes and blocks in all.
    tb: u64,
    tbk: u64,
    /// Its frames, as indices.
    fs: Vec<usize>,
}

/// The file of these stacks, which are those of allocations.
pub(super) fn dhat(stacks: &Stacks) -> String {
    let mut ftbl = vec!["[root]".to_owned()];
    ftbl.extend(stacks.frames.iter().map(frame));
    let point = |of: &Sample| ProgramPoint {
        tb: of.values[1],
        tbk: of.values[0],
        // The innermost is first.
        fs: of.stack.iter().rev().map(|frame| frame + 1).collect(),
    };
    let file = File {
        version: 2,
        mode: "andweorc",
        verb: "Allocated",
        bklt: false,
        bkacc: false,
        tu: "us",
        million: "s",
        cmd: &stacks.program,
        // The profile does not know it.
        pid: 0,
        te: stacks.measured.iter().map(|of| of.real_ns).sum::<u64>() / 1_000,
        pps: stacks.measured.iter().flat_map(|of| &of.samples).map(point).collect(),
        ftbl,
    };
    let json = serde_json::to_string(&file).expect("names are strings and numbers are numbers");
    plain::json(json) + "\n"
}

/// A target as a frame: `task:audit (src/shop.rs:40)`.
fn frame(of: &Frame) -> String {
    let label = of.kind.map_or_else(|| of.name.clone(), |kind| named(kind, &of.name));
    match place(&of.name, of.file.as_deref(), of.line) {
        Some(place) => format!("{label} ({place})"),
        None => label,
    }
}

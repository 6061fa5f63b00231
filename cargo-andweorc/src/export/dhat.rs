//! Allocations as a file for `dh_view.html`, the viewer of valgrind's DHAT (file version 2, in its
//! manual under "File Format").
//!
//! Each target is one *program point* with one frame. It has totals alone: lifetimes and the heap
//! at its peak are not known, which the file says (`bklt`), so that the viewer leaves them out. The
//! unit of time is the microsecond.

use crate::report::place;
use andweorc_profile::Run;
use andweorc_profile::estimate::{self, AllocationSummary};
use andweorc_profile::plain;
use andweorc_profile::report::allocation_label;
use serde::Serialize;

/// The names of the fields are those of the format.
#[derive(Debug, Serialize)]
struct File {
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
    cmd: String,
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
    fs: [usize; 1],
}

/// The file of these runs.
///
/// # Errors
///
/// When no allocations were counted.
pub(super) fn dhat(runs: &[Run]) -> Result<String, String> {
    let allocations = estimate::analyse(runs).allocations;
    if allocations.is_empty() {
        return Err(
            "no allocations were counted in this profile: make `andweorc::Alloc` the allocator of \
             the program (feature `alloc`, docs/book/src/how-to/allocations.md), and profile it \
             again"
                .to_owned(),
        );
    }
    let mut ftbl = vec!["[root]".to_owned()];
    ftbl.extend(allocations.iter().map(frame));
    let point = |(i, of): (usize, &AllocationSummary)| ProgramPoint {
        tb: of.bytes,
        tbk: of.count,
        fs: [i + 1],
    };
    let stretches = runs.iter().flat_map(|run| &run.allocations);
    let file = File {
        version: 2,
        mode: "andweorc",
        verb: "Allocated",
        bklt: false,
        bkacc: false,
        tu: "us",
        million: "s",
        cmd: runs.first().map_or_else(String::new, |run| run.header.program.clone()),
        // The profile does not know it.
        pid: 0,
        te: stretches.map(|it| it.real_ns).sum::<u64>() / 1_000,
        pps: allocations.iter().enumerate().map(point).collect(),
        ftbl,
    };
    let json = serde_json::to_string(&file).expect("names are strings and numbers are numbers");
    Ok(plain::json(json) + "\n")
}

/// A target as a frame: `task:audit (src/shop.rs:40)`.
fn frame(of: &AllocationSummary) -> String {
    let label = allocation_label(of);
    match place(&of.name, of.file.as_deref(), of.line) {
        Some(place) => format!("{label} ({})", plain::name(&place)),
        None => label,
    }
}

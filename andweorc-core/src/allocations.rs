//! Allocations of the program by the target that makes them, where its allocator is that of the
//! crate `andweorc-alloc`.
//!
//! The allocator keeps a *mark* with each block that is made while andweorc is on: the target that
//! the thread was in, and in which of its visits. By that mark the block is taken off that target
//! again, whichever thread frees it. A block without a mark, from before andweorc was on or of a
//! thread of its own, is never counted.
//!
//! All that the allocator calls here may be called anywhere: it allocates nothing, takes no lock,
//! has no thread-local with a destructor, and is as good in a child of fork.

pub(crate) mod number;
mod poisson;
pub(crate) mod sampled;
pub(crate) mod stacks;
mod table;

use crate::counter;
use crate::target::targets;
use crate::thread::{self, Visit};
use andweorc_profile::{AllocationsRecord, TargetAllocations};
pub use number::left_out;
use number::number;
use table::{Shard, TARGETS, Table};

#[cfg(not(loom))]
static TABLE: Table = Table::new();

#[cfg(loom)]
loom::lazy_static! {
    static ref TABLE: Table = Table::new();
}

/// A note kept with a block: its target, and the visit in which it was made.
///
/// The lowest 16 bits are the place of its target in the table, plus one; above them is the number
/// of the thread, 20 bits, and that of its visit, 28 bits. Both numbers begin anew when they have
/// been used up, which only can make a block look as if it had been freed sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

const _: () = assert!(TARGETS < 1 << 16, "places fit in a mark");
const _: () = assert!(number::MAX < 1 << (VISIT - THREAD), "numbers of threads fit in a mark");

const THREAD: u32 = 16;
const VISIT: u32 = 36;

impl Mark {
    /// The mark of a block that is not counted.
    pub const NONE: Mark = Mark(0);

    /// The mark as the allocator keeps it.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The mark that was kept as these bits.
    #[inline]
    pub fn from_bits(bits: u64) -> Mark {
        Mark(bits)
    }

    #[inline]
    fn of(visit: Visit, thread: u32) -> Mark {
        let place = table::place(visit.target) as u64 + 1;
        Mark(u64::from(visit.number) << VISIT | u64::from(thread) << THREAD | place)
    }

    /// Where its target is in the table.
    #[inline]
    fn place(self) -> Option<usize> {
        (self.0 as usize & 0xffff).checked_sub(1)
    }

    /// Whether a block of this mark was made in the visit in which the calling thread is now. Never
    /// so for those made outside of all targets, where no visit ends.
    #[inline]
    fn is_of(self, visit: Visit, thread: u32) -> bool {
        let now = Mark::of(visit, thread);
        (self.0 ^ now.0) >> THREAD == 0 && self.0 & 0xffff != 1
    }
}

/// The calling thread has allocated a block of so many bytes. Returns the mark to keep with it.
#[inline]
pub fn allocated(size: usize) -> Mark {
    let Some(thread) = number() else { return Mark::NONE };
    let visit = thread::visit();
    sampled::allocated(thread, size, visit.target);
    let place = table::place(visit.target);
    match counter::own_number() {
        Some(number) => TABLE.allocated(Shard::owned(number), place, size as u64),
        None => allocated_among_others(thread, place, size as u64),
    }
    Mark::of(visit, thread)
}

/// Counts on a thread that has no shard of its own.
#[cold]
#[inline(never)]
fn allocated_among_others(thread: u32, place: usize, size: u64) {
    TABLE.allocated(Shard::shared(thread), place, size);
}

/// The calling thread frees a block of so many bytes with this mark.
#[inline]
pub fn freed(mark: Mark, size: usize) {
    let Some(place) = mark.place() else { return };
    let thread = number().unwrap_or(0);
    let churned = mark.is_of(thread::visit(), thread);
    match counter::own_number() {
        Some(number) => TABLE.freed(Shard::owned(number), place, size as u64, churned),
        None => freed_among_others(thread, place, size as u64, churned),
    }
}

/// Counts on a thread that has no shard of its own.
#[cold]
#[inline(never)]
fn freed_among_others(thread: u32, place: usize, size: u64, churned: bool) {
    TABLE.freed(Shard::shared(thread), place, size, churned);
}

/// Allocations since andweorc was on first, by target; none where the program has another
/// allocator.
#[derive(Clone, Debug)]
pub struct Snapshot(Vec<TargetAllocations>);

impl Snapshot {
    /// Reads what was counted so far.
    pub fn read() -> Snapshot {
        let highest = targets().last().map_or(0, |target| target.id());
        let places = 0..=highest.min(TARGETS as u32 - 1);
        Snapshot(places.filter_map(|target| TABLE.read(target)).collect())
    }

    /// The record of the stretch since `before`, of so many ns. `None` where nothing was allocated
    /// or freed in it, and nothing is held.
    pub fn since(
        mut self,
        before: &Snapshot,
        seq: Option<u32>,
        real_ns: u64,
    ) -> Option<AllocationsRecord> {
        for now in &mut self.0 {
            let Some(before) = before.0.iter().find(|it| it.target == now.target) else { continue };
            now.bytes -= before.bytes;
            now.count -= before.count;
            now.freed_bytes -= before.freed_bytes;
            now.freed_count -= before.freed_count;
            now.churned_bytes -= before.churned_bytes;
            now.churned_count -= before.churned_count;
        }
        self.0.retain(|it| it.count > 0 || it.freed_count > 0 || it.live_count > 0);
        (!self.0.is_empty()).then_some(AllocationsRecord { seq, real_ns, targets: self.0 })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

//! Cost of counting allocations: a block allocated and freed by the system's allocator, and by
//! andweorc's around it, in turns. Neither is the allocator of this program.

use crate::rounds::{Difference, compare};
use andweorc_alloc::Alloc;
use andweorc_core::experiment::Experimenter;
use andweorc_core::target::{Target, target};
use andweorc_core::{clock, thread};
use andweorc_profile::TargetKind;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;

/// How many blocks are held at a time: an allocator's list of the blocks that were just freed is
/// not all that is measured.
const HELD: usize = 32;

const BLOCKS: u32 = 64_000;

/// Sizes of the blocks.
const SIZES: [usize; 3] = [16, 64, 1024];

/// Measures both states, and prints for each size how many of andweorc's are done in the time of
/// one of the system's.
pub(crate) fn measure() -> crate::Result<()> {
    let mut print = |mode: &str, of: &str, cost: Difference| {
        println!("  {mode:<11}   {of:<24}{cost}, ratio {:.3}", cost.ratio());
    };
    tell("not enabled", &mut print);
    let _on = Experimenter::new().ok_or("andweorc is on already")?;
    tell("enabled", &mut print);
    Ok(())
}

/// Tells what is added to an allocation and its free, as andweorc is at present.
pub(crate) fn tell(mode: &str, tell: &mut impl FnMut(&str, &str, Difference)) {
    let target = target(TargetKind::Span, "cost: allocates", None, None);
    // From its first visit on the thread has a shard of the counters to itself.
    visited(target, || ());
    for size in SIZES {
        tell(mode, &format!("alloc + free, {size} bytes"), visited(target, || cost(size)));
    }
}

fn visited<T>(target: &Target, run: impl FnOnce() -> T) -> T {
    let visit = thread::enter(target, clock::now());
    let result = run();
    thread::leave(target, &visit, true, clock::now());
    result
}

fn cost(size: usize) -> Difference {
    static COUNTED: Alloc = Alloc::system();
    let layout = black_box(Layout::from_size_align(size, 8).expect("it is small"));
    compare(BLOCKS, || allocate_and_free(&System, layout), || allocate_and_free(&COUNTED, layout))
}

/// Allocates blocks, a few at a time, and frees them.
fn allocate_and_free(allocator: &impl GlobalAlloc, layout: Layout) {
    for _ in 0..BLOCKS as usize / HELD {
        // SAFETY: the layout has a size, and each block is freed once, by its layout.
        unsafe {
            let held: [*mut u8; HELD] = std::array::from_fn(|_| black_box(allocator.alloc(layout)));
            held.into_iter().for_each(|block| allocator.dealloc(block, layout));
        }
    }
}

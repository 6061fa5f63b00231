//! The inner allocator gets back what it handed out, by the layout that it was asked for, whatever
//! is on or off in between.

use andweorc_alloc::Alloc;
use andweorc_core::experiment::Experimenter;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, which knows what it handed out. Its own table is not allocated here.
#[derive(Default)]
struct Checked(Mutex<HashMap<usize, Layout>>);

impl Checked {
    fn hand_out(&self, block: *mut u8, layout: Layout) -> *mut u8 {
        assert!(layout.size() > 0);
        assert!(block.addr().is_multiple_of(layout.align()));
        assert_eq!(self.0.lock().unwrap().insert(block.addr(), layout), None);
        block
    }

    fn take_back(&self, block: *mut u8, layout: Layout) {
        assert_eq!(self.0.lock().unwrap().remove(&block.addr()), Some(layout));
    }
}

// SAFETY: all is the system allocator's.
unsafe impl GlobalAlloc for Checked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        self.hand_out(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        self.hand_out(unsafe { System.alloc_zeroed(layout) }, layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.take_back(block, layout);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.take_back(block, layout);
        let new = Layout::from_size_align(new_size, layout.align()).unwrap();
        // SAFETY: the caller keeps the contract of `realloc`.
        self.hand_out(unsafe { System.realloc(block, layout, new_size) }, new)
    }
}

/// A block whose bytes are known.
struct Block {
    at: *mut u8,
    layout: Layout,
    fill: u8,
}

impl Block {
    fn new(alloc: &Alloc<Checked>, size: usize, align: usize, zeroed: bool, fill: u8) -> Block {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the layout has a size, and the bytes that are read were allocated as zeroes.
        let at = unsafe {
            if zeroed {
                let at = alloc.alloc_zeroed(layout);
                assert!(std::slice::from_raw_parts(at, size).iter().all(|byte| *byte == 0));
                at
            } else {
                alloc.alloc(layout)
            }
        };
        assert!(at.addr().is_multiple_of(align), "{layout:?}");
        let block = Block { at, layout, fill };
        block.write();
        block
    }

    fn write(&self) {
        // SAFETY: so many bytes were allocated.
        unsafe { self.at.write_bytes(self.fill, self.layout.size()) };
    }

    fn check(&self, size: usize) {
        // SAFETY: so many bytes were allocated and written.
        let bytes = unsafe { std::slice::from_raw_parts(self.at, size) };
        assert!(bytes.iter().all(|byte| *byte == self.fill), "{:?}", self.layout);
    }

    fn resize(&mut self, alloc: &Alloc<Checked>, size: usize) {
        self.check(self.layout.size());
        let old = self.layout.size();
        // SAFETY: the block is one of this allocator's by this layout, and the size is no zero.
        self.at = unsafe { alloc.realloc(self.at, self.layout, size) };
        self.layout = Layout::from_size_align(size, self.layout.align()).unwrap();
        assert!(self.at.addr().is_multiple_of(self.layout.align()), "{:?}", self.layout);
        self.check(old.min(size));
        self.write();
    }

    fn free(self, alloc: &Alloc<Checked>) {
        self.check(self.layout.size());
        // SAFETY: the block is one of this allocator's by this layout.
        unsafe { alloc.dealloc(self.at, self.layout) };
    }
}

/// There is one experimenter at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Switches andweorc on or off.
fn switch(on: &mut Option<Experimenter>, to: bool) {
    *on = None;
    if to {
        *on = Some(Experimenter::new().expect("one at a time"));
    }
    assert_eq!(andweorc_core::enabled(), to);
}

const SIZES: [usize; 9] = [1, 7, 8, 15, 16, 17, 100, 4096, 300_000];

#[test]
fn blocks_of_all_layouts_come_back_as_they_were_handed_out() {
    let _alone = alone();
    let alloc = Alloc::new(Checked::default());
    let mut on = None;
    // On or off as a block is made, as it is resized, and as it is freed.
    for phases in 0..8 {
        let mut blocks = Vec::new();
        switch(&mut on, phases & 1 != 0);
        for align in (0..13).map(|shift| 1 << shift) {
            for size in SIZES {
                for zeroed in [false, true] {
                    let fill = 1 + blocks.len() as u8 % 250;
                    blocks.push(Block::new(&alloc, size, align, zeroed, fill));
                }
            }
        }
        switch(&mut on, phases & 2 != 0);
        for (i, block) in blocks.iter_mut().enumerate() {
            block.resize(&alloc, SIZES[(i * 5 + 3) % SIZES.len()]);
        }
        switch(&mut on, phases & 4 != 0);
        blocks.into_iter().for_each(|block| block.free(&alloc));
    }
    drop(on);
}

#[test]
fn sizes_that_no_layout_has_are_refused_and_the_block_is_left() {
    let _alone = alone();
    let alloc = Alloc::system();
    let most = isize::MAX as usize;
    let mut on = None;
    for is_on in [false, true] {
        switch(&mut on, is_on);
        let layout = Layout::from_size_align(most, 1).unwrap();
        // SAFETY: the layouts have a size, and the block is one of this allocator's.
        unsafe {
            assert!(alloc.alloc(layout).is_null());
            assert!(alloc.alloc_zeroed(layout).is_null());
            let small = Layout::from_size_align(24, 8).unwrap();
            let block = alloc.alloc(small);
            block.write_bytes(7, 24);
            assert!(alloc.realloc(block, small, most - 7).is_null());
            assert_eq!(std::slice::from_raw_parts(block, 24), [7; 24]);
            alloc.dealloc(block, small);
        }
    }
}

#[test]
fn block_of_the_inner_allocator_itself_can_be_freed() {
    let _alone = alone();
    let alloc = Alloc::system();
    let mut on = None;
    for is_on in [false, true] {
        switch(&mut on, is_on);
        for size in SIZES {
            let layout = Layout::from_size_align(size.max(16), 8).unwrap();
            // SAFETY: the system's blocks of 16 bytes or more are aligned to 16, and freed by the
            // C library's `free`, whatever their layout.
            unsafe { alloc.dealloc(System.alloc(layout), layout) };
        }
    }
}

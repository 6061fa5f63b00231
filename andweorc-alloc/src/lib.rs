//! **Internal to `andweorc`: no stability.** Use this crate through the feature `alloc` of the
//! facade crate `andweorc`.
//!
//! [`Alloc`] is an allocator around another one. While andweorc is on it counts what is allocated,
//! by the span or the kind of task that the thread is in
//! ([`andweorc_core::hooks::allocations`]).
//!
//! # Where a block's target is kept
//!
//! A block is taken off the target that allocated it when it is freed, by whichever thread. So its
//! target must be found from its address. A table by address costs a lock or a search for each
//! block; a *mark* of 8 bytes before the block costs one access to a cache line that is there
//! anyway. It also costs memory, and no block should pay for it while andweorc is off. So a block
//! has a mark or none, and its address tells which:
//!
//! | alignment | mark | what the inner allocator is asked for | address, from a multiple of 16 |
//! |---|---|---|---|
//! | up to 8 | none | the size, 16 at least, aligned to 16 | 0 bytes |
//! | up to 8 | 8 bytes | 8 more, 16 at least, aligned to 16 | 8 bytes |
//! | from 16 on | always | its alignment more | 0 bytes |
//!
//! The inner allocator aligns to 16 without a cost where it is the system's, jemalloc or mimalloc
//! on 64-bit machines: their blocks of 16 bytes or more are aligned so. Blocks with a larger
//! alignment are few, and have always room for a mark, of which the last 8 bytes are used. So while
//! andweorc is off, allocating costs a relaxed load and a comparison, freeing a test of the
//! address, and memory is that of the inner allocator, but for blocks aligned to 16 or more.
//!
//! A block that the inner allocator handed out by itself, aligned to 16, is freed here as one
//! without a mark, if its alignment is 8 at most; one of ours must not be freed by the inner
//! allocator.

#[cfg(not(target_pointer_width = "64"))]
compile_error!(
    "andweorc's allocator tells blocks apart by their addresses on 64-bit machines alone"
);

use andweorc_core::hooks::allocations::{Mark, allocated, freed};
use andweorc_core::hooks::enabled;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

/// An allocator that counts, around another one that allocates.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: andweorc_alloc::Alloc = andweorc_alloc::Alloc::system();
/// # fn main() {}
/// ```
///
/// While andweorc is off it counts nothing. It asks the inner allocator for blocks aligned to 16 at
/// least, and for blocks aligned to 16 or more it asks for their alignment in bytes more: there is
/// room for a mark.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alloc<A = System> {
    inner: A,
}

impl Alloc<System> {
    /// An allocator that counts what the system's allocates.
    pub const fn system() -> Alloc<System> {
        Alloc::new(System)
    }
}

impl<A> Alloc<A> {
    /// An allocator that counts what `inner` allocates.
    pub const fn new(inner: A) -> Alloc<A> {
        Alloc { inner }
    }
}

/// Bytes of a mark.
const MARK: usize = size_of::<u64>();

/// Alignment of all that the inner allocator is asked for, at least.
const ALIGN: usize = 16;

const _: () = assert!(2 * MARK == ALIGN, "an address tells whether there is a mark before it");

/// Whether all blocks of this layout have room for a mark.
#[inline]
fn is_always_marked(layout: Layout) -> bool {
    layout.align() > MARK
}

/// Whether there is room for a mark before this block.
#[inline]
fn is_marked(block: *mut u8, layout: Layout) -> bool {
    is_always_marked(layout) || block.addr() & MARK != 0
}

/// The layout of a block without a mark, as the inner allocator knows it. `None` where the size is
/// too large for any.
#[inline]
fn without_mark(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.max(ALIGN), ALIGN).ok()
}

/// Bytes before a marked block of this layout.
#[inline]
fn room(layout: Layout) -> usize {
    layout.align().max(MARK)
}

/// The layout of a marked block with its mark, as the inner allocator knows it. `None` where that
/// is too large for any.
#[inline]
fn with_mark(layout: Layout) -> Option<Layout> {
    let size = layout.size().checked_add(room(layout))?;
    Layout::from_size_align(size.max(ALIGN), layout.align().max(ALIGN)).ok()
}

/// The layout of a block aligned to 8 at most that has a mark: such blocks are told apart by their
/// sizes alone.
///
/// # Safety
///
/// The size is that of a layout.
#[inline]
unsafe fn narrow(size: usize) -> Layout {
    // SAFETY: a size that is one of a layout is one where the alignment is 1.
    unsafe { Layout::from_size_align_unchecked(size, 1) }
}

/// The mark of a block that the calling thread allocates now.
#[inline]
fn mark_of(size: usize) -> Mark {
    if enabled() { allocated(size) } else { Mark::NONE }
}

/// Marks a block of this layout, for which the inner allocator gave `base`, and returns it. Null,
/// if that is.
///
/// # Safety
///
/// `base` is null, or a block of [`with_mark`] of this layout.
#[inline]
unsafe fn mark(base: *mut u8, layout: Layout) -> *mut u8 {
    if base.is_null() {
        return base;
    }
    // SAFETY: the block at `base` begins with so many bytes of room, of which the last are those of
    // the mark; they are aligned to 8, as `base` and the room are.
    unsafe {
        let block = base.add(room(layout));
        block.cast::<u64>().sub(1).write(mark_of(layout.size()).to_bits());
        block
    }
}

/// The mark of a block.
///
/// # Safety
///
/// There is [room for one](is_marked).
#[inline]
unsafe fn mark_before(block: *mut u8) -> Mark {
    // SAFETY: `mark` has written it there.
    Mark::from_bits(unsafe { block.cast::<u64>().sub(1).read() })
}

impl<A: GlobalAlloc> Alloc<A> {
    /// Allocates a marked block, of zeroes or of anything.
    ///
    /// # Safety
    ///
    /// As for `alloc`: the layout has a size.
    #[inline(always)]
    unsafe fn alloc_marked<const ZEROED: bool>(&self, layout: Layout) -> *mut u8 {
        let Some(whole) = with_mark(layout) else { return ptr::null_mut() };
        // SAFETY: `whole` has a size, and is the layout with its mark.
        unsafe {
            let base =
                if ZEROED { self.inner.alloc_zeroed(whole) } else { self.inner.alloc(whole) };
            mark(base, layout)
        }
    }

    /// Frees a marked block.
    ///
    /// # Safety
    ///
    /// As for `dealloc`, and there is [room for a mark](is_marked) before the block.
    #[inline(always)]
    unsafe fn dealloc_marked(&self, block: *mut u8, layout: Layout) {
        // SAFETY: there is a mark, as the caller says, and the block was allocated with its room by
        // this layout, which so is one.
        unsafe {
            freed(mark_before(block), layout.size());
            let whole = with_mark(layout).unwrap_unchecked();
            self.inner.dealloc(block.sub(room(layout)), whole);
        }
    }

    // None of these is inlined: they would be in the way of what is done while andweorc is off.

    /// Allocates a marked block of so many bytes, aligned to 8.
    ///
    /// # Safety
    ///
    /// The size is that of a layout, and not 0.
    #[inline(never)]
    unsafe fn alloc_narrow<const ZEROED: bool>(&self, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe { self.alloc_marked::<ZEROED>(narrow(size)) }
    }

    /// Allocates a block of a layout that is always marked.
    ///
    /// # Safety
    ///
    /// As for `alloc`.
    #[inline(never)]
    unsafe fn alloc_wide<const ZEROED: bool>(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        unsafe { self.alloc_marked::<ZEROED>(layout) }
    }

    /// Frees a block that [`alloc_narrow`](Alloc::alloc_narrow) has allocated.
    ///
    /// # Safety
    ///
    /// As for `dealloc`, by this size.
    #[inline(never)]
    unsafe fn dealloc_narrow(&self, block: *mut u8, size: usize) {
        // SAFETY: as the caller says.
        unsafe { self.dealloc_marked(block, narrow(size)) }
    }

    /// Frees a block of a layout that is always marked.
    ///
    /// # Safety
    ///
    /// As for `dealloc`.
    #[inline(never)]
    unsafe fn dealloc_wide(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller says.
        unsafe { self.dealloc_marked(block, layout) }
    }

    /// Resizes a marked block.
    ///
    /// # Safety
    ///
    /// As for `realloc`, and there is [room for a mark](is_marked) before the block.
    #[inline(never)]
    unsafe fn realloc_marked(&self, block: *mut u8, layout: Layout, new: Layout) -> *mut u8 {
        let (Some(whole), Some(new_whole)) = (with_mark(layout), with_mark(new)) else {
            return ptr::null_mut();
        };
        // SAFETY: the block was allocated with its room by `whole`, its mark is there until it is
        // resized, and the new size fits into a layout.
        unsafe {
            let before = mark_before(block);
            let base = self.inner.realloc(block.sub(room(layout)), whole, new_whole.size());
            if !base.is_null() {
                freed(before, layout.size());
            }
            mark(base, new)
        }
    }

    /// Moves a block without a mark to where one has room.
    ///
    /// # Safety
    ///
    /// As for `realloc`, and there is [no room](is_marked) before the block.
    #[cold]
    unsafe fn move_to_marked(&self, block: *mut u8, layout: Layout, new: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`: the new layout has a size, the two
        // blocks are apart, and both have the bytes that are copied.
        unsafe {
            let moved = self.alloc_narrow::<false>(new.size());
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(new.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

// SAFETY: all blocks are the inner allocator's, which is asked for no less than the layout wants,
// and gets each back by the layout and at the address that it knows. Blocks are aligned as the
// layout wants: marked ones lie 8 bytes, or their alignment, after a multiple of 16 or of it.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Alloc<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_always_marked(layout) {
            // SAFETY: the caller keeps the contract of `alloc`.
            return unsafe { self.alloc_wide::<false>(layout) };
        }
        if enabled() {
            // SAFETY: the caller keeps the contract of `alloc`.
            return unsafe { self.alloc_narrow::<false>(layout.size()) };
        }
        match without_mark(layout.size()) {
            // SAFETY: it has a size.
            Some(layout) => unsafe { self.inner.alloc(layout) },
            None => ptr::null_mut(),
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_always_marked(layout) {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            return unsafe { self.alloc_wide::<true>(layout) };
        }
        if enabled() {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            return unsafe { self.alloc_narrow::<true>(layout.size()) };
        }
        match without_mark(layout.size()) {
            // SAFETY: it has a size.
            Some(layout) => unsafe { self.inner.alloc_zeroed(layout) },
            None => ptr::null_mut(),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_always_marked(layout) {
            // SAFETY: the caller keeps the contract of `dealloc`.
            unsafe { self.dealloc_wide(block, layout) }
        } else if is_marked(block, layout) {
            // SAFETY: the caller keeps the contract of `dealloc`, and there is a mark.
            unsafe { self.dealloc_narrow(block, layout.size()) }
        } else {
            // SAFETY: by this layout it was allocated, which so is one.
            unsafe { self.inner.dealloc(block, without_mark(layout.size()).unwrap_unchecked()) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Ok(new) = Layout::from_size_align(new_size, layout.align()) else {
            return ptr::null_mut();
        };
        if is_marked(block, layout) {
            // SAFETY: the caller keeps the contract of `realloc`, and there is a mark.
            return unsafe { self.realloc_marked(block, layout, new) };
        }
        if enabled() {
            // SAFETY: the caller keeps the contract of `realloc`, and there is no mark.
            return unsafe { self.move_to_marked(block, layout, new) };
        }
        match (without_mark(layout.size()), without_mark(new_size)) {
            // SAFETY: by the old layout it was allocated, and the new size fits into a layout.
            (Some(old), Some(new)) => unsafe { self.inner.realloc(block, old, new.size()) },
            _ => ptr::null_mut(),
        }
    }
}

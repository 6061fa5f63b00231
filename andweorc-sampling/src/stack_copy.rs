//! Copies of the stacks of interrupted threads, for chains that frame pointers do not lead along.
//!
//! The handler copies the registers, and the thread's own stack from the stack pointer on, into one
//! of a fixed number of places that all threads share. The thread that reads the samples unwinds
//! from there by the tables of the code, and gives the place back. The kernel could copy too
//! (`PERF_SAMPLE_STACK_USER`), but needs a ring of locked memory for each thread, which the limit
//! on that has no room for, and does nothing where timers take the samples.
//!
//! A place that was never used takes no memory, since the statics begin as zeros.

use crate::walk::{self, COUNT};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are copied of a stack at most.
const MOST: usize = 32 << 10;

/// Copies that can be on their way: 8 MiB in all.
const PLACES: usize = 256;

const WORD: usize = size_of::<u64>();

/// A stack and the registers of its thread.
#[repr(C)]
struct Place {
    registers: [u64; COUNT],
    /// Address of the first byte of the copied part.
    start: usize,
    /// Words that were copied.
    length: usize,
    /// Whether all of the stack was copied, up to its outer end.
    is_whole: bool,
    words: [u64; MOST / WORD],
}

/// The places. One that is taken is used by nobody but who has its [`StackCopy`].
struct Places([UnsafeCell<Place>; PLACES]);

// SAFETY: who takes a place, by `TAKEN`, is the only one to use it until it is given back.
unsafe impl Sync for Places {}

static PLACE: Places = Places(
    [const {
        UnsafeCell::new(Place {
            registers: [0; COUNT],
            start: 0,
            length: 0,
            is_whole: false,
            words: [0; MOST / WORD],
        })
    }; PLACES],
);

/// Places in use. They are apart, so that a search for a free one touches none of the stacks.
static TAKEN: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];

/// A copy of a thread's stack and registers. Its place is free again when it is dropped.
#[derive(Debug, PartialEq, Eq)]
pub struct StackCopy {
    number: usize,
}

impl StackCopy {
    /// Copies what the calling thread had when it was interrupted. `None` where all places are
    /// taken, or the stack pointer is not inside `stack`. Async-signal-safe.
    ///
    /// # Safety
    ///
    /// `context` is the third argument of a handler that was installed with SA_SIGINFO, and `stack`
    /// the mapped stack of the calling thread, or empty.
    pub(crate) unsafe fn take(context: *const c_void, stack: &Range<usize>) -> Option<StackCopy> {
        // SAFETY: as the caller says.
        let (at, registers) =
            unsafe { (walk::Registers::of(context), walk::all_registers(context)) };
        let start = at.stack & !(WORD - 1);
        if !stack.contains(&start) {
            return None;
        }
        let copy = StackCopy::free()?;
        let length = (stack.end - start) / WORD;
        // SAFETY: the place is this copy's alone.
        let place = unsafe { &mut *PLACE.0[copy.number].get() };
        place.registers = registers;
        place.start = start;
        place.length = length.min(place.words.len());
        place.is_whole = length <= place.words.len();
        // SAFETY: so many words lie in the stack from `start` on, and there is room for them.
        unsafe { copy_words(start, place.words.as_mut_ptr(), place.length) };
        Some(copy)
    }

    /// Takes the first free place: as few as possible are ever used.
    fn free() -> Option<StackCopy> {
        let take = |taken: &AtomicBool| {
            // Acquire: pairs with the release in `drop`, before which the place was read. Relaxed
            // where it is taken: nothing is read of it.
            taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        TAKEN.iter().position(take).map(|number| StackCopy { number })
    }

    /// The number of its place; the copy stays until [`from_number`](StackCopy::from_number).
    pub(crate) fn into_number(self) -> usize {
        std::mem::ManuallyDrop::new(self).number
    }

    /// The copy that became this number, once only, on a thread that has seen all that happened
    /// before.
    pub(crate) fn from_number(number: usize) -> StackCopy {
        StackCopy { number }
    }

    fn place(&self) -> &Place {
        // SAFETY: the place is this copy's alone, and changed by `take` only, before there is one.
        unsafe { &*PLACE.0[self.number].get() }
    }

    /// The registers by their numbers in DWARF, and the instruction.
    #[cfg(feature = "symbols")]
    pub(crate) fn registers(&self) -> &[u64; COUNT] {
        &self.place().registers
    }

    /// The word at an address of the stack; `None` where it was not copied.
    #[cfg(feature = "symbols")]
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let place = self.place();
        let offset = usize::try_from(address).ok()?.checked_sub(place.start)?;
        let at = offset.is_multiple_of(WORD).then_some(offset / WORD)?;
        place.words[..place.length].get(at).copied()
    }

    /// Whether the copy reaches the outer end of the stack.
    pub fn is_whole(&self) -> bool {
        self.place().is_whole
    }
}

impl Drop for StackCopy {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `free`.
        TAKEN[self.number].store(false, Ordering::Release);
    }
}

/// How the chain of a copied stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEnd {
    /// At the start of the thread.
    Start,
    /// Before that, since more of the stack was in use than is copied, or there are more frames
    /// than are kept.
    CutOff,
    /// Before that, since the tables do not tell the caller.
    Lost,
}

/// Copies words of a stack. Other threads may write to variables there meanwhile, and sanitizers
/// poison what lies between them, so that no code of Rust may read it all.
///
/// # Safety
///
/// From `from` on so many words are mapped, and `into` has room for them.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_words(from: usize, into: *mut u64, words: usize) {
    // SAFETY: as the caller says. The ABI has the direction flag clear.
    unsafe {
        std::arch::asm!(
            "rep movsq",
            inout("rcx") words => _,
            inout("rsi") from => _,
            inout("rdi") into => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies words of a stack, as on x86-64.
///
/// # Safety
///
/// From `from` on so many words are mapped, and `into` has room for them.
#[cfg(target_arch = "aarch64")]
unsafe fn copy_words(from: usize, into: *mut u64, words: usize) {
    // SAFETY: as the caller says.
    unsafe {
        std::arch::asm!(
            "2:",
            "cbz {words}, 3f",
            "ldr {word}, [{from}], #8",
            "str {word}, [{into}], #8",
            "sub {words}, {words}, #1",
            "b 2b",
            "3:",
            words = inout(reg) words => _,
            from = inout(reg) from => _,
            into = inout(reg) into => _,
            word = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// Of other processors no stack pointer is known, so that nothing is ever copied.
///
/// # Safety
///
/// None.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn copy_words(_: usize, _: *mut u64, _: usize) {}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Held by a test that takes places.
    pub(crate) static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_place_is_one_copy_at_a_time_and_free_after_it() {
        let _alone = ALONE.lock().unwrap();
        let all: Vec<StackCopy> = std::iter::from_fn(StackCopy::free).collect();
        let mut numbers: Vec<usize> = all.iter().map(|copy| copy.number).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), all.len());
        let number = all.into_iter().next_back().unwrap().into_number();
        // All others were dropped, and this one is still taken.
        assert!(TAKEN[number].load(Ordering::SeqCst));
        drop(StackCopy::from_number(number));
        assert!(!TAKEN[number].load(Ordering::SeqCst));
    }

    #[test]
    fn words_are_copied_as_they_are() {
        let from: Vec<u64> = (7..107).collect();
        let mut into = vec![0; 101];
        // SAFETY: both are that long.
        unsafe { copy_words(from.as_ptr().expose_provenance(), into.as_mut_ptr(), 100) };
        assert_eq!(into[..100], from);
        assert_eq!(into[100], 0);
    }
}

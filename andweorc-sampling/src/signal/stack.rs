//! On which stack the handler works.
//!
//! The kernel begins the handler on the thread's alternate stack where it has one (SA_ONSTACK): the
//! thread may be in a coroutine, whose stack has no room for the handler's frame. But alternate
//! stacks are small too, 8 KiB most often, of which that frame alone takes some 3. So the handler
//! goes on where there is room: on the thread's own stack, below where it was interrupted; or else
//! on the alternate one, if that is large enough; or else nowhere.

use crate::walk::Registers;
use std::ffi::c_void;
use std::ops::Range;

/// The stack that the handler takes at most, in a build without optimisation, bytes.
const NEEDED: usize = 8192;

/// So many bytes below a thread's stack pointer are its own, and more.
const RED_ZONE: usize = 256;

/// The place to go on at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here,
    /// From this address downwards.
    Below(usize),
    Nowhere,
}

/// The stacks that there are.
#[derive(Debug)]
struct Stacks {
    /// The address of the handler.
    here: usize,
    /// The place at which the thread was interrupted.
    at: usize,
    /// The thread's own stack; empty if that is not known.
    own: Range<usize>,
    /// Its alternate stack; empty if it has none.
    alternate: Range<usize>,
}

impl Stacks {
    fn place(&self) -> Place {
        let top = self.at.saturating_sub(RED_ZONE) & !15;
        let is_in = |stack: &Range<usize>, at| stack.contains(&at) && at - stack.start >= NEEDED;
        if self.own.contains(&self.at) && is_in(&self.own, top) {
            return if self.own.contains(&self.here) { Place::Here } else { Place::Below(top) };
        }
        if is_in(&self.alternate, self.here) { Place::Here } else { Place::Nowhere }
    }
}

/// Calls `work` with `context` where there is room for it; says whether there was.
/// Async-signal-safe.
///
/// # Safety
///
/// `context` is the third argument of a signal handler that runs on this thread, and `own` its
/// stack, or empty.
pub(super) unsafe fn with_room(
    context: *mut c_void,
    own: Range<usize>,
    work: extern "C" fn(*mut c_void),
) -> bool {
    let stacks = Stacks {
        here: stack_pointer(),
        // SAFETY: as the caller says.
        at: unsafe { Registers::of(context) }.stack,
        own,
        // SAFETY: as the caller says.
        alternate: unsafe { alternate(context) },
    };
    match stacks.place() {
        Place::Here => work(context),
        // SAFETY: the thread was interrupted above, and uses nothing below while the handler runs.
        Place::Below(top) => unsafe { call_on(top, work, context) },
        Place::Nowhere => return false,
    }
    true
}

/// The alternate stack of the thread that was interrupted.
///
/// # Safety
///
/// `context` is the third argument of a signal handler.
unsafe fn alternate(context: *mut c_void) -> Range<usize> {
    // SAFETY: as the caller says.
    let stack = unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack };
    match stack.ss_flags & libc::SS_DISABLE {
        0 => stack.ss_sp.addr()..stack.ss_sp.addr() + stack.ss_size,
        _ => 0..0,
    }
}

/// The caller's stack pointer. The address of a local would not do: AddressSanitizer, for one,
/// keeps locals elsewhere.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn stack_pointer() -> usize {
    let at;
    // SAFETY: a register is read.
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) at, options(nomem, nostack, preserves_flags));
    }
    at
}

/// The caller's stack pointer, as on x86-64.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn stack_pointer() -> usize {
    let at;
    // SAFETY: a register is read.
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) at, options(nomem, nostack, preserves_flags));
    }
    at
}

/// Of other processors the registers are not known: the address of a local is the best there is.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn stack_pointer() -> usize {
    let local = 0_u8;
    (&raw const local).addr()
}

/// Calls `work` on another stack.
///
/// # Safety
///
/// From `top`, a multiple of 16, downwards there is a stack that nobody uses meanwhile.
#[cfg(target_arch = "x86_64")]
unsafe fn call_on(top: usize, work: extern "C" fn(*mut c_void), context: *mut c_void) {
    // SAFETY: the stack pointer is put back from a register that whoever is called leaves as it is.
    unsafe {
        std::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {work}",
            "mov rsp, r12",
            top = in(reg) top,
            work = in(reg) work,
            in("rdi") context,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// The caller's stack pointer, as on x86-64.
///
/// # Safety
///
/// The caller's stack pointer, as on x86-64.
#[cfg(target_arch = "aarch64")]
unsafe fn call_on(top: usize, work: extern "C" fn(*mut c_void), context: *mut c_void) {
    // SAFETY: the stack pointer is put back from a register that whoever is called leaves as it is.
    unsafe {
        std::arch::asm!(
            "mov x20, sp",
            "mov sp, {top}",
            "blr {work}",
            "mov sp, x20",
            top = in(reg) top,
            work = in(reg) work,
            in("x0") context,
            out("x20") _,
            clobber_abi("C"),
        );
    }
}

/// Of other processors the registers are not known, so that nobody was interrupted on a known
/// stack.
///
/// # Safety
///
/// None.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn call_on(_: usize, work: extern "C" fn(*mut c_void), context: *mut c_void) {
    work(context);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::walk;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A stack of 64 KiB, and one of 8.
    const OWN: Range<usize> = 0x10000..0x20000;
    const ALTERNATE: Range<usize> = 0x50000..0x52000;

    fn place(here: usize, at: usize, own: Range<usize>, alternate: Range<usize>) -> Place {
        Stacks { here, at, own, alternate }.place()
    }

    #[test]
    fn the_handler_goes_on_where_there_is_room() {
        let on_alternate = ALTERNATE.end - 4000;
        let below = Place::Below((0x1f008 - RED_ZONE) & !15);
        assert_eq!(place(on_alternate, 0x1f008, OWN, ALTERNATE), below);
        assert_eq!(place(0x1e000, 0x1f000, OWN, 0..0), Place::Here, "there is no alternate one");
        // The thread has used up its own stack nearly.
        assert_eq!(place(on_alternate, OWN.start + NEEDED, OWN, ALTERNATE), Place::Nowhere);
        // The thread is in a coroutine.
        assert_eq!(place(on_alternate, 0x80000, OWN, ALTERNATE), Place::Nowhere);
        assert_eq!(place(0x7ff00, 0x80000, OWN, 0..0), Place::Nowhere);
        let large = 0x50000..0x60000;
        assert_eq!(place(0x5f000, 0x80000, OWN, large), Place::Here);
    }

    static CALLED_AT: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn called(_: *mut c_void) {
        CALLED_AT.store(stack_pointer(), Ordering::SeqCst);
    }

    #[test]
    fn stack_pointer_is_on_the_own_stack() {
        let look = || (walk::own_stack(), stack_pointer());
        for (own, here) in [look(), std::thread::spawn(look).join().unwrap()] {
            assert!(own.contains(&here), "{here:x} in {own:x?}");
        }
    }

    #[test]
    fn work_is_done_on_the_other_stack() {
        let mut stack = vec![0_u128; 4096];
        let range = stack.as_mut_ptr_range();
        let top = range.end.expose_provenance();
        // SAFETY: nobody else uses the memory.
        unsafe { call_on(top, called, std::ptr::null_mut()) };
        let at = CALLED_AT.load(Ordering::SeqCst);
        assert!(range.start.addr() < at && at < top, "{at:x} in {range:?}");
    }
}

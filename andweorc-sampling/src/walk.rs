//! The call chain of the code that a signal interrupted: by frame pointers, as far as the code has
//! them.

use std::ffi::c_void;
use std::ops::Range;

/// Where a thread was interrupted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    pub(crate) instruction: usize,
    pub(crate) stack: usize,
    pub(crate) frame: usize,
}

impl Registers {
    /// From what the kernel hands to a signal handler.
    ///
    /// # Safety
    ///
    /// `context` is the third argument of a handler that was installed with SA_SIGINFO.
    #[cfg(target_arch = "x86_64")]
    pub(crate) unsafe fn of(context: *const c_void) -> Registers {
        // SAFETY: as the caller says, this is the context.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let register = |number: libc::c_int| registers[number as usize] as usize;
        Registers {
            instruction: register(libc::REG_RIP),
            stack: register(libc::REG_RSP),
            frame: register(libc::REG_RBP),
        }
    }

    /// From what the kernel hands to a signal handler.
    ///
    /// # Safety
    ///
    /// `context` is the third argument of a handler that was installed with SA_SIGINFO.
    #[cfg(target_arch = "aarch64")]
    pub(crate) unsafe fn of(context: *const c_void) -> Registers {
        // SAFETY: as the caller says, this is the context.
        let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
        Registers {
            instruction: machine.pc as usize,
            stack: machine.sp as usize,
            frame: machine.regs[29] as usize,
        }
    }

    /// From what the kernel hands to a signal handler: nothing is known of this processor's
    /// registers.
    ///
    /// # Safety
    ///
    /// None; as on other processors.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) unsafe fn of(_: *const c_void) -> Registers {
        Registers { instruction: 0, stack: 0, frame: 0 }
    }
}

impl Registers {
    /// Registers of the caller, which is at this instruction.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn here(instruction: usize) -> Registers {
        let (stack, frame);
        // SAFETY: registers are read.
        unsafe {
            std::arch::asm!(
                "mov {}, rsp",
                "mov {}, rbp",
                out(reg) stack,
                out(reg) frame,
                options(nomem, nostack, preserves_flags)
            );
        }
        Registers { instruction, stack, frame }
    }

    /// Registers of the caller, as on x86-64.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub(crate) fn here(instruction: usize) -> Registers {
        let (stack, frame);
        // SAFETY: registers are read.
        unsafe {
            std::arch::asm!(
                "mov {}, sp",
                "mov {}, x29",
                out(reg) stack,
                out(reg) frame,
                options(nomem, nostack, preserves_flags)
            );
        }
        Registers { instruction, stack, frame }
    }

    /// Registers of the caller, of which nothing is known on other processors.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    #[inline(always)]
    pub(crate) fn here(instruction: usize) -> Registers {
        Registers { instruction, stack: 0, frame: 0 }
    }
}

/// Registers that are told of an interrupted thread: those of DWARF by their numbers, and the
/// instruction as the last one.
pub(crate) const COUNT: usize = if cfg!(target_arch = "aarch64") { 33 } else { 17 };

/// All registers of an interrupted thread.
///
/// # Safety
///
/// `context` is the third argument of a handler that was installed with SA_SIGINFO.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn all_registers(context: *const c_void) -> [u64; COUNT] {
    use libc::{
        REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RAX, REG_RBP,
        REG_RBX, REG_RCX, REG_RDI, REG_RDX, REG_RIP, REG_RSI, REG_RSP,
    };
    // SAFETY: as the caller says, this is the context.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    [
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9,
        REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
    ]
    .map(|number| registers[number as usize].cast_unsigned())
}

/// All registers of an interrupted thread.
///
/// # Safety
///
/// `context` is the third argument of a handler that was installed with SA_SIGINFO.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn all_registers(context: *const c_void) -> [u64; COUNT] {
    // SAFETY: as the caller says, this is the context.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    let mut registers = [0; COUNT];
    registers[..31].copy_from_slice(&machine.regs);
    (registers[31], registers[32]) = (machine.sp, machine.pc);
    registers
}

/// All registers of an interrupted thread: none are known of this processor.
///
/// # Safety
///
/// None; as on other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) unsafe fn all_registers(_: *const c_void) -> [u64; COUNT] {
    [0; COUNT]
}

/// Writes the chain to `into`: the instruction, then for each caller an address inside its call.
/// Returns how many there are. Reads only what lies in `stack`, the thread's own.
///
/// # Safety
///
/// `stack` is mapped, and nobody but the interrupted thread writes to it.
pub(crate) unsafe fn chain(at: Registers, stack: &Range<usize>, into: &mut [u64]) -> usize {
    const WORD: usize = size_of::<usize>();
    if at.instruction == 0 || into.is_empty() {
        return 0;
    }
    into[0] = at.instruction as u64;
    let mut length = 1;
    let (mut frame, mut above) = (at.frame, at.stack);
    while length < into.len()
        && stack.contains(&at.stack)
        && frame.is_multiple_of(WORD)
        && frame >= above
        && frame < stack.end.saturating_sub(2 * WORD)
    {
        // SAFETY: two words inside the thread's stack, above what is in use by callees, as was just
        // seen.
        let (next, back) = unsafe {
            let words = frame as *const usize;
            (words.read(), words.add(1).read())
        };
        if back < 4096 {
            break;
        }
        // The call is the instruction before the one that it returns to.
        into[length] = back as u64 - 1;
        length += 1;
        above = frame + 1;
        frame = next;
    }
    length
}

/// The addresses of the calling thread's stack; empty when they are not known. Not for signal
/// handlers.
pub(crate) fn own_stack() -> Range<usize> {
    let mut low = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: `attributes` is initialized by the first call and destroyed by the last, and what is
    // read of it are plain numbers.
    unsafe {
        let mut attributes = std::mem::zeroed::<libc::pthread_attr_t>();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return 0..0;
        }
        let known = libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        if known != 0 {
            return 0..0;
        }
    }
    low as usize..low as usize + size
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::DEPTH;

    #[test]
    fn a_chain_is_walked_and_never_left() {
        // A stack of two frames: each the frame above, and where it returns to.
        let mut memory = [0usize; 16];
        let base = memory.as_ptr() as usize;
        let at = |word: usize| base + 8 * word;
        (memory[4], memory[5]) = (at(8), 0x5001);
        (memory[8], memory[9]) = (0, 0x6001);
        let stack = at(0)..at(16);
        let mut into = [0; DEPTH];
        let mut walk = |frame, top| {
            let registers = Registers { instruction: 0x4000, stack: top, frame };
            // SAFETY: `stack` is this array.
            let length = unsafe { chain(registers, &stack, &mut into) };
            into[..length].to_vec()
        };
        assert_eq!(walk(at(4), at(2)), [0x4000, 0x5000, 0x6000]);
        assert_eq!(walk(at(4), at(6)), [0x4000], "a frame below the stack's top is none");
        assert_eq!(walk(at(4) + 1, at(2)), [0x4000], "no word");
        assert_eq!(walk(at(15), at(2)), [0x4000], "its end is outside");
        assert_eq!(walk(at(4), at(17)), [0x4000], "another stack");
        memory[8] = at(4);
        std::hint::black_box(&mut memory);
        assert_eq!(walk(at(4), at(2)), [0x4000, 0x5000, 0x6000], "no frame comes twice");
    }
}

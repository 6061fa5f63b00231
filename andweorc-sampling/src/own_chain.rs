//! The call chain of the calling thread, as it calls.

use crate::slots;
use crate::walk::{self, Registers};

/// Writes the call chain of the calling thread to `into`: an address in this function, then for
/// each caller an address inside its call. Returns how many there are: one where the thread's stack
/// is not known, which is that of each thread that has a [slot](slots::open). Allocates nothing and
/// takes no lock.
#[inline(never)]
pub fn own_chain(into: &mut [u64]) -> usize {
    let at = Registers::here(own_chain as fn(&mut [u64]) -> usize as usize);
    let stack = slots::own_stack();
    // SAFETY: the stack is the calling thread's, which took it down itself.
    unsafe { walk::chain(at, &stack, into) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function that is not inlined into its caller, nor does anything after the call.
    #[inline(never)]
    fn caller(into: &mut [u64]) -> usize {
        std::hint::black_box(own_chain(into))
    }

    #[test]
    fn chain_without_a_known_stack_is_this_function_alone() {
        let walk = || {
            let mut into = [0; 8];
            (caller(&mut into), into)
        };
        let (length, into) = std::thread::spawn(walk).join().unwrap();
        assert_eq!(length, 1);
        assert_eq!(into[0], own_chain as fn(&mut [u64]) -> usize as usize as u64);
    }
}

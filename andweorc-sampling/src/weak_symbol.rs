//! Functions in the place of the C library's, and those themselves.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Defines the symbol `$name` as a function that goes on to `$function`, which has the signature of
/// the C library's function of that name.
///
/// The definition is weak. It goes before that of a shared C library, and gives way to any other
/// one in the program: two of them are no error of the linker, and nothing comes by here then. It
/// is hidden too: shared libraries go on to call the C library's.
#[doc(hidden)]
#[macro_export]
macro_rules! weak_symbol {
    ($name:literal, $function:path) => {
        ::core::arch::global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"),
            ".p2align 4",
            concat!(".weak ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            $crate::jump_to!(),
            concat!(".size ", $name, ", .-", $name),
            ".popsection",
            function = sym $function,
        );
    };
}

/// The instruction by which [`weak_symbol!`] goes on.
#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "x86_64")]
macro_rules! jump_to {
    () => {
        "jmp {function}"
    };
}

/// The instruction by which [`weak_symbol!`] goes on.
#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "aarch64")]
macro_rules! jump_to {
    () => {
        "b {function}"
    };
}

/// The C library's function of this name, which the program would call if nobody had [put another
/// one](crate::weak_symbol!) in its place; `kernel` where the C library is linked statically.
/// Looked up once, and kept in `found`.
pub fn c_function(found: &AtomicPtr<c_void>, name: &CStr, kernel: *mut c_void) -> *mut c_void {
    // Relaxed, here and below: all threads find the same, which was there before main.
    let known = found.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let next = if next.is_null() { kernel } else { next };
    found.store(next, Ordering::Relaxed);
    next
}

//! Any bytes, read as a profile.
#![no_main]

#[path = "../../tests/reader/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::read(bytes);
    check::report(bytes);
});

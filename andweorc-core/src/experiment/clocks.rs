//! Clocks of the program that are not virtual.

use crate::program_clock;
use andweorc_sampling::binary::Binary;

/// Says which crates of the running program go by another clock than the virtual one. `None` where
/// there are none, or the program's clock is real anyhow.
pub(crate) fn by_counter() -> Option<String> {
    if !program_clock::is_on() {
        return None;
    }
    let crates = Binary::running().by_counter;
    (!crates.is_empty()).then(|| {
        format!(
            "{} reads the processor's counter, which runs in real time: what waits by it seems \
             faster than it is, such as a rate limiter of governor's with its default clock",
            crates.join(", ")
        )
    })
}

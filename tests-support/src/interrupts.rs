use nix::sys::signal::{SigHandler, Signal, signal};

/// Makes SIGINT end this process again, and those that it starts from now on. What a shell without
/// job control starts in the background ignores it, and hands that on to all that it starts: a test
/// that sends it there would wait for ever.
pub fn take_interrupts() {
    // SAFETY: no handler of ours is installed, and none that could be replaced does more than the
    // default.
    unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.expect("SIGINT may be handled");
}

//! Graceful shutdown by sigwait(3): SIGTERM is blocked in the program, and a thread waits for it.

#[andweorc::main(flavor = "current_thread")]
pub async fn main() {
    // SAFETY: all zeros are a valid set, and the calls get pointers to it.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    };
    let waits = tokio::task::spawn_blocking(move || {
        let mut signal = 0;
        // SAFETY: both live through the call.
        unsafe { libc::sigwait(&set, &mut signal) };
        signal
    });
    println!("ready");
    assert_eq!(waits.await.expect("it waits"), libc::SIGTERM);
    println!("in order=1");
}

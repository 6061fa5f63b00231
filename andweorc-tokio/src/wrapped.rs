//! How our own spawns say that the task which they spawn is wrapped, so that it is not reported a
//! second time. It costs nothing on stable tokio, which reports no tasks.

#[cfg(tokio_unstable)]
andweorc_core::hooks::plain_thread_local! {
    /// The next task that this thread spawns is wrapped.
    static WRAPPED: std::cell::Cell<bool> = std::cell::Cell::new(false);
}

/// While it lives, the next task that the calling thread spawns is wrapped.
#[derive(Debug)]
pub struct Wrapped(());

impl Wrapped {
    /// From now on.
    #[must_use = "it ends when this is dropped"]
    pub fn begin() -> Wrapped {
        #[cfg(tokio_unstable)]
        WRAPPED.set(true);
        Wrapped(())
    }

    /// Whether that is said of the task that is spawned now. Asked once: what its first poll spawns
    /// is another one.
    #[cfg(tokio_unstable)]
    pub(crate) fn take() -> bool {
        WRAPPED.take()
    }
}

#[cfg(tokio_unstable)]
impl Drop for Wrapped {
    fn drop(&mut self) {
        WRAPPED.set(false);
    }
}

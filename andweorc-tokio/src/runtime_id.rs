//! Which runtime the calling thread works for.

use crate::id_number::number_of;
use crate::thread_key::thread_key;
use tokio::runtime::{Handle, RuntimeFlavor};

/// A runtime, as the hooks of a worker see it.
///
/// Newer versions of tokio number their runtimes. With an older one a current-thread runtime is
/// known by the thread that drives it, and the multi-thread runtimes of one builder are taken for
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RuntimeId {
    /// None: the thread is in no runtime.
    None,
    MultiThread(u64),
    /// By its own number, or that of its thread.
    CurrentThread(u64),
}

impl RuntimeId {
    /// The runtime whose context the calling thread is in.
    pub(crate) fn current() -> RuntimeId {
        let Ok(handle) = Handle::try_current() else { return RuntimeId::None };
        let number = number(&handle);
        match handle.runtime_flavor() {
            RuntimeFlavor::CurrentThread if number == UNKNOWN => {
                RuntimeId::CurrentThread(thread_key() as u64)
            }
            RuntimeFlavor::CurrentThread => RuntimeId::CurrentThread(number),
            _ => RuntimeId::MultiThread(number),
        }
    }

    pub(crate) fn is_multi_thread(self) -> bool {
        matches!(self, RuntimeId::MultiThread(_))
    }
}

/// The number of a runtime that tokio does not tell. tokio's own begin at 1.
const UNKNOWN: u64 = 0;

/// The methods that [`Handle`] does not have in every supported version of tokio. A method of the
/// type itself goes before one of a trait.
#[allow(dead_code, reason = "only where tokio is old")]
trait Older {
    fn id(&self) -> NoId {
        NoId
    }
}

impl Older for Handle {}

/// In the place of a runtime's id.
#[derive(Hash)]
#[allow(dead_code, reason = "only where tokio is old")]
struct NoId;

/// The number of its id, or [`UNKNOWN`].
fn number(handle: &Handle) -> u64 {
    number_of(handle.id()).unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    #[test]
    fn runtimes_of_one_builder_are_told_apart() {
        assert_eq!(RuntimeId::current(), RuntimeId::None);
        let mut builder = Builder::new_current_thread();
        let (one, other) = (builder.build().unwrap(), builder.build().unwrap());
        let id = |runtime: &tokio::runtime::Runtime| {
            let _context = runtime.enter();
            RuntimeId::current()
        };
        assert_eq!(id(&one), id(&one));
        // On another thread, as old versions of tokio ask for.
        let there = std::thread::scope(|scope| scope.spawn(|| id(&other)).join().unwrap());
        assert_ne!(id(&one), there);
        assert!(!there.is_multi_thread());
        let multi = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        assert!(id(&multi).is_multi_thread());
    }
}

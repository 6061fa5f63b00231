//! Which wakes are of tasks that the runtime had put off.
//!
//! A task that yields (`tokio::task::yield_now`) is put off by its worker, which wakes it between
//! two polls in nobody's name, as it wakes those whose events it finds in the driver. But first it
//! wakes who has an event, and then who was put off, the last one first. So a mark that is put off
//! behind a task is woken just before it, and what the worker wakes from then on, until it polls or
//! sleeps, had been put off too. That holds for tasks that nobody wrapped, and for what is inside a
//! `FuturesUnordered`: whatever wakers they left, they are woken there.
//!
//! A worker does not sleep while somebody is put off, and a mark counts as one. So polls are only
//! marked of kinds that may yield ([`Yields`]).

use andweorc_core::hooks::program_clock;
use andweorc_core::hooks::yields::Yields;
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::ptr;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

andweorc_core::hooks::plain_thread_local! {
    static WOKEN: Cell<bool> = Cell::new(false);
}

static VTABLE: RawWakerVTable =
    RawWakerVTable::new(|_| RawWaker::new(ptr::null(), &VTABLE), woken, woken, |_| {});

// SAFETY: what the functions of the table do needs no data and is the same on all threads.
static MARK: Waker = unsafe { Waker::new(ptr::null(), &VTABLE) };

fn woken(_: *const ()) {
    WOKEN.set(true);
}

/// A poll of a kind of which this is known ends pending: marks it, if it may have yielded.
#[inline]
pub(crate) fn marks(yields: &Yields) {
    if yields.marks() {
        yields.marked();
        mark();
    }
}

/// Marks whom the calling worker has put off last. Does nothing where nobody puts off.
#[cold]
#[inline(never)]
fn mark() {
    let put_off = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&MARK));
    debug_assert!(put_off.is_pending());
    // Outside of a runtime it is woken at once.
    ends();
}

/// Whether the calling worker is waking those that it had put off.
#[inline]
pub(crate) fn is_woken() -> bool {
    WOKEN.get()
}

/// Records that the calling worker polls, or sleeps: it no longer wakes those that it had put off.
#[inline]
pub(crate) fn ends() {
    WOKEN.set(false);
    program_clock::driver_is_left();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::task::Wake;

    /// Notes whether it was woken as one that had been put off.
    #[derive(Default)]
    struct Notes(Mutex<Vec<bool>>);

    impl Wake for Notes {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().push(is_woken());
        }
    }

    fn yields(waker: &Waker) {
        let yields = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(waker));
        assert!(yields.is_pending());
    }

    fn runtimes() -> [tokio::runtime::Runtime; 2] {
        let multi = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        [multi.unwrap(), tokio::runtime::Builder::new_current_thread().build().unwrap()]
    }

    #[test]
    fn task_put_off_before_a_mark_is_woken_after_it() {
        for runtime in runtimes() {
            let all = [(); 4].map(|()| Arc::new(Notes::default()));
            let wakers = all.clone().map(Waker::from);
            let asked = runtime.spawn(async move {
                yields(&wakers[0]);
                yields(&wakers[1]);
                mark();
                yields(&wakers[2]);
                mark();
                yields(&wakers[3]);
                assert!(!is_woken());
                // All are woken before this one is.
                tokio::task::yield_now().await;
            });
            runtime.block_on(asked).unwrap();
            drop(runtime);
            let noted = all.map(|notes| notes.0.lock().unwrap().clone());
            assert_eq!(noted, [[true], [true], [true], [false]], "the last one was not marked");
        }
    }

    #[test]
    fn outside_of_a_runtime_nobody_is_put_off() {
        mark();
        assert!(!is_woken());
    }
}

//! Wakes of tasks that an executor other than tokio runs.
//!
//! A wake is somebody else's code. tokio's neither blocks nor panics; another executor's may do
//! both: it sends into a channel that is full, or whose receiver has gone. On the thread of the
//! queue that would hold up the wakes of all others, and on a worker its tasks. So these wakes have
//! threads of their own. One of them leads: it waits for what is due first, and lets the next one
//! lead before it wakes. So a wake that blocks holds up no other one, as long as no more than
//! [`MOST`] block at once.
//!
//! A panic in such a wake ends there. The wake is one more than the program has made, so nobody
//! waits for its panic.

use super::deferral::{Elsewhere, Threads};
use super::{Held, deferral};
use crate::clock;
use crate::fork::forked;
use crate::own_thread;
use crate::process::ledger;
use crate::sync::MutexGuard;
use crate::time::{Nanos, Virtual};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Threads at most.
const MOST: usize = 16;

fn elsewhere() -> &'static Elsewhere {
    &deferral().elsewhere
}

/// Releases `held` once V has got to `due`, on a thread that runs nothing but such wakes. For wakes
/// of executors other than tokio, which may block or panic.
pub fn until_elsewhere(due: Virtual, held: Arc<dyn Held>) {
    // In a child of fork nobody would pass it on.
    if forked() {
        return held.release();
    }
    let mut threads = elsewhere().threads.lock();
    if threads.live == 0 && !threads.start() {
        drop(threads);
        return held.release();
    }
    let first = threads.waiting.push(due, held);
    drop(threads);
    if first {
        elsewhere().earlier.notify_one();
    }
}

impl Threads {
    /// Starts one more. Returns whether there is one more.
    fn start(&mut self) -> bool {
        if self.live == MOST {
            return false;
        }
        let started = own_thread::spawn("andweorc-wake", run).is_ok();
        self.live += usize::from(started);
        started
    }
}

fn run() {
    let mut threads = elsewhere().threads.lock();
    loop {
        if threads.led {
            if threads.followers > 0 {
                threads.live -= 1;
                return;
            }
            threads.followers += 1;
            while threads.led {
                threads = elsewhere().lead.wait(threads);
            }
            threads.followers -= 1;
        }
        threads.led = true;
        let held;
        (threads, held) = first(threads);
        threads.led = false;
        if threads.followers > 0 {
            elsewhere().lead.notify_one();
        } else {
            // Without a thread to be had, the next wake that is due waits for this one.
            threads.start();
        }
        drop(threads);
        // The state that a panic leaves behind is the executor's own, which has seen the panic.
        drop(catch_unwind(AssertUnwindSafe(|| held.release())));
        threads = elsewhere().threads.lock();
    }
}

/// Waits until the first is due, and takes it out.
fn first(
    mut threads: MutexGuard<'static, Threads>,
) -> (MutexGuard<'static, Threads>, Arc<dyn Held>) {
    loop {
        let left = threads.waiting.first().map(|due| ledger().time_until_due(due, clock::now()));
        threads = match left {
            Some(left) if left <= Nanos::ZERO => match threads.waiting.pop() {
                Some(held) => return (threads, held),
                None => threads,
            },
            Some(left) => elsewhere().earlier.wait_timeout(threads, left.to_duration()).0,
            None => elsewhere().earlier.wait(threads),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;
    use std::sync::mpsc;

    enum Wakes {
        Tells(mpsc::Sender<()>),
        Panics,
        Blocks(Mutex<mpsc::Receiver<()>>),
    }

    impl Held for Wakes {
        fn release(self: Arc<Self>) {
            match &*self {
                Wakes::Tells(tell) => tell.send(()).unwrap(),
                Wakes::Panics => panic!("as a waker whose executor is gone"),
                Wakes::Blocks(until) => drop(until.lock().recv()),
            }
        }
    }

    fn soon() -> Virtual {
        Virtual(ledger().virtual_now(clock::now()).0 + 1_000_000)
    }

    #[test]
    fn wakes_that_block_or_panic_hold_up_no_others() {
        let (tell, told) = mpsc::channel();
        let mut ends = Vec::new();
        for _ in 0..3 {
            let (end, until) = mpsc::channel();
            until_elsewhere(soon(), Arc::new(Wakes::Blocks(Mutex::new(until))));
            until_elsewhere(soon(), Arc::new(Wakes::Panics));
            until_elsewhere(soon(), Arc::new(Wakes::Tells(tell.clone())));
            told.recv().unwrap();
            ends.push(end);
        }
        drop(ends);
        until_elsewhere(soon(), Arc::new(Wakes::Tells(tell)));
        told.recv().unwrap();
    }
}

//! Threads of andweorc's own that work while an experiment is held, and sleep between experiments.

use crate::fork::forked;
use crate::own_thread;
use crate::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Such a thread, until dropped.
#[derive(Debug)]
pub(crate) struct BackgroundThread {
    order: Arc<Order>,
    thread: Option<JoinHandle<()>>,
}

/// Order to the helper's thread: to work, to rest or to stop.
#[derive(Debug, Default)]
struct Order {
    says: Mutex<Say>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Say {
    #[default]
    Rest,
    Work,
    Stop,
}

impl Order {
    /// A stop is for good.
    fn say(&self, say: Say) {
        let mut says = self.says.lock();
        if *says != Say::Stop {
            *says = say;
        }
        self.changed.notify_one();
    }

    /// Sleeps for a `pause`, or less if the order changes, and until there is something to do. Says
    /// whether there ever will be.
    fn wait(&self, pause: Duration) -> bool {
        let mut says = self.says.lock();
        if pause > Duration::ZERO {
            says = self.changed.wait_timeout_while(says, pause, |say| *say == Say::Work);
        }
        *self.changed.wait_while(says, |say| *say == Say::Rest) == Say::Work
    }
}

impl BackgroundThread {
    /// A thread that makes itself what it works with, and calls that again and again while it is
    /// told to [work](BackgroundThread::work): each time for some milliseconds, so that it hears
    /// soon when it is to stop; what is returned is how long it may pause then, in which it hears
    /// it at once. Nobody works if there is no thread to be had.
    pub(crate) fn start<W: FnMut() -> Duration>(
        name: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> BackgroundThread {
        let order = Arc::<Order>::default();
        let ordered = Arc::clone(&order);
        let thread = own_thread::spawn(name, move || {
            let mut work = work();
            let mut pause = Duration::ZERO;
            while ordered.wait(pause) {
                pause = work();
            }
        });
        BackgroundThread { order, thread: thread.ok() }
    }

    /// Works from now on, until what it returns is dropped.
    pub(crate) fn work(&self) -> Working {
        self.order.say(Say::Work);
        Working(Arc::clone(&self.order))
    }
}

/// While this lives the thread works.
#[derive(Debug)]
#[must_use = "nobody works once this is dropped"]
pub(crate) struct Working(Arc<Order>);

impl Drop for Working {
    fn drop(&mut self) {
        // In a child of fork the lock may be another thread's, and nobody works.
        if !forked() {
            self.0.say(Say::Rest);
        }
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        if forked() {
            return;
        }
        self.order.say(Say::Stop);
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, there is nothing left to do for it.
            drop(thread.join());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A pause that is as good as for ever.
    const PAUSE: Duration = Duration::from_secs(3600);

    #[test]
    fn pausing_helper_does_no_work_and_stops_at_once() {
        let (told, works) = mpsc::channel();
        let helper = BackgroundThread::start("pauses", move || {
            move || {
                told.send(()).expect("the test listens");
                PAUSE
            }
        });
        let _working = helper.work();
        works.recv().unwrap();
        drop(helper);
        assert_eq!(works.iter().count(), 0);
    }
}

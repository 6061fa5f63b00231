//! A worker that has nothing to do but a task which must not run yet sleeps until it may.
//!
//! Where a wake is held the worker parks, in the driver if nobody else is there. Nobody can hold the wake of a task that is not wrapped, so the
//! worker has it in its hands: it would hand it back and be given it again, some hundred thousand times a second, looking into the driver each time, and
//! getting others to look for work that there is not. A program with time to spare would be watched as it never is without an experiment.
//!
//! So it sleeps with the task in its hands, as if it had parked: it hears of what comes into the driver if nobody is in there, and of tasks
//! that want a worker (`call`). Then it hands its task back, and does that first.

use crate::alarm;
use andweorc_core::clock;
use andweorc_core::defer::{LEAST, Lead};
use andweorc_core::thread::{self, LEDGER};
use andweorc_core::time::{Nanos, Real, Virtual};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::cell::{Cell, RefCell};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Handle, RuntimeFlavor};

/// After this it looks for itself: nobody tells of tokio's timers, and of a runtime that ends.
const LONGEST: Nanos = Nanos::from_micros(500);

/// What a worker sleeps on.
#[derive(Debug)]
struct Bed {
    timer: TimerFd,
    called: AtomicBool,
}

/// A worker that may sleep.
struct Sleeper {
    bed: Arc<Bed>,
    /// How late it wakes up.
    lead: Lead,
    /// The driver of its runtime.
    driver: RawFd,
}

/// Those that sleep. There are few: as many as workers.
static ASLEEP: Mutex<Vec<Arc<Bed>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// `None` where it can't.
    static SLEEPER: RefCell<Option<Option<Sleeper>>> = const { RefCell::new(None) };
    /// Other tasks that the thread has given back, and until when they are held.
    static GIVEN_BACK: RefCell<Vec<(u64, Virtual)>> = const { RefCell::new(Vec::new()) };
    /// How many tasks the thread has made ready since it began to run one.
    static READY: Cell<u32> = const { Cell::new(0) };
}

fn asleep() -> MutexGuard<'static, Vec<Arc<Bed>>> {
    ASLEEP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread begins to run a task.
pub(super) fn runs(task: u64) {
    READY.set(0);
    given_back(|held| held.retain(|&(held, _)| held != task));
}

/// Does something with what the calling thread has given back; nothing on one that is being torn down.
fn given_back<R>(with: impl FnOnce(&mut Vec<(u64, Virtual)>) -> R) -> Option<R> {
    GIVEN_BACK.try_with(|held| with(&mut held.borrow_mut())).ok()
}

/// What is due by now, somebody runs.
fn forget_due(held: &mut Vec<(u64, Virtual)>) {
    let now = clock::now();
    held.retain(|&(_, until)| LEDGER.early(until, now) > Nanos::ZERO);
}

/// It gives a task back that is held `until` then.
pub(super) fn gives_back(task: u64, until: Virtual) {
    given_back(|held| {
        forget_due(held);
        held.push((task, until));
    });
}

/// The calling thread makes a task ready. The first that a worker does it runs itself; others want another worker.
pub(super) fn call() {
    let ready = READY.get().saturating_add(1);
    READY.set(ready);
    if COUNT.load(SeqCst) == 0 || (ready == 1 && alarm::is_worker()) {
        return;
    }
    for bed in asleep().iter() {
        bed.called.store(true, SeqCst);
        bed.wake_at(clock::now());
    }
}

/// Sleeps with a task until V gets to `due`, if there is nothing else to do. Says whether its time has come: if not, something else has.
pub(super) fn until(due: Virtual) -> bool {
    let Some(handle) = Handle::try_current().ok().filter(has_workers) else { return false };
    if has_work(&handle) {
        return false;
    }
    let first_of_others = given_back(|held| {
        forget_due(held);
        held.iter().map(|&(_, until)| until).min()
    });
    let first = first_of_others.flatten().map_or(due, |other| other.min(due));
    with_sleeper(|sleeper| sleeper.until(first, &handle)) == Some(true) && first == due
}

/// Does something as a sleeper, where the calling thread can sleep: it works for a runtime whose driver is known.
fn with_sleeper<R>(with: impl FnOnce(&mut Sleeper) -> R) -> Option<R> {
    let timer = alarm::timer()?;
    SLEEPER.with_borrow_mut(|sleeper| {
        sleeper.get_or_insert_with(|| Sleeper::new(timer)).as_mut().map(with)
    })
}

/// Whether the runtime has workers that steal from each other: what is in their queues is known.
fn has_workers(handle: &Handle) -> bool {
    handle.runtime_flavor() == RuntimeFlavor::MultiThread
}

/// Whether a task waits for a worker.
fn has_work(handle: &Handle) -> bool {
    let metrics = handle.metrics();
    metrics.global_queue_depth() > 0
        || (0..metrics.num_workers()).any(|worker| metrics.worker_local_queue_depth(worker) > 0)
}

impl Bed {
    fn wake_at(&self, at: Real) {
        let at = Expiration::OneShot(TimeSpec::nanoseconds(at.0));
        // It fails for times that are none, only.
        self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok();
    }
}

impl Sleeper {
    /// One whose runtime has `timer` in its driver.
    fn new(timer: RawFd) -> Option<Sleeper> {
        let driver = driver_of(timer)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).ok()?;
        let bed = Arc::new(Bed { timer, called: AtomicBool::new(false) });
        Some(Sleeper { bed, lead: Lead::default(), driver })
    }

    fn until(&mut self, due: Virtual, handle: &Handle) -> bool {
        let Some(watches) = alarm::naps() else { return false };
        thread::handed_back();
        self.bed.called.store(false, SeqCst);
        asleep().push(Arc::clone(&self.bed));
        COUNT.fetch_add(1, SeqCst);
        thread::parked(watches);
        let come = self.sleep(due, watches, handle);
        alarm::unparks();
        thread::unparked();
        COUNT.fetch_sub(1, SeqCst);
        asleep().retain(|bed| !Arc::ptr_eq(bed, &self.bed));
        come
    }

    fn sleep(&mut self, due: Virtual, watches: bool, handle: &Handle) -> bool {
        let latest = clock::now() + LONGEST;
        // Something lies in the driver.
        let mut lies = false;
        loop {
            let now = clock::now();
            let left = LEDGER.early(due, now);
            if left <= LEAST {
                return true;
            }
            if lies || now >= latest || has_work(handle) {
                return false;
            }
            // While something is in the target V moves slowly: what is late is little.
            let lead = if LEDGER.is_at_rest() { self.lead.mean() } else { Nanos::ZERO };
            let at = (now + (left - lead).max(Nanos(1))).min(latest);
            self.bed.wake_at(at);
            if self.bed.called.swap(false, SeqCst) {
                continue;
            }
            lies = self.wait(watches) && watches && self.is_ready();
            let woken = clock::now();
            if !self.bed.called.load(SeqCst) && woken >= at {
                self.lead.measured(woken - at);
            }
        }
    }

    /// Waits for the timer, and for the driver if it `watches`. Says whether that was it.
    fn wait(&self, watches: bool) -> bool {
        let timer = PollFd::new(self.bed.timer.as_fd(), PollFlags::POLLIN);
        let driver = PollFd::new(self.driver(), PollFlags::POLLIN);
        let mut all = [timer, driver];
        let some = if watches { &mut all[..] } else { &mut all[..1] };
        // An error is a signal: then it looks at the time once more.
        poll(some, PollTimeout::NONE).is_ok()
            && some.last().is_some_and(|it| it.any() == Some(true))
    }

    /// Whether something lies in the driver. If a worker is in there after all, it was sooner.
    fn is_ready(&self) -> bool {
        let mut driver = [PollFd::new(self.driver(), PollFlags::POLLIN)];
        poll(&mut driver, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    fn driver(&self) -> BorrowedFd<'_> {
        // SAFETY: the runtime has it open for as long as it has workers, and this is one.
        unsafe { BorrowedFd::borrow_raw(self.driver) }
    }
}

/// The driver that listens to `timer`, an epoll instance.
fn driver_of(timer: RawFd) -> Option<RawFd> {
    let listens = |fd: &RawFd| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        let mut listed = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
        listed.any(|line| line.split_whitespace().next().is_some_and(|it| it.parse() == Ok(timer)))
    };
    let open = fs::read_dir("/proc/self/fd").ok()?;
    let mut numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(listens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::BuilderExt;
    use std::time::Duration;
    use tokio::runtime::{Builder, Runtime};

    /// A runtime with one worker, which has been idle.
    fn runtime() -> Runtime {
        thread::enable();
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().andweorc().build().unwrap();
        let slept = runtime.spawn(async { tokio::time::sleep(Duration::from_millis(1)).await });
        runtime.block_on(slept).unwrap();
        runtime
    }

    /// Lets the worker sleep until V has gone on by `ms`. Says whether it did.
    fn sleeps(runtime: &Runtime, ms: i64) -> bool {
        let sleeping = runtime.spawn(async move {
            let due = Virtual(LEDGER.virtual_now(clock::now()).0 + ms * 1_000_000);
            // As a task that is given to it again and again.
            while alarm::is_worker() && LEDGER.early(due, clock::now()) > LEAST {
                if until(due) {
                    return true;
                }
                if has_work(&Handle::current()) {
                    return false;
                }
            }
            false
        });
        runtime.block_on(sleeping).unwrap()
    }

    #[test]
    fn a_worker_sleeps_until_the_task_in_its_hands_is_due() {
        assert!((0..100).any(|_| sleeps(&runtime(), 2)), "it was too late each time");
    }

    #[test]
    fn a_worker_gets_up_for_a_task_that_wants_one() {
        let runtime = runtime();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while COUNT.load(SeqCst) == 0 {
                    std::thread::yield_now();
                }
                // From a thread that is no worker: into the queue of all.
                runtime.spawn(async {});
                call();
            });
            assert!(!sleeps(&runtime, 3_600_000));
        });
    }

    #[test]
    fn what_others_have_given_back_comes_first() {
        let runtime = runtime();
        let sleeping = runtime.spawn(async {
            let now = LEDGER.virtual_now(clock::now());
            gives_back(1, Virtual(now.0 + 100_000));
            let woken = until(Virtual(now.0 + 3_600_000_000_000));
            runs(1);
            (woken, given_back(|held| held.len()))
        });
        assert_eq!(runtime.block_on(sleeping).unwrap(), (false, Some(0)));
    }

    #[test]
    fn the_driver_is_found_by_what_it_listens_to() {
        let runtime = runtime();
        let found = runtime.spawn(async { driver_of(alarm::timer().unwrap()) });
        assert!(runtime.block_on(found).unwrap().is_some());
        assert_eq!(driver_of(-1), None);
    }
}

//! Wakes from the world outside that are held come back through the runtime's driver, as the events did that they come from.
//!
//! Who notices an event is the one worker that sleeps in the driver, and while that one runs what it woke, nobody looks there, though another worker be
//! idle: what comes next lies there until somebody looks. A wake passed on by a thread of andweorc's own would get any idle worker going, mostly not
//! that one. In experiments the driver would be watched all the time, and services with time to spare be predicted too high, by up to
//! 20 points (docs/accuracy-notes.md).
//!
//! So each runtime has a timer in its driver that goes off when the first wake that it holds is due. Whoever looks there releases it: a sleeping worker at
//! once, a busy one when it would have noticed an event. It costs a system call whenever another wake is due first, and no other thread.

#[cfg(tokio_unstable)]
use crate::foreign::watch::{self, Watch};
use andweorc_core::defer::{Held, LEAST, Lead, Waiting};
use andweorc_core::thread::{self, LEDGER};
use andweorc_core::time::{Nanos, Real, Virtual};
use andweorc_core::{clock, defer};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
#[cfg(tokio_unstable)]
use std::cell::Cell;
use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use tokio::io::unix::AsyncFd;
use tokio::io::{self, Interest};
use tokio::runtime::Handle;

/// What the workers of the runtimes of one builder share.
pub(crate) type Shared = Arc<Mutex<Weak<Alarm>>>;

/// A timer that tokio takes.
#[derive(Debug)]
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// The alarm of a runtime.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<Timer>,
    holds: Mutex<Holds>,
    /// The worker that waits in the driver, as [`me`] has it, or [`NOBODY`].
    watcher: AtomicUsize,
    /// Who would be, were no task held that nobody wrapped.
    #[cfg(tokio_unstable)]
    watch: Watch,
}

#[derive(Debug, Default)]
struct Holds {
    waiting: Waiting,
    /// When the timer goes off next.
    set: Option<Real>,
    /// Who has set it.
    set_by: usize,
    /// How late a sleeping worker gets going after that: it is set as much earlier.
    lead: Lead,
    /// The runtime has ended: nobody will look.
    ended: bool,
}

/// What the calling thread knows of the runtime that it works for, or worked for last.
struct Ours {
    builder: Shared,
    alarm: Option<Arc<Alarm>>,
    /// It has nothing to do that is not held.
    #[cfg(tokio_unstable)]
    idle: Cell<bool>,
}

impl Ours {
    fn of(builder: &Shared) -> Ours {
        Ours {
            builder: Arc::clone(builder),
            alarm: of_runtime(builder).ok(),
            #[cfg(tokio_unstable)]
            idle: Cell::new(false),
        }
    }

    fn is_of(&self, builder: &Shared) -> bool {
        let lives = || self.alarm.as_ref().is_none_or(|alarm| !alarm.holds().ended);
        Arc::ptr_eq(&self.builder, builder) && lives()
    }
}

thread_local! {
    static OURS: RefCell<Option<Ours>> = const { RefCell::new(None) };
    static ME: u8 = const { 0 };
}

pub(crate) const NOBODY: usize = 0;

/// The calling thread, by a number that no other has while it lives.
pub(crate) fn me() -> usize {
    ME.with(|here| ptr::from_ref(here).addr())
}

/// The calling thread parks, a worker of a runtime of the builder that has `shared`, and with a driver for I/O. Says whether it will be the one that
/// waits in the driver: the first that parks is.
pub(crate) fn parks(shared: &Shared) -> bool {
    let other = OURS.with_borrow_mut(|ours| ours.take_if(|ours| !ours.is_of(shared)));
    // What an alarm still holds is released when it is dropped, which may look for ours.
    drop(other);
    let watches = OURS.with_borrow_mut(|ours| {
        let ours = ours.get_or_insert_with(|| Ours::of(shared));
        ours.alarm.as_ref().is_none_or(|alarm| alarm.watch())
    });
    #[cfg(tokio_unstable)]
    watch::idle();
    watches
}

/// Runs `f` with the watch of the runtime that the calling thread works for, and whether it is idle there.
#[cfg(tokio_unstable)]
pub(crate) fn with_ours<R>(f: impl FnOnce(&Watch, &Cell<bool>) -> R) -> Option<R> {
    // A thread that is being torn down works for none.
    let with = OURS.try_with(|ours| {
        let ours = ours.borrow();
        let ours = ours.as_ref()?;
        Some(f(&ours.alarm.as_ref()?.watch, &ours.idle))
    });
    with.ok().flatten()
}

/// It goes on.
pub(crate) fn unparks() {
    let _watched = OURS.with_borrow_mut(|ours| {
        let alarm = ours.as_ref().and_then(|ours| ours.alarm.as_ref());
        alarm.is_some_and(|alarm| alarm.change_watcher(me(), NOBODY))
    });
    #[cfg(tokio_unstable)]
    watch::unparks(_watched);
}

/// The alarm of the runtime that the calling thread works for.
fn of_runtime(shared: &Shared) -> io::Result<Arc<Alarm>> {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(alarm) = shared.upgrade().filter(|alarm| !alarm.holds().ended) {
        return Ok(alarm);
    }
    let alarm = Alarm::new()?;
    *shared = Arc::downgrade(&alarm);
    Ok(alarm)
}

/// Releases `held` when V has got to `due` and somebody looks into the driver of the runtime that the calling thread works for. Where there is none,
/// when V has got there.
pub(crate) fn until(due: Virtual, held: Arc<dyn Held>) {
    // A thread that is being torn down works for none.
    let alarm = OURS.try_with(|ours| ours.borrow().as_ref().and_then(|ours| ours.alarm.clone()));
    match alarm.ok().flatten() {
        Some(alarm) => alarm.hold(due, held),
        None => defer::until(due, held),
    }
}

impl Alarm {
    fn new() -> io::Result<Arc<Alarm>> {
        Handle::try_current().map_err(io::Error::other)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        #[allow(deprecated, reason = "what replaces it is not there in tokio 1.47")]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        let alarm = Arc::new(Alarm {
            timer,
            holds: Mutex::default(),
            watcher: AtomicUsize::new(NOBODY),
            #[cfg(tokio_unstable)]
            watch: Watch::new(),
        });
        alarm.listen(&Waker::from(Arc::new(Listener(Arc::downgrade(&alarm)))));
        Ok(alarm)
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `who` the one that waits in the driver, if it `was` that one until now.
    fn change_watcher(&self, was: usize, who: usize) -> bool {
        // Relaxed: tokio's lock of the driver decides. This follows it but for a worker that comes just as another one goes.
        self.watcher.compare_exchange(was, who, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn watcher(&self) -> usize {
        // Relaxed, as in `change_watcher`.
        self.watcher.load(Ordering::Relaxed)
    }

    /// The calling thread parks. Says whether it will be the one that waits in the driver.
    fn watch(&self) -> bool {
        let watches = self.change_watcher(NOBODY, me()) || self.watcher() == me();
        if watches {
            self.move_here();
        }
        watches
    }

    /// Sets the timer again, if another thread has set it than the one that it will wake. A timer goes off on the processor from which it was set, and
    /// a kernel that keeps threads on few processors lets who is woken run there too: in turns with the worker that is busy there, with another
    /// processor idle for a millisecond or more. An event of a socket hardly does that to a worker.
    fn move_here(&self) {
        let mut holds = self.holds();
        if holds.set.is_some()
            && holds.set_by != me()
            && let Some(first) = holds.waiting.first()
        {
            self.set(&mut holds, first, clock::now());
        }
    }

    /// The calling thread looks into the driver. If it is parked, it is the one that waits there, whoever parked first.
    fn looks(&self) {
        if thread::parked_since().is_some() {
            // Relaxed, as in `change_watcher`.
            self.watcher.store(me(), Ordering::Relaxed);
        }
    }

    fn hold(&self, due: Virtual, held: Arc<dyn Held>) {
        self.looks();
        let mut holds = self.holds();
        if holds.ended {
            drop(holds);
            return defer::until(due, held);
        }
        if holds.waiting.push(due, held) {
            self.set(&mut holds, due, clock::now());
        }
    }

    /// Sets the timer for what is `due` first.
    fn set(&self, holds: &mut Holds, due: Virtual, now: Real) {
        let (early, lead) = (LEDGER.early(due, now), holds.lead.mean());
        // While something stays in the target V moves slowly: as it is due soon, what is late is little, and what is early would go off again and again.
        let stays = !LEDGER.is_at_rest() && early < lead + lead;
        let at = now + (if stays { early } else { early - lead }).max(Nanos(1));
        (holds.set, holds.set_by) = (Some(at), me());
        let at = Expiration::OneShot(TimeSpec::nanoseconds(at.0));
        // It fails for times that are none, only.
        self.timer.get_ref().0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok();
    }

    /// Lets the driver call `waker` when the timer goes off next. Nobody reads the timer: each time that it goes off is an event of its own.
    fn listen(&self, waker: &Waker) {
        let mut context = Context::from_waker(waker);
        while let Poll::Ready(event) = self.timer.poll_read_ready(&mut context) {
            match event {
                Ok(mut event) => event.clear_ready(),
                Err(_) => {
                    self.holds().ended = true;
                    return;
                }
            }
        }
    }

    /// Releases what is due, and sets the timer for what comes next.
    fn release(&self) {
        self.looks();
        thread::noticed();
        let mut holds = self.holds();
        let now = clock::now();
        let woken = thread::parked_since().zip(holds.set.take());
        if let Some((_, set)) = woken.filter(|(parked, set)| parked < set) {
            holds.lead.measured(now - set);
            thread::wakes_in(holds.lead.mean());
        }
        let due = if holds.ended {
            holds.waiting.take_due(Virtual::NEVER)
        } else {
            holds.waiting.take_due(Virtual(LEDGER.virtual_now(now).0 + LEAST.0))
        };
        if let Some(next) = holds.waiting.first() {
            self.set(&mut holds, next, now);
        }
        drop(holds);
        due.into_iter().for_each(|held| held.release());
    }
}

impl Drop for Alarm {
    /// Its runtime is gone, and all its workers are.
    fn drop(&mut self) {
        let holds = self.holds.get_mut().unwrap_or_else(PoisonError::into_inner);
        let left = holds.waiting.take_due(Virtual::NEVER);
        left.into_iter().for_each(|held| held.release());
    }
}

/// Whom the driver wakes when the timer goes off.
struct Listener(Weak<Alarm>);

impl Wake for Listener {
    fn wake(self: Arc<Self>) {
        if let Some(alarm) = self.0.upgrade() {
            // First, so that it isn't missed when it goes off again from here on.
            alarm.listen(&Waker::from(Arc::clone(&self)));
            alarm.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::BuilderExt;
    use crate::wake::tests::alone;
    use andweorc_core::time::Speedup;
    use std::sync::mpsc;
    use std::thread::ThreadId;
    use std::time::Duration;
    use tokio::runtime::{Builder, Runtime};

    /// Tells who released it, and when.
    struct Tell(mpsc::Sender<(ThreadId, Real)>);

    impl Held for Tell {
        fn release(self: Arc<Self>) {
            self.0.send((std::thread::current().id(), clock::now())).expect("the test listens");
        }
    }

    /// A runtime with one worker, which has been idle.
    fn runtime() -> Runtime {
        thread::enable();
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_time().andweorc().build().unwrap();
        let slept = runtime.spawn(async { tokio::time::sleep(Duration::from_millis(1)).await });
        runtime.block_on(slept).unwrap();
        runtime
    }

    /// Lets the worker hold something for `ms`. Returns its thread, since when it holds it, and what tells of the release.
    fn hold(runtime: &Runtime, ms: i64) -> (ThreadId, Real, mpsc::Receiver<(ThreadId, Real)>) {
        let (tell, told) = mpsc::channel();
        let holding = runtime.spawn(async move {
            let now = clock::now();
            until(Virtual(LEDGER.virtual_now(now).0 + ms * 1_000_000), Arc::new(Tell(tell)));
            (std::thread::current().id(), now)
        });
        let (worker, now) = runtime.block_on(holding).unwrap();
        (worker, now, told)
    }

    #[test]
    fn what_is_held_is_released_by_the_worker_that_looks_into_the_driver() {
        let runtime = runtime();
        for ms in [2, 1, 3] {
            let (worker, since, told) = hold(&runtime, ms);
            let (by, at) = told.recv().unwrap();
            assert_eq!(by, worker);
            assert!(at - since >= Nanos::from_millis(ms) - LEAST);
        }
    }

    #[test]
    fn the_first_that_is_due_comes_first() {
        let runtime = runtime();
        let (_, _, late) = hold(&runtime, 3_600_000);
        let (_, _, early) = hold(&runtime, 1);
        early.recv().unwrap();
        assert!(late.try_recv().is_err(), "it is not due");
        // It is released as its runtime ends.
        drop(runtime);
        late.recv().unwrap();
    }

    #[test]
    fn nothing_is_held_beyond_the_end_of_the_runtime() {
        let runtime = runtime();
        let (_, _, told) = hold(&runtime, 3_600_000);
        drop(runtime);
        told.recv().unwrap();
    }

    #[test]
    fn one_worker_watches_the_driver() {
        let runtime = runtime();
        let shared = Shared::default();
        let _context = runtime.enter();
        assert!(parks(&shared));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _context = runtime.enter();
                assert!(!parks(&shared), "another one does");
                unparks();
            });
        });
        unparks();
        assert!(parks(&shared), "nobody does any more");
    }

    #[test]
    fn who_finds_something_in_the_driver_is_the_one_that_waits_there() {
        let runtime = runtime();
        let shared = Shared::default();
        let _context = runtime.enter();
        assert!(parks(&shared));
        let alarm = of_runtime(&shared).unwrap();
        let watches = |who: usize| alarm.watcher() == who;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _context = runtime.enter();
                // Second by its hook, and yet first in the driver.
                thread::parked(parks(&shared));
                assert!(!watches(me()));
                alarm.looks();
                assert!(watches(me()));
                unparks();
                assert!(watches(NOBODY));
                alarm.looks();
                thread::unparked();
            });
        });
        assert!(!watches(me()));
        unparks();
        assert!(!watches(NOBODY), "that was another one");
    }

    #[test]
    fn who_will_be_woken_by_the_timer_has_set_it() {
        let runtime = runtime();
        let shared = Shared::default();
        let _context = runtime.enter();
        let (tell, told) = mpsc::channel();
        let alarm = of_runtime(&shared).unwrap();
        let due = Virtual(LEDGER.virtual_now(clock::now()).0 + 3_600_000_000_000);
        alarm.hold(due, Arc::new(Tell(tell)));
        assert_eq!(alarm.holds().set_by, me());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _context = runtime.enter();
                assert!(parks(&shared));
                assert_eq!(alarm.holds().set_by, me());
                unparks();
            });
        });
        drop(alarm);
        drop(OURS.take());
        told.recv().unwrap();
    }

    #[test]
    fn the_timer_is_set_earlier_by_what_a_sleeper_needs_unless_it_is_due_soon_and_v_slow() {
        let _alone = alone();
        let runtime = runtime();
        let _context = runtime.enter();
        let alarm = of_runtime(&Shared::default()).unwrap();
        let mut holds = alarm.holds();
        let lead = Nanos::from_micros(100);
        while holds.lead.mean() < lead {
            holds.lead.measured(lead + lead);
        }
        let lead = holds.lead.mean();
        let now = clock::now();
        // How much earlier the timer goes off than what is due `early` from now on, were V as fast as real time.
        let mut earlier = |early: Nanos| {
            let due = Virtual(LEDGER.virtual_now(now).0 + early.0);
            alarm.set(&mut holds, due, now);
            now + LEDGER.early(due, now) - holds.set.unwrap()
        };
        let (soon, later) = (lead + lead - Nanos(2000), lead + lead + lead);
        assert_eq!([earlier(soon), earlier(later)], [lead, lead]);
        // The same with somebody in the target.
        LEDGER.begin(Speedup::from_ppm(500_000), now);
        let account = LEDGER.open(now).unwrap();
        LEDGER.enter(account, now);
        let inside = [earlier(soon), earlier(later)];
        LEDGER.exit(account, now, Nanos::ZERO);
        LEDGER.close(account, now);
        LEDGER.end(now);
        assert_eq!(inside, [Nanos::ZERO, lead]);
    }

    /// Holds one more when it is released, as a wake that comes while a runtime ends.
    struct Again(mpsc::Sender<(ThreadId, Real)>);

    impl Held for Again {
        fn release(self: Arc<Self>) {
            let now = clock::now();
            until(LEDGER.virtual_now(now), Arc::new(Tell(self.0.clone())));
        }
    }

    #[test]
    fn who_is_released_as_the_alarm_goes_may_hold_more() {
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            thread::enable();
            for last in [false, true] {
                // On this thread, which works for one runtime after the other, and then ends.
                let runtime =
                    Builder::new_current_thread().enable_time().andweorc().build().unwrap();
                let again = Arc::new(Again(tell.clone()));
                runtime.block_on(async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let far = Virtual(LEDGER.virtual_now(clock::now()).0 + 3_600_000_000_000);
                    until(far, again);
                });
                if last {
                    OURS.take();
                }
            }
        })
        .join()
        .unwrap();
        assert_eq!(told.iter().take(2).count(), 2);
    }
}

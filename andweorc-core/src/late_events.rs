//! When something came from the world outside that a worker has just noticed.
//!
//! Tokio looks for timers and sockets when a worker has nothing else to do, and every 61 polls. On
//! a busy runtime what came lies there for milliseconds until somebody looks, and a task that is
//! woken by it has long been ready. Its wait must not be stretched by the delays that grew
//! meanwhile: it would be held for them once more, and a service at its limit would be predicted to
//! gain half of what it gains.
//!
//! One worker waits in the driver; while that one works, nobody looks, also if others are idle.
//! What it notices in one look has come by the time of the first: at once, if it slept until then,
//! or before it looked ([`DriverPoll`]). It may look more than once while it is parked, where
//! nothing that it finds may run yet.
//!
//! When it came the worker does not learn, only between which two looks, and after the task began
//! to wait. A thread that watches the sockets meanwhile does ([`ReadinessLog`]): what was noticed
//! first has come with the first input between those bounds, and so on. But it does not know of
//! timers, and not of every socket at all times. Where it has noticed nothing, how long tasks of
//! its kind wait tells the rest ([`WaitHistory`]): it is taken to be one of those waits that it may
//! have been, and where there is none, from the middle.
//!
//! Noticed at once is not when it came: a worker that sleeps needs a while to get going. That is
//! part of those waits, and so it is of one that is noticed late: it counts as come when a sleeping
//! worker would have noticed it. How much later than an input that is, tell those that were noticed
//! at once.
//!
//! Driver polls are those of all runtimes of the program together: with several that are busy, what
//! came is taken to be younger than it is.

mod epoll_watcher;
mod readiness_log;
mod wait_history;

pub(crate) use epoll_watcher::epoll_watcher;
pub use readiness_log::ReadinessLog;
pub use wait_history::WaitHistory;

use crate::time::{Nanos, Real};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Gap below which two things that a worker notices belong to one driver poll.
const MAX_GAP_OF_POLL: Nanos = Nanos::from_micros(40);

/// The driver polls of the workers of a program.
#[derive(Debug, Default)]
pub struct DriverPolls {
    /// When all that had come was last known to be noticed, real ns; 0 before any look.
    looked: AtomicI64,
    /// How long a worker that sleeps needs on average to get going when something comes, ns.
    wakes: AtomicI64,
    /// How much later than its input such a worker notices something on average, ns.
    lag: AtomicI64,
}

/// An input that was noticed later than this counts as noticed so late: it has waited for something
/// else than a worker that slept.
const MAX_LAG: Nanos = Nanos::from_micros(200);

/// The thread that watches may hear of an input so much later than the worker that slept for it.
const MAX_WATCH_DELAY: Nanos = Nanos::from_micros(60);

/// A worker's look into the driver: the one that it takes at the moment, or took last. While it is
/// idle it may take several, where nothing that it finds may run yet.
#[derive(Clone, Copy, Debug)]
pub struct DriverPoll {
    /// Since when the worker was idle, if it was.
    idle: Option<Real>,
    /// When it noticed something first.
    at: Real,
    /// And last.
    last: Real,
    /// The look before, of any worker. What is noticed in this one came after it.
    after: Real,
    /// The worker slept until something came.
    slept: bool,
    /// How long one that sleeps needs to notice what comes.
    wakes: Nanos,
    /// How much later than an input.
    lag: Nanos,
    /// For how long the worker waited for its processor behind the target.
    waited: Nanos,
    /// The last input that something was taken to have come with, in this look or the one before.
    input: Real,
}

/// When something came that a worker has noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, as far as it is known.
    pub at: Real,
    /// True if it was noticed at once: its time is known, and no guess.
    pub at_once: bool,
}

impl DriverPoll {
    /// None yet.
    pub const NONE: DriverPoll = DriverPoll {
        idle: None,
        at: Real(0),
        last: Real(0),
        after: Real(0),
        slept: false,
        wakes: Nanos::ZERO,
        lag: Nanos::ZERO,
        waited: Nanos::ZERO,
        input: Real(0),
    };

    /// Whether a worker that is idle since `idle` takes it still, at `now`.
    pub(crate) fn is_same(&self, idle: Option<Real>, now: Real) -> bool {
        self.idle == idle && now - self.last < MAX_GAP_OF_POLL
    }

    /// Whether it was taken by a worker that is idle since `idle`.
    pub fn is_of(&self, idle: Option<Real>) -> bool {
        self.idle == idle
    }

    /// When that came which was [noticed](DriverPolls::notice) in this look and woke a task that
    /// waits since `waits`, if that is known; `typical` are the waits of its kind. It came with one
    /// of the `inputs`, if there is one: each serves once.
    pub fn arrival(
        &mut self,
        waits: Option<Real>,
        typical: &WaitHistory,
        inputs: &ReadinessLog,
    ) -> Arrival {
        if self.slept {
            return Arrival { at: self.at, at_once: true };
        }
        Arrival { at: self.guess(waits, typical, inputs), at_once: false }
    }

    /// The worker that slept until something came had waited so long for its processor behind the
    /// target.
    pub(crate) fn set_waited(&mut self, waited: Nanos) {
        self.waited = waited;
    }

    /// The input for which the worker slept, and how much later than that it was noticed, or
    /// earlier, where both are known.
    fn first_lag(&self, inputs: &ReadinessLog) -> Option<(Real, Nanos)> {
        let until = self.at - self.waited;
        let slept_since = self.idle.filter(|_| self.slept)?.max(self.after).max(self.input);
        // It was woken by the first.
        let input = inputs.first(slept_since, until + MAX_WATCH_DELAY)?;
        Some((input, until - input))
    }

    fn guess(&mut self, waits: Option<Real>, typical: &WaitHistory, inputs: &ReadinessLog) -> Real {
        let looked = (self.after != Real(0)).then_some(self.after);
        // Waits that are all alike may be for a timer, and tell more than somebody else's input.
        if let Some(earliest) = looked.max(waits)
            && let Some(input) = inputs.first(earliest.max(self.input), self.at)
            && !typical.is_steady()
        {
            self.input = input;
            inputs.count_use();
            return (input + self.lag).min(self.at);
        }
        let noticed_asleep = |came: Real| (came + self.wakes).min(self.at);
        let latest = noticed_asleep(self.idle.unwrap_or(self.at));
        let looked = looked.map(noticed_asleep);
        let Some(earliest) = looked.max(waits).filter(|&earliest| earliest < latest) else {
            return latest;
        };
        match waits {
            Some(waits) => waits + typical.draw(earliest - waits, latest - waits),
            None => earliest + Nanos((latest - earliest).0 / 2),
        }
    }
}

impl DriverPolls {
    /// None yet.
    pub const fn new() -> DriverPolls {
        DriverPolls { looked: AtomicI64::new(0), wakes: AtomicI64::new(0), lag: AtomicI64::new(0) }
    }

    // All accesses are Relaxed: they publish nothing else, and looks that race with each other are
    // one look.

    /// A worker that sleeps until something comes needs so long on average to get going.
    pub fn set_wakeup_latency(&self, mean: Nanos) {
        self.wakes.store(mean.0, Relaxed);
    }

    /// A worker waited in the driver from `since` until `now`: it has looked, and if it `slept` in
    /// the end, there was nothing.
    pub fn record_wait(&self, since: Real, now: Real, slept: bool) {
        let looked = if slept { now } else { since };
        self.looked.fetch_max(looked.0, Relaxed);
    }

    /// A worker that is idle since `idle`, if it is, notices something at `now`. `look` is its last
    /// one, and `has_slept` says whether it has slept since it noticed something last, or became
    /// idle. Returns the look that this is part of. The last one tells how late something is
    /// noticed, by now that its input is among the `inputs`.
    pub fn notice(
        &self,
        look: &Cell<DriverPoll>,
        now: Real,
        idle: Option<Real>,
        has_slept: impl FnOnce() -> bool,
        inputs: &ReadinessLog,
    ) -> DriverPoll {
        let last = look.get();
        let soon = last.is_same(idle, now);
        let slept = !soon && idle.is_some() && has_slept();
        let goes_on = soon || (idle.is_some() && last.idle == idle && !slept);
        let at = if goes_on { last.at } else { now };
        let lagged = if goes_on { None } else { last.first_lag(inputs) };
        if let Some((_, lag)) = lagged {
            let mean = self.lag.load(Relaxed);
            self.lag.store(mean + (lag.min(MAX_LAG).0 - mean) / 16, Relaxed);
        }
        let after = Real(self.looked.fetch_max(at.0, Relaxed));
        look.set(if goes_on {
            DriverPoll { last: now, ..last }
        } else {
            let [wakes, lag] = [&self.wakes, &self.lag].map(|mean| Nanos(mean.load(Relaxed)));
            // The thread may have heard of that one after the worker: it tells of nothing else.
            let input = lagged.map_or(Real(0), |(input, _)| input);
            DriverPoll { idle, at, last: now, after, slept, wakes, lag, input, ..DriverPoll::NONE }
        });
        look.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: i64) -> Real {
        Real(us * 1000)
    }

    fn guess(at: Real) -> Arrival {
        Arrival { at, at_once: false }
    }

    /// A worker, and the looks of all.
    struct Worker {
        looks: DriverPolls,
        look: Cell<DriverPoll>,
        typical: WaitHistory,
        inputs: ReadinessLog,
    }

    impl Worker {
        /// There was a look just before `looked`.
        fn new(looked: i64) -> Worker {
            let looks = DriverPolls::new();
            looks.record_wait(us(0), us(looked), true);
            let (look, typical) = (Cell::new(DriverPoll::NONE), WaitHistory::default());
            Worker { looks, look, typical, inputs: ReadinessLog::new() }
        }

        /// When that came which it notices, idle since then or busy, and having `slept` or not, for
        /// a task that waits since then.
        fn came(&self, now: i64, idle: Option<i64>, slept: bool, waits: Option<i64>) -> Arrival {
            let idle = idle.map(us);
            let mut look = self.looks.notice(&self.look, us(now), idle, || slept, &self.inputs);
            let came = look.arrival(waits.map(us), &self.typical, &self.inputs);
            self.look.set(look);
            came
        }

        /// Returns when that came which the worker finds at `now`, idle since `idle` or busy: it
        /// lay there already, as the worker has not slept.
        fn finds(&self, now: i64, idle: Option<i64>) -> Arrival {
            self.came(now, idle, false, None)
        }
    }

    fn at_once(at: i64) -> Arrival {
        Arrival { at: us(at), at_once: true }
    }

    #[test]
    fn a_sleeping_worker_is_woken_at_once() {
        assert_eq!(Worker::new(0).came(500, Some(300), true, Some(100)), at_once(500));
    }

    #[test]
    fn arrival_found_by_a_look_is_dated_between_two_looks() {
        let worker = Worker::new(1000);
        // It is busy until 2000, then looks.
        assert_eq!(worker.finds(2010, Some(2000)), guess(us(1500)));
        // The same look goes on, however many it wakes.
        assert_eq!(worker.finds(2039, Some(2000)), guess(us(1500)));
        // The next one, every 61 polls, while nobody is idle.
        assert_eq!(worker.finds(4039, None), guess(Real(3_024_500)));
        assert_eq!(worker.finds(4049, None), guess(Real(3_024_500)));
    }

    #[test]
    fn all_of_one_look_came_before_it_however_long_that_takes() {
        let worker = Worker::new(1000);
        for n in 0..20 {
            assert_eq!(worker.finds(2010 + 10 * n, Some(2000)), guess(us(1500)));
        }
        // It was preempted meanwhile.
        assert_eq!(worker.finds(2700, Some(2000)), guess(us(1500)));
        worker.looks.record_wait(us(2000), us(2710), false);
        // What comes after the first was noticed is found by the next look.
        assert_eq!(worker.finds(4010, Some(4000)), guess(us(3005)));
    }

    #[test]
    fn a_worker_that_is_idle_may_look_more_than_once() {
        let worker = Worker::new(1000);
        let came = |now, slept| worker.came(now, Some(2000), slept, None);
        // What it found may not run yet: it sleeps again until something comes.
        assert_eq!(came(2010, false), guess(us(1500)));
        assert_eq!(came(2500, true), at_once(2500));
        assert_eq!(came(2530, true), at_once(2500), "they came together");
        assert_eq!(came(3500, true), at_once(3500));
        // Somebody else wakes it, after a while in which nothing came.
        worker.looks.record_wait(us(2000), us(3800), true);
        assert_eq!(worker.finds(4000, None), guess(us(3900)));
    }

    #[test]
    fn a_look_that_found_nothing_is_one_too() {
        let worker = Worker::new(1000);
        // Woken by another worker as soon as it had looked.
        worker.looks.record_wait(us(1800), us(1805), false);
        assert_eq!(worker.finds(2010, Some(2000)), guess(us(1900)));
        // Another worker's look in between is not this one's.
        worker.looks.record_wait(us(2005), us(2015), false);
        assert_eq!(worker.finds(2020, Some(2000)), guess(us(1900)));
    }

    #[test]
    fn nothing_comes_before_the_task_waits_for_it() {
        let worker = Worker::new(1000);
        let came = |now, waits| worker.came(now, Some(2000), false, Some(waits));
        assert_eq!(came(2010, 1800), guess(us(1900)));
        assert_eq!(came(2015, 2005), guess(us(2000)));
    }

    #[test]
    fn without_a_look_before_it_came_with_this_one() {
        assert_eq!(Worker::new(0).finds(2010, None), guess(us(2010)));
    }

    #[test]
    fn event_found_late_is_dated_to_when_a_sleeper_would_notice() {
        let worker = Worker::new(1000);
        worker.looks.set_wakeup_latency(Nanos::from_micros(50));
        assert_eq!(worker.finds(2010, Some(1900)), guess(us(1500)));
        let worker = Worker::new(1000);
        worker.looks.set_wakeup_latency(Nanos::from_micros(50));
        assert_eq!(worker.finds(2010, Some(2000)), guess(us(1530)), "not after it was noticed");
    }

    #[test]
    fn waits_that_were_noticed_at_once_tell_of_those_that_were_not() {
        let worker = Worker::new(1000);
        worker.typical.count(Nanos::from_micros(500));
        let came = |now, waits| worker.came(now, Some(2000), false, Some(waits));
        assert_eq!(came(2010, 1200), guess(us(1700)));
        assert_eq!(came(2011, 1800), guess(us(1900)), "it can't have been as long");
        assert_eq!(came(2012, 100), guess(us(1500)), "it was longer");
    }

    #[test]
    fn event_between_two_looks_came_with_an_input() {
        let worker = Worker::new(1000);
        for came in [900, 1100, 1300, 1600, 2015] {
            worker.inputs.record(us(came));
        }
        let came = |now, waits| worker.came(now, Some(2000), false, Some(waits)).at;
        assert_eq!(came(2010, 500), us(1100));
        assert_eq!(came(2011, 500), us(1300), "each serves once");
        assert_eq!(came(2012, 1400), us(1600), "it was not before the task waited");
        assert_eq!(came(2013, 500), us(1500), "there are no more: the middle");
        assert_eq!(worker.inputs.used(), 3);
    }

    #[test]
    fn an_input_that_was_noticed_late_counts_as_come_when_a_sleeping_worker_would_have_noticed_it()
    {
        let worker = Worker::new(0);
        // It sleeps, and notices what comes 40 us later; once it had waited behind the target for
        // 100 us more.
        let mut now = 1000;
        for waited in [0, 0, 100].into_iter().cycle().take(300) {
            worker.inputs.record(us(now + 500));
            worker.inputs.record(us(now + 520));
            now += 540 + waited;
            worker.came(now, Some(now - 540), true, None);
            let mut look = worker.look.get();
            look.set_waited(Nanos::from_micros(waited));
            worker.look.set(look);
            worker.looks.record_wait(us(now - 540), us(now), true);
        }
        // What follows it was busy for.
        let finds = |came: i64, noticed: i64| {
            worker.inputs.record(us(came));
            let Arrival { at, at_once } = worker.finds(noticed, Some(noticed - 5));
            worker.looks.record_wait(us(noticed - 5), us(noticed), false);
            assert!(!at_once);
            (at - us(came)).0 as f64 / 1e3
        };
        let told = finds(now + 100, now + 900);
        assert!((told - 40.0).abs() < 0.5, "{told} us");
        let told = finds(now + 1500, now + 1520);
        assert!((told - 20.0).abs() < 0.5, "{told} us: not after it was noticed");
    }

    #[test]
    fn an_input_that_the_thread_heard_of_after_the_worker_tells_of_nothing_else() {
        let worker = Worker::new(0);
        assert_eq!(worker.came(500, Some(300), true, None), at_once(500));
        worker.looks.record_wait(us(300), us(505), true);
        // The one for which it slept, heard of 20 us later, and the next, while it is busy.
        [520, 900].into_iter().for_each(|came| worker.inputs.record(us(came)));
        let came = worker.came(1000, Some(995), false, None).at;
        // A sixteenth of the 20 us by which workers are ahead of the thread is learnt.
        assert_eq!(came, Real(900_000 - 20_000 / 16), "520 was noticed at 500");
    }

    #[test]
    fn of_what_is_noticed_at_once_no_input_is_needed() {
        let worker = Worker::new(0);
        worker.inputs.record(us(400));
        assert_eq!(worker.came(500, Some(300), true, Some(100)), at_once(500));
        assert_eq!(worker.inputs.used(), 0);
    }

    #[test]
    fn waits_that_are_all_alike_are_no_waits_for_an_input() {
        let worker = Worker::new(1000);
        worker.inputs.record(us(1100));
        (0..10).for_each(|_| worker.typical.count(Nanos::from_micros(500)));
        assert_eq!(worker.came(2010, Some(2000), false, Some(1200)).at, us(1700));
        assert_eq!(worker.came(2011, Some(2000), false, Some(1000)).at, us(1500));
    }
}

//! Counters of events, such as cycles and cache misses, on each thread: a counter overflows after
//! so many events, its period, and interrupts the thread by the one
//! [signal](crate::signal), whose descriptor tells which counter it was. All events of the period
//! are those of where the thread is then.
//!
//! To read the counters at samples of CPU time would not do: of two polls between two samples, the
//! second would get the events of both.
//!
//! For how many events there are nobody knows beforehand. So counters count without overflows
//! until the rate of the whole program is known, and the period is set for some hundred overflows
//! a second of all threads together. Where the rate grows, so does the period.

use crate::clock;
use crate::counter_cells::{Cells, Reading};
use crate::descriptors::Permit;
use crate::events::{self, Counter};
use crate::perf::{self, NEVER, NotCounted};
use crate::signal;
use crate::slots::{self, LivingThread};
use crate::source::{disable, send_signal, set_period};
use andweorc_profile::EventTotal;
use andweorc_profile::settings::CountedEvent;
use andweorc_profile::time::{Nanos, Real};
use libc::ESRCH;
use std::collections::HashSet;
use std::io;
use std::os::fd::AsRawFd;

/// Overflows of each event a second, of all threads together.
const RATE: f64 = 500.0;

/// A rise of the rate to more than this multiple sets the period anew.
const TOO_MANY: u64 = 2;

/// Overflows of one event since the rates were looked at, from which on they are looked at anew at
/// once: a tenth of a second may be too long to wait where a program begins to work.
const FLOOD: u64 = 2 * RATE as u64 / 10;

/// How long the rate of events is measured before a period is set.
const RATED: Nanos = Nanos::from_millis(100);

/// Findings of counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The events, in the order of their counters.
    pub events: Vec<EventTotal>,
    /// Threads of which nothing was counted.
    pub threads_left_out: u64,
}

/// Counts events of all threads that can be sampled, until dropped; none by default.
#[derive(Debug, Default)]
pub struct Counters {
    events: Vec<Rated>,
    threads: Vec<ThreadCounters>,
    /// Numbers of the threads that are left out.
    left_out: HashSet<u32>,
    /// Threads that were taken up before the counting began, how many began since, and how many of
    /// these were seen.
    opened: u32,
    began: u32,
    seen: u32,
    /// When the rates were last looked at.
    looked: Real,
}

/// An event, and how often it happens.
#[derive(Debug)]
struct Rated {
    event: CountedEvent,
    /// `None` until the rate is known.
    period: Option<u64>,
    /// Events since the last look.
    count: u64,
    total: EventTotal,
}

/// The counters of one thread, in the order of the events.
#[derive(Debug)]
struct ThreadCounters {
    opened: u32,
    cells: &'static Cells,
    counters: Vec<ThreadCounter>,
}

#[derive(Debug)]
struct ThreadCounter {
    counter: Counter,
    last: Reading,
    /// Overflows that the events so far come to.
    due: f64,
    /// Overflows that were seen before this thread had the cells, and up to the last look.
    seen_before: u64,
    seen_at_look: u64,
    _permit: Permit,
}

impl Counters {
    /// Counts those of these events that the kernel counts. Returns the others too.
    pub fn open(wanted: &[CountedEvent]) -> (Counters, Vec<NotCounted>) {
        let (mut events, mut refused) = (Vec::new(), Vec::new());
        for &event in wanted {
            match perf::probe_counter(event) {
                Ok(()) => events.push(Rated::new(event)),
                Err(why) => refused.push(why),
            }
        }
        let (_, opened) = slots::living();
        let looked = clock::now();
        let mut counters = Counters {
            events,
            threads: Vec::new(),
            left_out: HashSet::new(),
            opened,
            began: 0,
            seen: 0,
            looked,
        };
        counters.take_up();
        (counters, refused)
    }

    /// Whether there is nothing to count.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether the period of each event that happens is known, so that overflows tell where it
    /// does.
    pub fn is_rated(&self) -> bool {
        self.events.iter().any(|event| event.period.is_some())
    }

    /// Takes up the threads that have begun since the last call, lets go of those that have ended,
    /// and looks at the rates now and then. To be called some hundred times a second.
    pub fn look(&mut self) {
        if !signal::may_send() {
            self.stop();
            return;
        }
        self.take_up();
        let now = clock::now();
        let elapsed = now - self.looked;
        if elapsed < RATED && !self.is_flooded() {
            return;
        }
        self.looked = now;
        self.threads.iter_mut().for_each(|thread| thread.read(&mut self.events));
        for (number, rated) in self.events.iter_mut().enumerate() {
            let period = next_period(rated.period, std::mem::take(&mut rated.count), elapsed);
            if let Some(period) = period.filter(|_| period != rated.period) {
                rated.period = Some(period);
                self.threads.iter_mut().for_each(|thread| thread.set_period(number, period));
            }
        }
    }

    /// Whether some event overflows far too often.
    fn is_flooded(&self) -> bool {
        let threads = |number: usize| self.threads.iter().map(move |it| it.seen_since(number));
        (0..self.events.len()).any(|number| threads(number).sum::<u64>() > FLOOD)
    }

    /// Counts no more, and tells what was counted. Samples that are on their way are in the queues
    /// by then.
    pub fn close(mut self) -> Totals {
        self.stop();
        self.events.iter_mut().for_each(Rated::leave_kernel_out);
        let unseen = u64::from(self.began.saturating_sub(self.seen));
        Totals {
            events: std::mem::take(&mut self.events).into_iter().map(|it| it.total).collect(),
            threads_left_out: self.left_out.len() as u64 + unseen,
        }
    }

    fn stop(&mut self) {
        for mut thread in std::mem::take(&mut self.threads) {
            thread.stop(&mut self.events);
        }
    }

    fn take_up(&mut self) {
        let (living, opened) = slots::living();
        self.began = opened.wrapping_sub(self.opened);
        let events = &mut self.events;
        self.threads.retain_mut(|thread| {
            let lives = living.iter().any(|it| it.opened == thread.opened);
            if !lives {
                thread.stop(events);
            }
            lives
        });
        let known: HashSet<u32> = self.threads.iter().map(|thread| thread.opened).collect();
        for thread in living {
            let number = thread.opened;
            if known.contains(&number) || self.left_out.contains(&number) {
                continue;
            }
            let is_new = (1..=self.began).contains(&number.wrapping_sub(self.opened));
            self.seen += u32::from(is_new);
            match ThreadCounters::open(&thread, &self.events) {
                Ok(counters) => self.threads.push(counters),
                // The thread has ended. One that is new counts as one that was not seen.
                Err(error) if error.raw_os_error() == Some(ESRCH) => {
                    self.seen -= u32::from(is_new);
                }
                Err(_) => {
                    self.left_out.insert(number);
                }
            }
        }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Rated {
    fn new(event: CountedEvent) -> Rated {
        let total = EventTotal { name: event.name().to_owned(), ..EventTotal::default() };
        Rated { event, period: None, count: 0, total }
    }

    /// The kernel's clock goes on in the kernel, where it does not interrupt: what its interrupts
    /// don't tell is not lost, but no time in user space.
    fn leave_kernel_out(&mut self) {
        let EventTotal { count, overflows, lost, .. } = &mut self.total;
        if self.event == CountedEvent::CpuClock && *overflows > 0 {
            *count = (*count as f64 * *overflows as f64 / (*overflows + *lost) as f64) as u64;
            *lost = 0;
        }
    }
}

/// The period of an event that happened `count` times while it had this one. It is odd, so that a
/// loop of a round number of events is not met at one place alone.
fn next_period(period: Option<u64>, count: u64, elapsed: Nanos) -> Option<u64> {
    if count == 0 {
        return period;
    }
    let rate = count as f64 / elapsed.as_secs_f64();
    let wanted = ((rate / RATE) as u64).min(NEVER) | 1;
    match period {
        Some(period) if wanted <= period.saturating_mul(TOO_MANY) => Some(period),
        _ => Some(wanted),
    }
}

impl ThreadCounters {
    fn open(thread: &LivingThread, events: &[Rated]) -> io::Result<ThreadCounters> {
        if thread.is_deaf {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut counters = Vec::with_capacity(events.len());
        for rated in events {
            let period = rated.period.unwrap_or(NEVER);
            let (counter, permit) = perf::open_counter(thread.tid, rated.event, period)?;
            send_signal(counter.as_raw_fd(), thread.tid)?;
            counters.push(ThreadCounter {
                counter,
                last: Reading::default(),
                due: 0.0,
                seen_before: 0,
                seen_at_look: 0,
                _permit: permit,
            });
        }
        for ((cell, own), rated) in thread.counters.each().zip(&mut counters).zip(events) {
            own.seen_before = cell.seen();
            own.seen_at_look = own.seen_before;
            cell.open(own.counter.as_raw_fd(), rated.period.unwrap_or(0));
            own.counter.enable()?;
        }
        Ok(ThreadCounters { opened: thread.opened, cells: thread.counters, counters })
    }

    /// Adds what was counted since the last call.
    fn read(&mut self, events: &mut [Rated]) {
        for ((own, rated), cell) in self.counters.iter_mut().zip(events).zip(self.cells.each()) {
            own.seen_at_look = cell.seen();
            let Ok(reading) = events::read(&mut own.counter) else { continue };
            let since = reading.since(own.last);
            own.last = reading;
            rated.count += since.count;
            let Some(period) = rated.period else { continue };
            own.due += since.count as f64 / period as f64;
            rated.total.count += since.count;
            rated.total.enabled_ns += since.enabled;
            rated.total.running_ns += since.running;
        }
    }

    /// Overflows of the counter of this number since the last call of [`read`](Self::read).
    fn seen_since(&self, number: usize) -> u64 {
        self.cells.number(number).seen() - self.counters[number].seen_at_look
    }

    fn set_period(&mut self, number: usize, period: u64) {
        let (cell, counter) = (self.cells.number(number), &mut self.counters[number].counter);
        // Disabled meanwhile: the kernel ends the period that one of its own events is in by the
        // length of the one before, which may never come to its end, unless the event begins anew.
        disable(counter);
        // The kernel refuses it for none that is open; one that kept its period would stand for it.
        if set_period(counter, period).is_ok() {
            cell.set_period(period);
        }
        if counter.enable().is_err() {
            cell.set_period(0);
        }
    }

    /// Counts no more.
    fn stop(&mut self, events: &mut [Rated]) {
        for (own, cell) in self.counters.iter().zip(self.cells.each()) {
            disable(&own.counter);
            cell.set_period(0);
        }
        self.read(events);
        for ((own, cell), rated) in self.counters.iter().zip(self.cells.each()).zip(events) {
            let seen = cell.seen() - own.seen_before;
            rated.total.overflows += seen;
            // The last period has not come to its end.
            rated.total.lost += (own.due as u64).saturating_sub(seen);
        }
        self.counters.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_millis(1000);

    #[test]
    fn period_is_set_once_the_rate_is_known_and_raised_where_that_doubles() {
        assert_eq!(next_period(None, 0, SECOND), None);
        assert_eq!(next_period(None, 7, SECOND), Some(1), "each is an overflow");
        let period = next_period(None, 3_000_000_000, SECOND);
        assert_eq!(period, Some(6_000_001));
        assert_eq!(next_period(None, 300_000_000, Nanos::from_millis(100)), period);
        assert_eq!(next_period(period, 0, SECOND), period);
        assert_eq!(next_period(period, 5_000_000_000, SECOND), period);
        assert_eq!(next_period(period, 9_000_000_000, SECOND), Some(18_000_001));
    }

    #[test]
    fn time_in_the_kernel_is_no_lost_time_in_user_space() {
        let left = |event| {
            let mut rated = Rated::new(event);
            (rated.total.count, rated.total.overflows, rated.total.lost) = (1_000, 80, 20);
            rated.leave_kernel_out();
            (rated.total.count, rated.total.lost)
        };
        assert_eq!(left(CountedEvent::CpuClock), (800, 0));
        assert_eq!(left(CountedEvent::Cycles), (1_000, 20));
    }
}

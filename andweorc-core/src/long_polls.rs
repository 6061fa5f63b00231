//! Polls that last long, and so keep a worker from all other tasks: caught while they last, with
//! the place where they are.
//!
//! Each poll says when it began (`ledger/watched_poll.rs`). One thread looks at these every few
//! milliseconds. A thread that is in a poll for long is looked at more closely: how much of it was
//! computing, sleep, and waiting for a processor, so that neither a preemption nor a processor that
//! the host takes away makes a poll long (`length`). Once it has surely computed or slept for the
//! [threshold](crate::settings::Settings::long_poll) its call chain is taken, once: of a thread
//! that runs by the [signal](andweorc_sampling::asked_stack), of one that sleeps from
//! [outside](andweorc_sampling::asleep), without any signal, which could end its sleep.
//!
//! Polls are recorded while the run observes the program, every quarter of the threshold, and in
//! baselines, at the looks of the [nudger](crate::catch_up_signal), which comes as often in
//! experiments. In experiments nothing is recorded: polls have pauses in them there.
//!
//! | module | job |
//! |---|---|
//! | `length` | how long a poll surely is |
//! | `kernel` | what the kernel tells of a thread |
//! | `places` | the long polls that were found, and their names |

mod kernel;
mod length;
mod places;

use crate::background_thread::BackgroundThread;
use crate::catch_up_signal::tell;
use crate::clock;
use crate::ledger::Account;
use crate::process::asked::Switches;
use crate::process::process;
use crate::stall::Stalls;
use crate::symbols::Symbols;
use crate::sync::Mutex;
use crate::thread::{Overhead, ledger};
use crate::time::{Nanos, Real};
use andweorc_profile::LongPollsRecord;
use andweorc_sampling::{asked_stack, asleep, signal};
use length::Length;
use places::{Found, Places};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Bounds of how often it is looked while the program is observed.
const OFTENEST: Duration = Duration::from_millis(1);
const RAREST: Duration = Duration::from_millis(5);

/// The long polls of a run.
#[derive(Debug, Default)]
pub(crate) struct LongPolls(Mutex<Watch>);

#[derive(Debug, Default)]
struct Watch {
    /// A poll is long from this on; `None` where nobody looks for long ones.
    threshold: Option<Nanos>,
    /// Since when polls are recorded, while they are.
    since: Option<Real>,
    /// For how long they were, before.
    watched: Nanos,
    /// Polls that are looked at, by the threads that they are on.
    polls: HashMap<i32, InPoll>,
    /// The thread that was asked for its call chain.
    asked: Option<i32>,
    places: Places,
}

/// A poll that is looked at.
#[derive(Debug)]
struct InPoll {
    account: &'static Account,
    since: Real,
    length: Length,
    is_caught: bool,
    found: Found,
}

/// Polls are recorded while this lives.
#[must_use = "nothing is recorded once this is dropped"]
pub(crate) struct Recording<'a>(&'a LongPolls);

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.0.0.lock().end(clock::now());
    }
}

impl LongPolls {
    /// Watches polls from now on, which are long from `threshold` on.
    pub(crate) fn watch(&self, threshold: Duration) {
        self.0.lock().threshold = Some(Nanos::from(threshold));
        process().asked.switch_on(Switches::WATCHES_POLLS);
    }

    /// Records polls that begin from now on.
    pub(crate) fn record(&self) -> Recording<'_> {
        let mut watch = self.0.lock();
        watch.since = watch.threshold.map(|_| clock::now());
        Recording(self)
    }

    /// Runs `f`, and meanwhile records polls that begin, and looks for long ones often: as a run
    /// does while it observes the program.
    pub(crate) fn while_observing<R>(self: &Arc<LongPolls>, f: impl FnOnce() -> R) -> R {
        let often = self.look_often();
        let _working = often.as_ref().map(BackgroundThread::work);
        let _recording = self.record();
        f()
    }

    /// A thread that looks often, until it is dropped; `None` where nobody looks for long polls.
    fn look_often(self: &Arc<LongPolls>) -> Option<BackgroundThread> {
        let threshold = self.0.lock().threshold?;
        let period = (threshold.to_duration() / 4).clamp(OFTENEST, RAREST);
        let polls = Arc::clone(self);
        let thread = BackgroundThread::start("andweorc-polls", move || {
            let (takes, mut stalls) = (Overhead::new(), Stalls::new());
            move || {
                takes.count();
                let since = clock::now();
                std::thread::sleep(period);
                let now = clock::now();
                stalls.woke(now - since - Nanos::from(period));
                polls.look(now);
                Duration::ZERO
            }
        });
        Some(thread)
    }

    /// Looks at all polls.
    pub(crate) fn look(&self, now: Real) {
        self.0.lock().look(now);
    }

    /// Ends the watch, and takes what was found. `symbols` opens those of the program, if there is
    /// something to name. `None` where nobody looked for long polls.
    pub(crate) fn finish(
        &self,
        symbols: impl FnOnce() -> Option<Symbols>,
    ) -> Option<LongPollsRecord> {
        process().asked.switch_off(Switches::WATCHES_POLLS);
        let (threshold, watched, places) = {
            let mut watch = self.0.lock();
            watch.end(clock::now());
            (watch.threshold.take()?, watch.watched, std::mem::take(&mut watch.places))
        };
        let symbols = if places.is_empty() { None } else { symbols() };
        let (polls, merged, handed_over) = places.into_rows(symbols);
        let ns = |time: Nanos| u64::try_from(time.0).unwrap_or(0);
        let (threshold_ns, watched_ns) = (ns(threshold), ns(watched));
        Some(LongPollsRecord { threshold_ns, watched_ns, polls, merged, handed_over })
    }
}

impl Watch {
    /// Nothing is recorded any more.
    fn end(&mut self, now: Real) {
        let Some(since) = self.since else { return };
        self.look(now);
        // The end of what goes on is not known.
        for poll in std::mem::take(&mut self.polls).into_values() {
            self.add(poll);
        }
        self.since = None;
        self.watched += now - since;
    }

    fn look(&mut self, now: Real) {
        let (Some(threshold), Some(began)) = (self.threshold, self.since) else { return };
        self.take_answer();
        let mut known = std::mem::take(&mut self.polls);
        for account in ledger().accounts() {
            let Some((target, since)) = account.poll.going_on() else { continue };
            let Some(tid) = account.thread() else { continue };
            if since < began || now - since < Nanos(threshold.0 / 4) {
                continue;
            }
            let before = known.remove(&tid).filter(|poll| {
                let is_same = poll.since == since;
                if !is_same {
                    self.add_ended(poll);
                }
                is_same
            });
            let Some(look) = kernel::look(tid, now) else { continue };
            let poll = match before {
                None => {
                    let found = Found { target, ..Found::default() };
                    let length = Length::begin(look);
                    InPoll { account, since, length, is_caught: false, found }
                }
                Some(mut poll) => {
                    poll.length.advance(look);
                    if poll.length.known() >= threshold {
                        self.catch(&mut poll, tid, look.is_asleep);
                    }
                    poll
                }
            };
            self.polls.insert(tid, poll);
        }
        for poll in known.into_values() {
            self.add_ended(&poll);
        }
    }

    /// A poll is long: its end is to be told, and its call chain is taken.
    fn catch(&mut self, poll: &mut InPoll, tid: i32, is_asleep: bool) {
        if !poll.is_caught {
            poll.is_caught = true;
            poll.account.poll.catch(poll.since);
        }
        if !poll.found.chain.is_empty() {
            return;
        }
        if is_asleep {
            if let Some(asleep) = asleep::look(tid, asked_stack::DEPTH) {
                poll.found.chain = asleep.chain;
                poll.found.syscall = Some(asleep.syscall);
            }
        } else if self.asked.is_none()
            && poll.account.is_told(tid)
            && signal::is_in_use()
            && signal::may_send()
        {
            self.asked = Some(tid);
            asked_stack::ask(tid, poll.since.0);
            tell(tid);
        }
    }

    /// Takes the answer of the thread that was asked at the last look.
    fn take_answer(&mut self) {
        if let Some(tid) = self.asked.take()
            && let Some(chain) = asked_stack::take()
            && let Some(poll) = self.polls.get_mut(&tid)
        {
            poll.found.chain = chain;
        }
    }

    /// A poll that was looked at is over.
    fn add_ended(&mut self, poll: &InPoll) {
        if poll.is_caught {
            let end = poll.account.poll.take_end().unwrap_or(poll.length.at());
            self.places.add(poll.found.clone(), poll.length.of_poll(poll.since, end));
        }
    }

    /// A poll goes on, and will not be looked at again.
    fn add(&mut self, poll: InPoll) {
        if poll.is_caught {
            let length = poll.length.of_poll(poll.since, poll.length.at());
            poll.account.poll.take_end();
            self.places.add(poll.found, length);
        }
    }
}

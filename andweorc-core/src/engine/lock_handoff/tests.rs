//! Threads that fight for one lock, while something else delays all of them: simulated, on a ledger
//! of their own.

use super::*;
use crate::time::Speedup;
use std::collections::VecDeque;
use tests_support::kept;

/// Everybody is delayed, by a wait that is the target.
const DELAYED: Speedup = Speedup::from_ppm(150_000);

/// Time under the lock: with two threads or more somebody always waits for it.
const UNDER: Nanos = Nanos::from_micros(600);

/// From the unlock until who waits comes out.
const WAKES: Nanos = Nanos::from_micros(20);

/// Next step of a thread.
#[derive(Clone, Copy, Debug)]
enum Next {
    GoesIn,
    ComesOut,
    /// Has paused for so long, and then works under the lock.
    Paid(Nanos),
    Unlocks,
    /// Has paused for so long outside of it.
    PaidOutside(Nanos),
    Waits,
}

#[derive(Clone, Copy, Debug)]
struct Fighter {
    account: &'static Account,
    at: Real,
    next: Next,
    went_in: Real,
}

/// Threads that do nothing but fight for a lock.
struct Fight {
    ledger: &'static Ledger,
    door: Door<'static>,
    fighters: Vec<Fighter>,
    held: bool,
    queue: VecDeque<usize>,
    turns: u32,
    /// Time between two turns of a thread, and whether it pays then.
    outside: Nanos,
    pays: bool,
}

impl Fight {
    fn new(count: usize, outside: Nanos, pays: bool) -> Fight {
        let ledger = kept(Ledger::new());
        ledger.begin(DELAYED, Real(0));
        let fighter = |i| Fighter {
            account: ledger.open(Real(0)).expect("there is room"),
            at: Real(i),
            next: Next::GoesIn,
            went_in: Real(0),
        };
        Fight {
            ledger,
            door: Door { last: None },
            fighters: (0..).take(count).map(fighter).collect(),
            held: false,
            queue: VecDeque::new(),
            turns: 0,
            outside,
            pays,
        }
    }

    /// Runs the next step of the thread that is the first to have something to do. Returns when
    /// that was.
    fn step(&mut self) -> Real {
        let ready = (0..self.fighters.len())
            .filter(|&i| !matches!(self.fighters[i].next, Next::Waits))
            .min_by_key(|&i| self.fighters[i].at)
            .expect("somebody has the lock");
        let Fighter { account, at: now, next, went_in } = self.fighters[ready];
        let pay = |paid| {
            self.ledger.took(account, paid, now);
            Some(self.ledger.lag(account, now)).filter(|&debt| debt > Nanos(100))
        };
        let (after, next) = match next {
            Next::GoesIn => {
                self.door.go_in(self.ledger, account, now);
                self.fighters[ready].went_in = now;
                if self.held {
                    self.queue.push_back(ready);
                    (Nanos::ZERO, Next::Waits)
                } else {
                    self.held = true;
                    (Nanos::ZERO, Next::ComesOut)
                }
            }
            Next::ComesOut => {
                let absorbed = self.door.comes_out(self.ledger, account, went_in, now);
                self.ledger.absorb(account, absorbed, now);
                (Nanos::ZERO, Next::Paid(Nanos::ZERO))
            }
            Next::Paid(paid) => match pay(paid) {
                Some(debt) => (debt, Next::Paid(debt)),
                None => (UNDER, Next::Unlocks),
            },
            Next::Unlocks => {
                self.turns += 1;
                self.held = false;
                if let Some(woken) = self.queue.pop_front() {
                    self.held = true;
                    self.fighters[woken].at = now + WAKES;
                    self.fighters[woken].next = Next::ComesOut;
                }
                match self.pays {
                    true => (Nanos::ZERO, Next::PaidOutside(Nanos::ZERO)),
                    false => (self.outside, Next::GoesIn),
                }
            }
            Next::PaidOutside(paid) => match pay(paid) {
                Some(debt) => (debt, Next::PaidOutside(debt)),
                None => (self.outside, Next::GoesIn),
            },
            Next::Waits => unreachable!("it was filtered out"),
        };
        self.fighters[ready].at = now + after;
        self.fighters[ready].next = next;
        now
    }

    /// The virtual time of a turn under the lock, ns.
    fn turn(mut self) -> f64 {
        let wait = self.ledger.begin_wait(Nanos::ZERO, Real(0)).expect("an experiment runs");
        let mut until = |turns| {
            loop {
                let now = self.step();
                if self.turns == turns {
                    return now;
                }
            }
        };
        let begun = until(20);
        let took = until(220) - begun;
        self.ledger.end_wait(wait, Real(0));
        (took - DELAYED.of(took)).0 as f64 / 200.0
    }
}

#[test]
fn a_lock_that_is_always_contended_hides_no_delay() {
    let expected = (UNDER + WAKES).0 as f64;
    for count in [2, 3, 8] {
        for (outside, pays) in [(60, true), (60, false), (0, true), (0, false)] {
            let took = Fight::new(count, Nanos::from_micros(outside), pays).turn();
            assert!(
                (took / expected - 1.0).abs() < 0.01,
                "{count} threads, {outside} us outside, pay there: {pays}: {took}, not {expected}"
            );
        }
    }
}

/// A ledger that owes 1 ms, and two accounts that have taken nothing of that.
fn behind() -> (&'static Ledger, &'static Account, &'static Account) {
    let ledger = kept(Ledger::new());
    let open = || ledger.open(Real(0)).expect("there is room");
    let (target, a, b) = (open(), open(), open());
    ledger.begin(Speedup::from_ppm(500_000), Real(0));
    ledger.enter(target, Real(0));
    ledger.exit(target, Real(2_000_000), Nanos(2_000_000));
    (ledger, a, b)
}

const NOW: Real = Real(3_000_000);

#[test]
fn thread_let_in_by_one_that_has_paid_has_paid() {
    let (ledger, a, b) = behind();
    let mut door = Door { last: None };
    door.comes_out(ledger, a, NOW, NOW);
    ledger.took(a, Nanos(700_000), NOW);
    let took = door.comes_out(ledger, b, Real(0), NOW);
    assert_eq!(took, Nanos(700_000), "as far as that one had");
    let took = door.comes_out(ledger, a, Real(0), NOW);
    assert_eq!(took, Nanos::ZERO, "and it is further than the one that lets it in again");
}

#[test]
fn thread_takes_no_more_than_it_was_blocked_for() {
    let (ledger, a, b) = behind();
    let mut door = Door { last: None };
    door.comes_out(ledger, a, NOW, NOW);
    ledger.took(a, Nanos(700_000), NOW);
    assert_eq!(door.comes_out(ledger, b, NOW - Nanos(300), NOW), Nanos(300));
}

#[test]
fn all_is_taken_as_paid_where_nobody_is_known_to_have_let_it_in() {
    let (ledger, a, b) = behind();
    let since = Real(1_000_000);
    let all = NOW - since;
    let mut door = Door { last: None };
    assert_eq!(door.comes_out(ledger, a, since, NOW), all, "it is the first");
    assert_eq!(door.comes_out(ledger, a, since, NOW), all, "it was the last itself");
    door.go_in(ledger, a, since - Nanos(1));
    assert_eq!(door.comes_out(ledger, b, since, NOW), all, "the last was blocked before it");

    let mut door = Door { last: None };
    door.comes_out(ledger, a, since, NOW);
    door.go_in(ledger, a, NOW - WAKE - Nanos(1));
    assert_eq!(door.comes_out(ledger, b, since, NOW), all, "the last is blocked for long");

    let mut door = Door { last: None };
    door.comes_out(ledger, a, since, NOW);
    let sleeper = ledger.open(NOW).expect("there is room");
    ledger.enter(sleeper, NOW);
    let later = NOW + Nanos::from_millis(10);
    ledger.exit(sleeper, later, later - NOW);
    assert_eq!(door.comes_out(ledger, b, NOW, later), later - NOW, "the last sleeps");
}

/// By how much a thread came out absorbs that waited for one which unlocked, and has entered the
/// target so long ago, in which half is saved.
fn absorbed(entered: Nanos) -> Nanos {
    let (ledger, mut door) = (kept(Ledger::new()), Door { last: None });
    ledger.begin(Speedup::from_ppm(500_000), Real(0));
    let [holds, waits] =
        [(); 2].map(|()| ledger.open(Real(0)).expect("there is room") as &'static Account);
    door.go_in(ledger, holds, Real(0));
    assert_eq!(door.comes_out(ledger, holds, Real(0), Real(0)), Nanos::ZERO);
    door.go_in(ledger, waits, Real(1000));
    let now = Real(1000) + UNDER;
    ledger.enter(holds, Real(now.0 - entered.0));
    door.comes_out(ledger, waits, Real(1000), now)
}

#[test]
fn saving_after_the_unlock_is_not_absorbed() {
    assert_eq!(absorbed(WAKES), Nanos::ZERO, "it wakes up meanwhile");
    let inside = Nanos::from_micros(300);
    assert_eq!(absorbed(inside), Nanos(inside.0 / 2), "it unlocked inside");
}

//! Only the worker that waits in the driver looks there. A process of its own, whose looks are this
//! test's alone.
#![cfg(not(loom))]

use andweorc_core::clock;
use andweorc_core::late_events::WaitHistory;
use andweorc_core::thread::{self, ledger};
use andweorc_core::time::{Nanos, Speedup};
use std::thread::sleep;
use std::time::Duration;

const TEN_MS: Nanos = Nanos::from_millis(10);

#[test]
fn a_worker_beside_the_driver_does_not_look() {
    // Between experiments nobody asks.
    ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
    let rests = |watches| {
        thread::parked(watches);
        sleep(Duration::from_millis(50));
        thread::unparked();
        clock::now()
    };
    let came = |noticed| thread::came(noticed, None, &WaitHistory::default());
    // A machine that stops the thread between a rest and the reading of the clock makes of that
    // look an older one: not each time.
    let guesses = || {
        let looked = rests(true);
        let beside = rests(false);
        let guess = came(beside);
        assert!(looked < guess && guess < beside - TEN_MS, "between the look and now: {guess:?}");
        let looked = rests(true);
        came(looked) > looked - TEN_MS
    };
    assert!((0..20).any(|_| guesses()), "after this look");
}

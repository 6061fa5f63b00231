//! When a thread pays for what it owes: as a span is closed, and not as it is left.

use andweorc_core::clock;
use andweorc_core::experiment::Experimenter;
use andweorc_core::thread::{ledger, register};
use andweorc_core::time::{Nanos, Speedup};
use std::time::Duration;
use tracing::info_span;

/// A future leaves its span to wait for the answer to what it has sent. A pause then would be taken
/// off that wait.
#[test]
fn thread_pays_as_a_span_is_closed_and_not_as_it_is_left() {
    let _on = Experimenter::new().expect("the only one in this process");
    tracing::subscriber::with_default(andweorc_tracing::subscriber(), || {
        let account = register().expect("an account is free");
        let taken = || ledger().local_delay(account, clock::now());
        let span = info_span!("answers");
        ledger().begin(Speedup::new(0.5).expect("a fraction"), clock::now());
        let target = ledger().open(clock::now()).expect("an account is free");
        ledger().enter(target, clock::now());
        std::thread::sleep(Duration::from_millis(2));
        ledger().exit(target, clock::now(), Nanos(i64::MAX));
        let before = taken();
        span.in_scope(|| ());
        let left = taken();
        drop(span);
        let closed = taken();
        ledger().end(clock::now());
        assert_eq!(left, before, "the span is open still");
        assert!(closed - left >= Nanos::from_micros(1000), "{left} {closed}");
    });
}

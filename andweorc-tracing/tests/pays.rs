//! A thread that ends a span pays what it owes, before anything else that it does can be seen. One
//! test: there is one experiment at a time.

use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::target::{Target, targets};
use andweorc_core::thread::{ledger, register};
use andweorc_core::time::{Nanos, Speedup};
use andweorc_profile::TargetKind;
use andweorc_tracing::layer;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;
use tracing::info_span;
use tracing_subscriber::prelude::*;

static DONE: AtomicBool = AtomicBool::new(false);

const DEBT: Nanos = Nanos::from_millis(2);

/// A thread that owes less has paid.
const PAID: Nanos = Nanos::from_micros(500);

/// A thread that is inside the target for half of its time.
fn target() {
    while !DONE.load(Ordering::SeqCst) {
        // Outside: who pays reads how long the target has run.
        sleep(Duration::from_millis(5));
        let _span = info_span!("target").entered();
        let begun = clock::now();
        while clock::now() - begun < Nanos::from_millis(5) {}
    }
}

/// Says what is left of a debt of at least [`DEBT`] when a span has ended, once it is [`PAID`].
fn left() -> Option<Nanos> {
    let account = register().expect("there is room for three threads");
    let begun = clock::now();
    let once = || {
        let span = info_span!("step").entered();
        while ledger().lag(account, clock::now()) < DEBT {
            assert!(clock::now() - begun < Nanos::from_millis(240_000), "D does not grow");
            std::hint::spin_loop();
        }
        drop(span);
        ledger().lag(account, clock::now())
    };
    // A thread that is preempted is behind again, on a busy machine most often.
    (0..2000).map(|_| once()).find(|left| *left < PAID)
}

extern "C" fn nothing(_: i32) {}

fn find(name: &str) -> Option<&'static Target> {
    targets().into_iter().find(|it| it.kind() == TargetKind::Span && it.name() == name)
}

#[test]
fn a_debt_is_paid_at_the_end_of_a_span() {
    // A program that handles the signal keeps its handler, and nobody is told to pay by it.
    let own = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing.
    unsafe { sigaction(Signal::SIGURG, &own) }.expect("it can be handled");
    let mut experimenter = Experimenter::new().expect("the only one in this process");
    tracing_subscriber::registry().with(layer()).init();
    let left = scope(|scope| {
        scope.spawn(target);
        let target = loop {
            match find("target") {
                Some(target) => break target,
                None => std::thread::yield_now(),
            }
        };
        scope.spawn(move || {
            let phases = Phases::from_millis(1, 2_000, 1);
            while !DONE.load(Ordering::SeqCst) {
                experimenter.run(Some(target), Speedup::new(0.5).unwrap(), phases).record();
            }
        });
        let left = scope.spawn(left).join();
        DONE.store(true, Ordering::SeqCst);
        left
    });
    let left = left.expect("it does not panic");
    assert!(left.is_some(), "{PAID} and more of {DEBT} are left");
}

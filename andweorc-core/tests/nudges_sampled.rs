//! Where lines are sampled, the thread that tells others to pay looks often. A process of its own,
//! in which no plain thread has registered.
#![cfg(not(loom))]

mod nudger;

use andweorc_core::sampler::{Event, Sampling};
use andweorc_core::symbols::Symbols;

#[test]
fn nudger_looks_often_once_lines_are_sampled() {
    let mut sampling = None;
    nudger::looks_rarely_and_then_often(|| {
        let symbols = Symbols::of_this_program().unwrap();
        // Where perf events are refused timers stand in for them.
        sampling = Some(Sampling::start(symbols, Event::default()).unwrap());
    });
}

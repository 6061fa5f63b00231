//! Where a plain thread has registered, the thread that tells others to pay looks often: it may
//! have nothing that it pays at. A process of its own, in which nobody else has.
#![cfg(not(loom))]

mod nudger;

use andweorc_core::thread;

#[test]
fn nudger_looks_often_once_a_plain_thread_has_registered() {
    nudger::looks_rarely_and_then_often(|| {
        thread::register().expect("there is room for one thread");
    });
}

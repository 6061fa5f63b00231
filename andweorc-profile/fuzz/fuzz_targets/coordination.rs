//! Any bytes, read as messages of either side, and a participant that takes them in.
#![no_main]

use andweorc_profile::coordination::{Lines, Participant, ToCoordinator, ToParticipant};
use andweorc_profile::time::{Nanos, Real};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = Lines::default();
    lines.feed(bytes);
    while let Some(Ok(_)) = lines.next_message::<ToCoordinator>() {}

    let mut lines = Lines::default();
    lines.feed(bytes);
    let mut now = Real(0);
    let mut participant = Participant::new("shop", "secret", now);
    while let Some(Ok(message)) = lines.next_message::<ToParticipant>() {
        participant.receive(message, now);
        let begun = participant.take().map(|begin| begin.experiment);
        now = now + Nanos::from_millis(100);
        participant.tick(now);
        if let Some(experiment) = begun {
            assert!(!participant.is_held(experiment) || participant.over().is_none());
        }
    }
});

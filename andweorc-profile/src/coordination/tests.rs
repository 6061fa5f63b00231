//! Messages from any bytes, and a participant with a clock of its own.

use super::*;
use crate::time::Real;
use crate::{TargetKind, coordination as protocol};
use proptest::prelude::*;

fn at(ms: i64) -> Real {
    Real(0) + Nanos::from_millis(ms)
}

fn welcome() -> ToParticipant {
    ToParticipant::Welcome { version: PROTOCOL, run: "r1".into(), entry: None }
}

/// A participant that was welcomed at 0, without what it says on its own.
fn joined() -> Participant {
    let mut participant = Participant::new("shop", "secret", at(0));
    assert!(matches!(participant.next_message(at(0)), Some(ToCoordinator::Hello { .. })));
    participant.receive(welcome(), at(0));
    participant
}

/// One that holds this experiment, with a lease of a second, since 0.
fn holding(experiment: u32) -> Participant {
    let mut participant = joined();
    participant.receive(ToParticipant::Begin(Begin::baseline(experiment, 1000)), at(0));
    assert_eq!(participant.take().unwrap().experiment, experiment);
    assert_eq!(participant.take(), None, "it is begun once");
    participant
}

fn is_discarded(participant: &Participant, experiment: u32) -> Option<String> {
    match participant.verdict(experiment)? {
        Verdict::Discard(why) => Some(why),
        Verdict::Use => None,
    }
}

#[test]
fn an_experiment_is_used_when_all_have_told_and_the_coordinator_says_so() {
    let mut one = holding(7);
    assert!(one.is_held(7) && !one.is_held(6));
    one.receive(ToParticipant::End { experiment: 7 }, at(400));
    assert!(!one.is_held(7));
    assert_eq!(one.verdict(7), None);
    one.report(7, Outcome::Measured);
    one.report(7, Outcome::Discarded { reason: "a second outcome".into() });
    let told = ToCoordinator::Result { experiment: 7, outcome: Outcome::Measured };
    assert_eq!(one.next_message(at(401)), Some(told));
    assert_eq!(one.next_message(at(401)), None);
    one.receive(ToParticipant::Settle { experiment: 7, discarded: None }, at(410));
    assert_eq!(one.verdict(7), Some(Verdict::Use));
    one.receive(ToParticipant::Settle { experiment: 7, discarded: Some("late".into()) }, at(411));
    assert_eq!(one.verdict(7), Some(Verdict::Use), "the first word counts");
    one.receive(ToParticipant::Begin(Begin::baseline(8, 1000)), at(450));
    assert_eq!(one.verdict(7), Some(Verdict::Use), "the program may ask after the next began");
    assert_eq!(one.take().unwrap().experiment, 8);
    one.receive(ToParticipant::Settle { experiment: 8, discarded: None }, at(460));
    one.receive(ToParticipant::Begin(Begin::baseline(9, 1000)), at(470));
    assert_eq!(one.verdict(8), Some(Verdict::Use));
    assert_eq!(one.verdict(9), None);
    assert!(is_discarded(&one, 7).is_some(), "nobody waits for it for ever");
}

#[test]
fn an_unheard_coordinator_ends_the_experiment_within_its_lease() {
    let mut one = holding(1);
    one.tick(at(999));
    assert!(one.is_held(1));
    one.receive(ToParticipant::Alive, at(999));
    one.tick(at(1998));
    assert!(one.is_held(1), "a word renews the lease");
    one.tick(at(1999));
    assert!(!one.is_held(1));
    assert!(is_discarded(&one, 1).unwrap().contains("lease"));
    assert!(one.over().is_some());
}

#[test]
fn a_word_that_comes_after_the_lease_does_not_renew_it() {
    let mut one = holding(1);
    one.receive(ToParticipant::Alive, at(1000));
    assert!(!one.is_held(1) && one.over().is_some());
}

#[test]
fn the_lease_runs_until_the_experiment_is_settled() {
    let mut one = holding(1);
    one.receive(ToParticipant::End { experiment: 1 }, at(500));
    one.report(1, Outcome::Measured);
    one.tick(at(1500));
    assert!(is_discarded(&one, 1).unwrap().contains("lease"));
}

#[test]
fn an_experiment_that_nobody_ends_has_an_end() {
    let mut one = holding(1);
    for ms in (100..=120_000).step_by(100) {
        assert!(one.is_held(1), "{ms}");
        one.receive(ToParticipant::Alive, at(ms));
    }
    assert!(!one.is_held(1) && one.over().is_none());
    assert!(is_discarded(&one, 1).is_some());
}

#[test]
fn late_and_repeated_messages_change_nothing() {
    let mut one = holding(5);
    for late in [
        ToParticipant::End { experiment: 4 },
        ToParticipant::Settle { experiment: 4, discarded: None },
        ToParticipant::Begin(Begin::baseline(5, 1000)),
        ToParticipant::Begin(Begin::baseline(4, 1000)),
        ToParticipant::End { experiment: 6 },
    ] {
        one.receive(late, at(10));
        assert!(one.is_held(5) && one.take().is_none() && one.over().is_none());
    }
    for _ in 0..2 {
        one.receive(ToParticipant::End { experiment: 5 }, at(20));
        assert!(!one.is_held(5) && one.verdict(5).is_none());
    }
}

#[test]
fn a_connection_that_breaks_discards_what_is_held() {
    let mut one = holding(3);
    one.give_up("the connection was lost".into());
    assert!(!one.is_held(3));
    assert_eq!(is_discarded(&one, 3).as_deref(), Some("the connection was lost"));
    one.report(3, Outcome::Measured);
    assert_eq!(one.next_message(at(1)), None, "there is nobody to tell");
}

#[test]
fn another_version_a_refusal_and_a_broken_order_end_it() {
    let mut one = Participant::new("shop", "secret", at(0));
    one.receive(
        ToParticipant::Welcome { version: PROTOCOL + 1, run: "r".into(), entry: None },
        at(1),
    );
    assert!(one.over().unwrap().contains("speaks version 2"), "{one:?}");

    let mut one = Participant::new("shop", "secret", at(0));
    one.receive(ToParticipant::Refused { reason: "wrong token".into() }, at(1));
    assert!(one.over().unwrap().contains("wrong token"));

    let mut one = Participant::new("shop", "secret", at(0));
    one.receive(ToParticipant::Begin(Begin::baseline(1, 1000)), at(1));
    assert!(one.over().is_some() && one.take().is_none());

    let mut one = holding(1);
    one.receive(ToParticipant::Begin(Begin::baseline(2, 1000)), at(1));
    assert!(one.over().is_some() && !one.is_held(1) && one.take().is_none());
}

#[test]
fn it_says_that_it_is_there_and_notices_a_silent_coordinator() {
    let mut one = joined();
    one.tick(at(199));
    assert_eq!(one.next_message(at(199)), None);
    one.tick(at(200));
    one.tick(at(201));
    assert_eq!(one.next_message(at(201)), Some(ToCoordinator::Alive));
    assert_eq!(one.next_message(at(201)), None, "once is enough");
    one.tick(at(10_000));
    assert!(one.over().unwrap().contains("not heard"));
}

#[test]
fn who_leaves_says_so_and_holds_nothing() {
    let mut one = holding(1);
    one.leave("stopped");
    one.leave("again");
    assert!(!one.is_held(1));
    assert_eq!(one.next_message(at(1)), Some(ToCoordinator::Leave { reason: "stopped".into() }));
    assert_eq!(one.next_message(at(1)), None);
}

#[test]
fn targets_of_other_services_are_called_by_service_and_name() {
    let name = |kind| {
        let target = KnownTarget { id: 1, kind, name: "lookup".into(), file: None, line: None };
        protocol::Tested { service: "inventory".into(), target }.name()
    };
    assert_eq!(name(TargetKind::Span), "inventory/lookup");
    assert_eq!(name(TargetKind::Wait), "inventory/wait:lookup");
}

#[test]
fn a_token_is_not_shown() {
    let mut participant = Participant::new("shop", "secret", at(0));
    assert!(!format!("{participant:?}").contains("secret"));
    let hello = participant.next_message(at(0)).unwrap();
    assert!(!format!("{hello:?}").contains("secret"));
    assert!(to_line(&hello).contains("secret"));
}

fn read(lines: &mut Lines) -> Option<Result<ToCoordinator, MessageError>> {
    lines.next_message()
}

#[test]
fn a_line_without_end_is_refused_at_its_bound() {
    let mut lines = Lines::default();
    lines.feed(&vec![b'a'; LONGEST_MESSAGE]);
    assert_eq!(read(&mut lines), None);
    lines.feed(b"a");
    assert_eq!(read(&mut lines), Some(Err(MessageError::TooLong)));
}

#[test]
fn fields_of_a_later_version_are_left_out_and_its_messages_are_refused() {
    let mut lines = Lines::default();
    lines.feed(b"{\"message\":\"end\",\"experiment\":7,\"since\":\"version 2\"}\n");
    lines.feed(b"{\"message\":\"pause\",\"experiment\":7}\n");
    let end = ToParticipant::End { experiment: 7 };
    assert_eq!(lines.next_message::<ToParticipant>(), Some(Ok(end)));
    let refused = lines.next_message::<ToParticipant>();
    assert!(matches!(refused, Some(Err(MessageError::Malformed(_)))), "{refused:?}");
}

#[test]
fn messages_out_of_bounds_are_refused() {
    let long = "x".repeat(LONGEST_TEXT + 1);
    let point = KnownPoint { id: 1, name: "a".into() };
    let refuse = |message: &dyn Fn() -> ToCoordinator| {
        let mut lines = Lines::default();
        lines.feed(to_line(&message()).as_bytes());
        read(&mut lines).unwrap().unwrap_err()
    };
    assert_eq!(refuse(&|| ToCoordinator::Leave { reason: long.clone() }), MessageError::LongText);
    let many = || ToCoordinator::Ready {
        targets: Vec::new(),
        points: vec![point.clone(); MOST_NAMED + 1],
    };
    assert_eq!(refuse(&many), MessageError::TooMany);
    let unnamed = || ToCoordinator::Hello { version: 1, token: String::new(), service: "".into() };
    assert!(matches!(refuse(&unnamed), MessageError::Malformed(_)));

    for (speedup_ppm, lease_ms) in [(1, 1000), (1_000_001, 1000), (0, 0), (0, 60_001)] {
        let begin = Begin { speedup_ppm, ..Begin::baseline(1, lease_ms) };
        let mut lines = Lines::default();
        lines.feed(to_line(&ToParticipant::Begin(begin)).as_bytes());
        let read = lines.next_message::<ToParticipant>().unwrap();
        assert!(matches!(read, Err(MessageError::Malformed(_))), "{read:?}");
    }
}

proptest! {
    /// Whatever comes, and however it is cut, is a message or an error, and the memory is bounded.
    #[test]
    fn any_bytes_are_messages_or_errors(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000), step in 1_usize..64,
    ) {
        let mut lines = Lines::default();
        for part in bytes.chunks(step) {
            lines.feed(part);
            while let Some(message) = read(&mut lines) {
                if let Ok(message) = message {
                    prop_assert!(message.check().is_ok());
                }
            }
        }
    }

    /// Messages of one side are read by the other, however they are cut.
    #[test]
    fn messages_are_read_as_they_were_written(
        reasons in proptest::collection::vec(".{0,40}", 1..5), step in 1_usize..64,
    ) {
        let messages: Vec<_> = reasons.into_iter().enumerate().map(|(i, reason)| {
            let outcome = Outcome::Discarded { reason };
            ToCoordinator::Result { experiment: i as u32, outcome }
        }).collect();
        let text: String = messages.iter().map(to_line).collect();
        let (mut lines, mut got) = (Lines::default(), Vec::new());
        for part in text.as_bytes().chunks(step) {
            lines.feed(part);
            while let Some(message) = read(&mut lines) {
                got.push(message.unwrap());
            }
        }
        prop_assert_eq!(got, messages);
    }
}

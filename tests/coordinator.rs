//! A program that takes part in a run of several, beside a coordinator that does wrong, or is gone.
//!
//! The programs are this test binary, run again: [`child`] is what they do. The coordinator is this
//! test, on a socket of its own.

#[path = "coordinator/child.rs"]
mod child;
#[path = "switch/parent.rs"]
#[allow(dead_code, reason = "shared with the tests of the switch, which use all of it")]
mod parent;

use andweorc_profile::coordination::{
    Begin, KnownTarget, Lines, Outcome, PROTOCOL, Tested, ToCoordinator, ToParticipant, to_line,
};
use andweorc_profile::{Run, TargetKind};
use child::{DONE, REQUESTS};
use parent::{Ended, Process, Program, once, reason};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const TOKEN: &str = "secret";

/// Longer than a program on a busy machine needs for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lease of the experiments.
const LEASE_MS: u32 = 1000;

/// The program. Its own exit code tells that it came to its end.
#[test]
#[ignore = "the program that the other tests run"]
fn child() {
    child::main();
}

/// The coordinator's end of a connection.
struct Connection {
    stream: TcpStream,
    lines: Lines,
}

impl Connection {
    /// A program under way, and its connection.
    fn of(program: Program) -> (Program, Process, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let program = program
            .enabled()
            .var("ANDWEORC_DURATION", "60s")
            .var("ANDWEORC_TARGETS", "target")
            .var("ANDWEORC_COORDINATOR", &address)
            .var("ANDWEORC_TOKEN", TOKEN)
            .var("ANDWEORC_SERVICE", "shop");
        let process = program.start();
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        (program, process, Connection { stream, lines: Lines::default() })
    }

    fn say(&mut self, message: &ToParticipant) {
        self.stream.write_all(to_line(message).as_bytes()).unwrap();
    }

    /// Waits for a message other than that the program is there, and says the same meanwhile.
    fn hear(&mut self) -> ToCoordinator {
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < until, "the program says nothing but that it is there");
            while let Some(message) = self.lines.next_message() {
                match message.unwrap() {
                    ToCoordinator::Alive => self.say(&ToParticipant::Alive),
                    message => return message,
                }
            }
            let mut bytes = [0; 4096];
            let many = self.stream.read(&mut bytes).unwrap();
            assert!(many > 0, "the program closed the connection");
            self.lines.feed(&bytes[..many]);
        }
    }

    /// Lets time pass in which both say that they are there.
    fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.say(&ToParticipant::Alive);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Takes the hello, and returns the program's targets when it is ready.
    fn welcome(&mut self) -> Vec<KnownTarget> {
        let hello = self.hear();
        let ToCoordinator::Hello { version, token, service } = &hello else { panic!("{hello:?}") };
        assert_eq!((*version, &**token, &**service), (PROTOCOL, TOKEN, "shop"));
        let entry = Some("gateway".to_owned());
        self.say(&ToParticipant::Welcome { version: PROTOCOL, run: "r1".into(), entry });
        let ready = self.hear();
        let ToCoordinator::Ready { targets, points } = ready else { panic!("{ready:?}") };
        assert!(points.iter().any(|point| point.name == "unit"), "{points:?}");
        targets
    }

    /// Begins an experiment on a target of the program.
    fn begin(&mut self, experiment: u32, targets: &[KnownTarget]) {
        let target = targets.iter().find(|it| it.name == "target").expect("it is busy").clone();
        let mut begin = Begin::baseline(experiment, LEASE_MS);
        begin.target = Some(Tested { service: "shop".into(), target });
        begin.speedup_ppm = 250_000;
        self.say(&ToParticipant::Begin(begin));
    }

    /// Waits until an experiment has been told of.
    fn outcome(&mut self, of: u32) -> Outcome {
        match self.hear() {
            ToCoordinator::Result { experiment, outcome } if experiment == of => outcome,
            other => panic!("{other:?}"),
        }
    }
}

/// Asserts that the program went on to its end, and nothing delayed it any more.
fn assert_free(process: Process) -> Ended {
    let ended = process.wait();
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    assert!(ended.stdout.contains("growth_ns=0\n"), "{ended:?}");
    ended
}

fn last_discarded(run: &Run) -> &str {
    let last = run.experiments.last().unwrap_or_else(|| panic!("no experiment: {run:?}"));
    last.discarded.as_deref().unwrap_or_else(|| panic!("it is used: {last:?}"))
}

#[test]
fn experiments_of_the_coordinator_are_held_and_numbered() {
    // The machine may disturb an experiment, which the program then discards.
    once(|| {
        let (program, process, mut coordinator) = Connection::of(Program::new("works"));
        let targets = coordinator.welcome();
        let other = KnownTarget {
            id: 3,
            kind: TargetKind::Span,
            name: "lookup".into(),
            file: None,
            line: None,
        };
        let mut outcomes = Vec::new();
        for experiment in [4, 7] {
            if experiment == 4 {
                coordinator.begin(experiment, &targets);
            } else {
                let mut begin = Begin::baseline(experiment, LEASE_MS);
                let target = other.clone();
                begin.target = Some(Tested { service: "inventory".into(), target });
                begin.speedup_ppm = 500_000;
                coordinator.say(&ToParticipant::Begin(begin));
            }
            coordinator.pass(Duration::from_millis(600));
            coordinator.say(&ToParticipant::End { experiment });
            outcomes.push(coordinator.outcome(experiment));
            coordinator.say(&ToParticipant::Settle { experiment, discarded: None });
        }
        coordinator.say(&ToParticipant::Finish { reason: "time".into() });
        assert_free(process);
        let run = program.profile();
        assert_eq!(reason(&run), "time");
        let joint = run.joint.as_ref().expect("it names the run");
        let entry = joint.entry.as_deref();
        assert_eq!((&*joint.run, &*joint.service, entry), ("r1", "shop", Some("gateway")));
        let numbers: Vec<_> = run.experiments.iter().map(|it| it.joint).collect();
        assert_eq!(numbers, [Some(4), Some(7)]);
        let kinds = run
            .experiments
            .iter()
            .map(|it| run.targets.iter().find(|target| Some(target.id) == it.target).unwrap().kind);
        assert_eq!(kinds.collect::<Vec<_>>(), [TargetKind::Task, TargetKind::Remote]);
        let remote = run.targets.iter().find(|it| it.kind == TargetKind::Remote).unwrap();
        assert_eq!(remote.name, "inventory/lookup");
        let delayed = run.experiments[0].delay_ns > 0;
        let measured = outcomes.iter().all(|it| *it == Outcome::Measured);
        (measured && delayed, format!("{outcomes:?} {:?}", run.experiments))
    });
}

#[test]
fn the_word_of_the_coordinator_discards_an_experiment() {
    let (program, process, mut coordinator) = Connection::of(Program::new("works"));
    let targets = coordinator.welcome();
    coordinator.begin(1, &targets);
    coordinator.pass(Duration::from_millis(400));
    coordinator.say(&ToParticipant::End { experiment: 1 });
    let outcome = coordinator.outcome(1);
    let discarded = Some("`inventory` was lost".to_owned());
    coordinator.say(&ToParticipant::Settle { experiment: 1, discarded });
    coordinator.say(&ToParticipant::Finish { reason: "time".into() });
    assert_free(process);
    let run = program.profile();
    let why = match outcome {
        Outcome::Measured => "`inventory` was lost".to_owned(),
        Outcome::Discarded { reason } | Outcome::Refused { reason } => reason,
    };
    assert_eq!(last_discarded(&run), why);
}

#[test]
fn a_coordinator_that_hangs_delays_nobody_beyond_its_lease() {
    let (program, process, mut coordinator) = Connection::of(Program::new("works"));
    let targets = coordinator.welcome();
    coordinator.begin(1, &targets);
    // The connection stays open, and nothing is said any more.
    assert_free(process);
    let run = program.profile();
    assert!(!last_discarded(&run).is_empty());
    assert!(reason(&run).contains("as long as its lease"), "{run:?}");
    drop(coordinator);
}

#[test]
fn a_coordinator_that_is_gone_delays_nobody() {
    let (program, process, mut coordinator) = Connection::of(Program::new("works"));
    let targets = coordinator.welcome();
    coordinator.begin(1, &targets);
    coordinator.pass(Duration::from_millis(300));
    drop(coordinator);
    assert_free(process);
    let run = program.profile();
    assert!(!last_discarded(&run).is_empty());
    assert!(reason(&run).contains("the coordinator"), "{run:?}");
}

#[test]
fn all_of_a_thousand_requests_in_flight_are_answered_when_the_coordinator_is_gone() {
    let (program, process, mut coordinator) = Connection::of(Program::new("many_requests"));
    let targets = coordinator.welcome();
    coordinator.begin(1, &targets);
    coordinator.pass(Duration::from_millis(700));
    drop(coordinator);
    let ended = assert_free(process);
    assert!(ended.stdout.contains(&format!("answered={REQUESTS}\n")), "{ended:?}");
    assert!(!last_discarded(&program.profile()).is_empty());
}

#[test]
fn a_refusal_and_another_version_end_the_session_and_not_the_program() {
    for (answer, why) in [
        (ToParticipant::Refused { reason: "its token is wrong".into() }, "its token is wrong"),
        (
            ToParticipant::Welcome { version: 0, run: "r".into(), entry: None },
            "version 0 of the protocol",
        ),
    ] {
        let (program, process, mut coordinator) = Connection::of(Program::new("works"));
        assert!(matches!(coordinator.hear(), ToCoordinator::Hello { .. }));
        coordinator.say(&answer);
        assert_free(process);
        let run = program.profile();
        assert!(reason(&run).contains(why), "{run:?}");
        assert!(run.experiments.is_empty());
    }
}

//! andweorc while it is off, on, off again, and on again, in one process. One test, since that is
//! for the whole of it.

use andweorc::io::Outside;
use andweorc_core::experiment::Experimenter;
use andweorc_core::point::{points, unmatched};
use andweorc_core::target::{Target, targets};
use andweorc_core::thread::parked_since;
use andweorc_profile::TargetKind;
use std::thread::sleep;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tracing::info_span;

/// For how long it is off, or no less.
const OFF: Duration = Duration::from_millis(300);

fn on() -> Experimenter {
    Experimenter::new().expect("the only one in this process")
}

fn the(kind: TargetKind, name: &str) -> &'static Target {
    let is_it = |target: &&Target| target.kind() == kind && target.name() == name;
    targets().into_iter().find(is_it).expect("it was seen")
}

/// How often each point was hit, by name.
fn hits() -> Vec<(String, u64)> {
    let mut hits: Vec<_> =
        points().iter().map(|point| (point.name().to_owned(), point.count())).collect();
    hits.sort();
    hits
}

fn each_hit(n: u64) -> Vec<(String, u64)> {
    ["asked", "interval", "serve"].map(|name| (name.to_owned(), n)).into()
}

/// Lets the server answer so often.
async fn ask(times: usize, server: &mut (mpsc::Sender<()>, mpsc::Receiver<bool>)) -> Vec<bool> {
    let mut answers = Vec::new();
    for _ in 0..times {
        server.0.send(()).await.unwrap();
        answers.push(server.1.recv().await.unwrap());
    }
    answers
}

/// A stream of which the other end is outside, and that end.
struct Stream(Outside<DuplexStream>, DuplexStream);

impl Stream {
    fn new() -> Stream {
        let (near, far) = tokio::io::duplex(1);
        Stream(Outside::new(near), far)
    }

    /// Something is read from it.
    async fn read(&mut self) {
        self.1.write_u8(1).await.unwrap();
        self.0.read_u8().await.unwrap();
    }

    /// Whether anything is known of the other end.
    fn is_known(&self) -> bool {
        !format!("{:?}", self.0).contains("other: None")
    }
}

#[test]
fn activity_while_switched_off_is_not_recorded() {
    andweorc::subscriber().init();
    // On one thread, so that the server has parked whenever it was answered.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    andweorc::runtime::BuilderExt::enable_profiling(&mut builder);
    let runtime = builder.enable_all().build().unwrap();
    let (question, mut questions) = mpsc::channel(1);
    let (answer, answers) = mpsc::channel(1);
    let serve = async move {
        while questions.recv().await.is_some() {
            andweorc::begin!("interval");
            let seen = {
                let span = info_span!("serve");
                span.in_scope(|| andweorc::progress!("asked"));
                !span.is_disabled()
            };
            andweorc::end!("interval");
            answer.send(seen).await.unwrap();
        }
    };
    let server = {
        let _in_runtime = runtime.enter();
        andweorc::task::Builder::new().name("server").spawn(serve)
    };
    let mut asked = (question, answers);

    assert_eq!(runtime.block_on(ask(2, &mut asked)), [false; 2]);
    assert_eq!(hits(), []);

    let experimenter = on();
    assert_eq!(runtime.block_on(ask(2, &mut asked)), [true; 2]);
    assert_eq!(hits(), each_hit(2));
    let mut stream = Stream::new();
    runtime.block_on(stream.read());
    assert!(stream.is_known());
    andweorc::begin!("interval");
    drop(experimenter);
    andweorc::end!("interval");

    let task = the(TargetKind::Task, "server");
    let polls = task.count();
    sleep(OFF);
    assert_eq!(runtime.block_on(ask(3, &mut asked)), [false; 3]);
    assert_eq!((hits(), task.count()), (each_hit(2), polls));
    runtime.block_on(stream.read());
    assert!(!stream.is_known(), "how long it took before is out of date");

    let experimenter = on();
    andweorc::end!("interval");
    assert_eq!(unmatched(), 1, "the interval was over");
    assert_eq!(runtime.block_on(ask(2, &mut asked)), [true; 2]);
    assert_eq!(hits(), each_hit(4));
    assert!(task.count() > polls);
    let wait = the(TargetKind::Wait, "server");
    assert!(Duration::from_nanos(wait.busy_ns()) < OFF, "{wait:?} is no longer than it is on");
    // It is switched off while the worker is parked.
    let switches = std::thread::spawn(move || {
        sleep(OFF / 3);
        drop(experimenter);
    });
    runtime.block_on(async { tokio::time::sleep(OFF).await });
    switches.join().unwrap();
    assert!(parked_since().is_none(), "that it is busy again is known all the same");

    runtime.block_on(ask(1, &mut asked));
    let _experimenter = on();
    server.abort();
    assert!(runtime.block_on(server).unwrap_err().is_cancelled());
}

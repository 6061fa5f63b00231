//! Tasks that nobody wrapped: tokio's own spawn, with `--cfg tokio_unstable`.
#![cfg(tokio_unstable)]

mod lives;
mod wakes;

use andweorc::Profile;
use andweorc::runtime::BuilderExt;
use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::point::{Importance, points};
use andweorc_core::target::{Target, target, targets};
use andweorc_core::thread::ledger;
use andweorc_core::time::{Nanos, Speedup};
use andweorc_profile::TargetKind;
use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};
use tests_support::wakes::{Tasks, WHILE, Waits, only_for_outside, only_for_tasks};
use tokio::io::AsyncReadExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::sleep;
use tracing::{Instrument, Span, info_span};
use tracing_subscriber::prelude::*;

/// One experiment at a time, whichever test it is for. It switches andweorc on, and then comes the
/// layer.
static EXPERIMENTER: LazyLock<StdMutex<Experimenter>> = LazyLock::new(|| {
    let experimenter = Experimenter::new().expect("the only one in this process");
    tracing_subscriber::registry().with(andweorc::layer()).init();
    StdMutex::new(experimenter)
});

/// Tasks that nobody wrapped.
struct Foreign;

impl Tasks for Foreign {
    fn build(builder: &mut Builder) -> Runtime {
        LazyLock::force(&EXPERIMENTER);
        builder.enable_profiling().build().unwrap()
    }

    /// Spawns a task that nobody wraps, as libraries do.
    fn spawn<T: Send + 'static>(
        name: &'static str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::task::Builder::new().name(name).spawn(future).unwrap()
    }

    fn spawn_blocking(f: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        tokio::task::spawn_blocking(f)
    }

    fn part<T>(
        name: &'static str,
        future: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send {
        future.profiled(name)
    }
}

fn runtimes() -> [Runtime; 2] {
    tests_support::wakes::runtimes::<Foreign>()
}

fn spawn<T: Send + 'static>(
    name: &'static str,
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    Foreign::spawn(name, future)
}

#[test]
fn timers_and_sockets_are_the_world_outside() {
    for runtime in runtimes() {
        runtime.block_on(async {
            spawn("timer", sleep(WHILE)).await.unwrap();
            let (mut client, server) = std::os::unix::net::UnixStream::pair().unwrap();
            server.set_nonblocking(true).unwrap();
            let mut socket = tokio::net::UnixStream::from_std(server).unwrap();
            let reader = spawn("socket", async move { socket.read_u8().await.unwrap() });
            sleep(WHILE).await;
            std::io::Write::write_all(&mut client, b"x").unwrap();
            reader.await.unwrap();
        });
        only_for_outside("timer");
        only_for_outside("socket");
    }
}

#[test]
fn tasks_of_a_local_set() {
    // Of a task that is held meanwhile less is known.
    let _no_experiments = EXPERIMENTER.lock().unwrap_or_else(PoisonError::into_inner);
    for runtime in runtimes() {
        let set = LocalSet::new();
        set.block_on(&runtime, async {
            let (sender, receiver) = oneshot::channel();
            let named = |name| tokio::task::Builder::new().name(name);
            let waits = named("local waits").spawn_local(async { receiver.await.unwrap() });
            let wakes = async {
                sleep(WHILE).await;
                sender.send(()).unwrap();
            };
            named("local wakes").spawn_local(wakes).unwrap().await.unwrap();
            waits.unwrap().await.unwrap();
        });
        only_for_tasks("local waits");
        only_for_outside("local wakes");
    }
}

/// The busy time of the tasks of this name.
fn busy(name: &str) -> Duration {
    Duration::from_nanos(target(TargetKind::Task, name, None, None).busy_ns())
}

fn at_line(line: u32) -> Option<&'static Target> {
    targets().into_iter().find(|target| {
        (target.kind(), target.file(), target.line())
            == (TargetKind::Task, Some(file!()), Some(line))
    })
}

#[test]
fn a_kind_is_a_spawn_site() {
    for (count, runtime) in (1..).zip(runtimes()) {
        let line = runtime.block_on(async {
            for _ in 0..3 {
                tokio::spawn(async { std::thread::sleep(WHILE) }).await.unwrap();
            }
            line!() - 2
        });
        let kind = at_line(line).expect("it ran");
        // A poll each, and the drop of the future.
        assert_eq!(kind.count(), 6 * count);
        assert!(Duration::from_nanos(kind.busy_ns()) >= 3 * WHILE);
    }
}

#[test]
fn wrapped_task_is_not_counted_twice() {
    for runtime in runtimes() {
        let lines = runtime.block_on(async {
            andweorc::spawn(async { std::thread::sleep(WHILE) }).await.unwrap();
            let first = line!() - 1;
            andweorc::task::Builder::new().name("wrapped").spawn(async {}).await.unwrap();
            let second = line!() - 1;
            andweorc::spawn_blocking(|| {}).await.unwrap();
            let third = line!() - 1;
            let mut set = andweorc::JoinSet::new();
            // What a wrapped task spawns need not be wrapped.
            set.spawn(async { drop(spawn("spawned by a wrapped one", async {}).await) });
            set.join_all().await;
            [first, second, third]
        });
        let count = |line| at_line(line).map_or(0, Target::count);
        assert_eq!(count(lines[1]), 0);
        for line in [lines[0], lines[2]] {
            let times = target(TargetKind::Task, "wrapped", None, None).count();
            assert_eq!(count(line), times, "as often as any wrapped task");
        }
        assert!(target(TargetKind::Task, "spawned by a wrapped one", None, None).count() > 0);
    }
}

#[test]
fn a_part_that_is_profiled_is_delayed_and_woken_once() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel();
            let waits = Waits::default();
            let part = async { receiver.await.unwrap() }.profiled("part of a task");
            let whole = spawn("whole", waits.clone().told_by(part));
            let wakes = async {
                waits.sleep().profiled("part: timer").await;
                sender.send(()).unwrap();
            };
            spawn("whole: wakes", wakes).await.unwrap();
            whole.await.unwrap();
        });
        for name in ["part of a task", "whole"] {
            only_for_tasks(name);
        }
        for name in ["part: timer", "whole: wakes"] {
            only_for_outside(name);
        }
    }
}

#[test]
fn a_tasks_span_entered_by_others_is_not_its_poll() {
    for runtime in runtimes() {
        let before = (busy("owner"), busy("borrower"));
        runtime.block_on(async {
            let owner = spawn("owner", async {
                let works = async { std::thread::sleep(WHILE) };
                spawn("borrower", works.instrument(Span::current())).await.unwrap();
            });
            owner.await.unwrap();
        });
        assert!(busy("borrower") - before.1 >= WHILE);
        assert!(busy("owner") - before.0 < WHILE / 2);
    }
}

#[test]
fn a_request_in_a_task_is_still_a_root() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let request = async {}.instrument(info_span!("foreign request"));
            spawn("serves", request).await.unwrap();
        });
    }
    let all = points();
    let point = all.iter().find(|point| point.name() == "foreign request").expect("it was hit");
    assert_eq!(point.importance(), Importance::Root);
    assert!(all.iter().all(|point| !point.name().starts_with("runtime.")));
    assert!(targets().iter().all(|target| !target.name().starts_with("runtime.")));
}

#[test]
fn a_runtime_may_go_away_with_tasks_in_it() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (sender, receiver) = mpsc::channel::<()>(1);
            for (i, part) in (0..).zip([Some(sender), None]) {
                spawn("left", async move {
                    let _part = part;
                    sleep(Duration::from_secs(1000 + i)).await;
                });
            }
            spawn("left too", async move {
                let mut receiver = receiver;
                receiver.recv().await;
            });
            tokio::task::yield_now().await;
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        // This thread, which dropped them in any order, is nobody's poll: at most it would wake
        // next who joins the last one.
        andweorc_core::thread::after_final_wake();
        assert_eq!(andweorc_core::thread::participant_at(andweorc_core::clock::now()), None);
    }
}

const HELD_PHASES: Phases = Phases::from_millis(50, 500, 20);

/// Holds an experiment with a speedup of 40 % on the waits of the tasks of this name. Returns D
/// before it, and by what share of its time it delayed.
fn hold(name: &str) -> (Nanos, f64) {
    let target = target(TargetKind::Wait, name, None, None);
    let mut experimenter = EXPERIMENTER.lock().unwrap_or_else(PoisonError::into_inner);
    let before = ledger().global_delay(clock::now());
    let record = experimenter.run(Some(target), Speedup::new(0.4).unwrap(), HELD_PHASES).record();
    let record = record.expect("nobody stops it");
    (before, record.delay_ns as f64 / record.real_ns as f64)
}

/// Measurements of one round of a task.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// D when it began.
    owed: Nanos,
    /// How long it took.
    took: Nanos,
    /// By how much D grew meanwhile.
    grown: Nanos,
}

type Rounds = Arc<StdMutex<Vec<Round>>>;

/// Does `pause` again and again, and writes down how long that took.
async fn again<F: Future<Output = ()>>(rounds: Rounds, pause: impl Fn() -> F) {
    loop {
        let began = clock::now();
        let owed = ledger().global_delay(began);
        pause().await;
        let ended = clock::now();
        let grown = ledger().global_delay(ended) - owed;
        rounds.lock().unwrap().push(Round { owed, took: ended - began, grown });
    }
}

/// How many tasks are held.
const HELD: u64 = 20;

#[test]
fn a_wait_outside_is_stretched_and_blocks_no_neighbour() {
    LazyLock::force(&EXPERIMENTER);
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_all().enable_profiling().build();
    let runtime = runtime.unwrap();
    let _guard = runtime.enter();
    const PAUSE: Nanos = Nanos::from_millis(10);
    let pause = || sleep(PAUSE.to_duration());
    for _ in 0..3 {
        spawn("held: target", again(Arc::default(), pause));
    }
    let [stretched, inside, neighbour] = [(); 3].map(|()| Rounds::default());
    // All at different times: a worker that was blocked for each of them would do nothing else.
    for at in 0..HELD {
        let rounds = Arc::clone(&stretched);
        spawn("held: stretched", async move {
            sleep(Duration::from_millis(at)).await;
            again(rounds, pause).await;
        });
    }
    spawn("held: in process", again(Arc::clone(&inside), move || pause().in_process()));
    let works = || {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(200) {}
        andweorc::task::yield_now()
    };
    spawn("held: neighbour", again(Arc::clone(&neighbour), works));
    // Of each, the rounds meanwhile.
    let meanwhile = |f: &mut dyn FnMut()| {
        let all = [&stretched, &inside, &neighbour];
        all.iter().for_each(|rounds| rounds.lock().unwrap().clear());
        f();
        all.map(|rounds| rounds.lock().unwrap().clone())
    };
    // A busy machine may take the time of one experiment, but not of each.
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let [.., usual] =
            meanwhile(&mut || std::thread::sleep(HELD_PHASES.measure + HELD_PHASES.warmup));
        let (mut begin, mut delayed) = (Nanos::ZERO, 0.0);
        let all = meanwhile(&mut || (begin, delayed) = hold("held: target"));
        let [stretched, inside, neighbour] = all.map(|mut rounds| {
            // What was owed before is forgiven when it begins.
            rounds.retain(|round| round.owed > begin);
            rounds
        });
        // What a round took beyond what D grew meanwhile, in pauses.
        let beyond = |round: &Round| (round.took.0 - round.grown.0) as f64 / PAUSE.0 as f64;
        let mean = |rounds: &[Round]| rounds.iter().map(beyond).sum::<f64>() / rounds.len() as f64;
        let (stretched, inside) = (mean(&stretched), mean(&inside));
        // Both are late alike where the machine is busy.
        if delayed > 0.25
            && stretched > 0.9
            && inside < stretched - 0.2
            && neighbour.len() > usual.len() / 6
        {
            return;
        }
        seen.push((delayed, stretched, inside, neighbour.len(), usual.len()));
    }
    panic!(
        "delay, what a wait took beyond it, the same in the process, the neighbour's rounds, and usually: {seen:?}"
    );
}

/// Experiments of which one must do.
const TRIES: usize = 10;

#[test]
fn wait_ended_by_a_task_leaves_outside_waits_stretched() {
    LazyLock::force(&EXPERIMENTER);
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_all().enable_profiling().build();
    let runtime = runtime.unwrap();
    let _guard = runtime.enter();
    const PAUSE: Nanos = Nanos::from_millis(10);
    for _ in 0..3 {
        spawn("ended: target", again(Arc::default(), || sleep(PAUSE.to_duration())));
    }
    let rounds = Rounds::default();
    let (asks, mut asked) = mpsc::unbounded_channel::<Arc<Notify>>();
    spawn("ended: answers", async move {
        while let Some(one) = asked.recv().await {
            one.notify_one();
        }
    });
    for at in 0..HELD {
        let (rounds, asks, answer) = (Arc::clone(&rounds), asks.clone(), Arc::new(Notify::new()));
        spawn("ended: stretched", async move {
            sleep(Duration::from_millis(at)).await;
            // The second wait asks for no budget.
            let both = || async {
                sleep(PAUSE.to_duration()).await;
                asks.send(Arc::clone(&answer)).expect("somebody answers");
                answer.notified().await;
            };
            again(rounds, both).await;
        });
    }
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let (begin, delayed) = hold("ended: target");
        let mut rounds = std::mem::take(&mut *rounds.lock().unwrap());
        rounds.retain(|round| round.owed > begin);
        let beyond = rounds.iter().map(|round| (round.took.0 - round.grown.0) as f64).sum::<f64>();
        let share = beyond / rounds.len() as f64 / PAUSE.0 as f64;
        if delayed > 0.25 && share > 0.9 {
            return;
        }
        seen.push((delayed, share, rounds.len()));
    }
    panic!("delay, what a wait took beyond it in pauses, rounds: {seen:?}");
}

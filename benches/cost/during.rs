//! Cost of experiments beyond the delays that are meant.
//!
//! A side thread, on a core of its own and waited for by nobody, is the target: however much faster
//! it gets, the program beside it is as fast as before. So its rate in virtual time should be that
//! of the baselines, and what is missing is overhead: of pausing, deferring and accounting, and of
//! noticing late. Each program runs in a process of its own, on one worker.

use crate::Result;
use crate::part::Row;
use crate::work::{Pace, hash};
use andweorc::runtime::BuilderExt;
use andweorc::{Speedup, progress};
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::point::point;
use andweorc_core::target::{Target, target};
use andweorc_core::{clock, thread as core_thread};
use andweorc_profile::{ExperimentRecord, PointKind, TargetKind};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};
use tokio::sync::{Mutex, mpsc};
use tokio::task::yield_now;
use tokio::time::sleep;
use tracing::{Instrument, info_span};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// First argument of a process that is a program under experiment.
pub(crate) const PROGRAM: &str = "program";

type Program = (&'static str, fn(Pace));

const PROGRAMS: [Program; 6] = [
    ("loop", lone_loop),
    ("queue", queue),
    ("lock", lock),
    ("timers", timers),
    ("requests", requests),
    ("thread", plain_thread),
];

/// Name of the progress point that counts in each program.
const POINT: &str = "item";

const EXPERIMENTS: usize = 16;
const PHASES: Phases = Phases::from_millis(50, 300, 30);

/// Of each millisecond, the side thread is busy for so many microseconds.
const BUSY: u32 = 400;

/// The overhead of experiments in each program, percent, with its 95 % interval.
pub(crate) fn measure() -> Result<Vec<Row>> {
    println!(
        "Experiments without an effect, against baselines: {EXPERIMENTS} a program, delays of up to {} %",
        BUSY / 20
    );
    PROGRAMS
        .iter()
        .map(|(name, _)| {
            let child = Command::new(env::current_exe()?)
                .args([PROGRAM, name])
                .stderr(Stdio::inherit())
                .output()?;
            let said = String::from_utf8(child.stdout)?;
            let numbers = said
                .split_whitespace()
                .map(str::parse)
                .collect::<std::result::Result<Vec<f64>, _>>()?;
            let &[overhead, margin, delayed] = &numbers[..] else {
                return Err(format!("{name} said: {said}").into());
            };
            let (low, high) = (overhead - margin, overhead + margin);
            println!(
                "  {name:<9} {overhead:+5.1} %  [{low:+.1}, {high:+.1}]  at {delayed:.0} % of delay"
            );
            let of = (*name).to_owned();
            Ok(Row { of, without: None, rate: None, figure: overhead, low, high })
        })
        .collect()
}

/// Runs one program under experiments. Prints the overhead, half its 95 % interval, and how much
/// was delayed, percent.
pub(crate) fn program(name: &str) -> Result<()> {
    let (_, run) = PROGRAMS.iter().find(|(known, _)| *known == name).ok_or("no such program")?;
    let pace = Pace::measure();
    tracing_subscriber::registry().with(andweorc::layer()).init();
    let mut experimenter = Experimenter::new().ok_or("andweorc is on already")?;
    let side = target(TargetKind::Span, "side", None, None);
    thread::spawn(move || be_busy(side, pace));
    let run = *run;
    thread::spawn(move || run(pace));
    thread::sleep(Duration::from_millis(300));

    let item = point(PointKind::Progress, POINT, None, None, true).id();
    let half = Speedup::new(0.5).ok_or("a half is a fraction")?;
    let mut hold = |target: Option<&Target>, speedup| {
        experimenter.run(target, speedup, PHASES).record().ok_or("nobody stops it")
    };
    let rate = |record: &ExperimentRecord| {
        let count = record.points.iter().find(|count| count.point == item);
        count.map_or(0, |count| count.count) as f64 / (record.real_ns - record.delay_ns) as f64
    };
    let mut before = rate(&hold(None, Speedup::ZERO)?);
    let (mut missing, mut delay, mut real) = (Vec::new(), 0, 0);
    for _ in 0..EXPERIMENTS {
        let experiment = hold(Some(side), half)?;
        let after = rate(&hold(None, Speedup::ZERO)?);
        missing.push(100.0 * (1.0 - 2.0 * rate(&experiment) / (before + after)));
        delay += experiment.delay_ns;
        real += experiment.real_ns;
        before = after;
    }
    // The inner half: an experiment in which the machine did something else does not count.
    missing.sort_by(f64::total_cmp);
    let inner = &missing[EXPERIMENTS / 4..EXPERIMENTS * 3 / 4];
    let mean = inner.iter().sum::<f64>() / inner.len() as f64;
    // The order statistics that hold the median of 16 with 95 %: the 4th and the 13th.
    let margin = (missing[12] - missing[3]) / 2.0;
    println!("{mean} {margin} {}", 100.0 * delay as f64 / real as f64);
    Ok(())
}

/// The side thread.
fn be_busy(side: &Target, pace: Pace) {
    let busy = rounds(BUSY, pace);
    loop {
        let entered = core_thread::enter(side, clock::now());
        hash(busy);
        core_thread::exit(entered, clock::now());
        thread::sleep(Duration::from_micros(u64::from(1000 - BUSY)));
    }
}

fn rounds(us: u32, pace: Pace) -> u32 {
    us * pace.rounds_per_ms() / 1000
}

fn on_one_worker(main: impl Future<Output = ()> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .enable_profiling()
        .build()
        .expect("the system gives another thread and a timer");
    let done = runtime.block_on(async { andweorc::spawn(main).await });
    done.expect("no program panics");
}

/// One task that works, 50 us an item.
fn lone_loop(pace: Pace) {
    let work = rounds(50, pace);
    on_one_worker(async move {
        loop {
            hash(work);
            progress!("item");
            yield_now().await;
        }
    });
}

/// Two tasks and a queue between them, 20 us an item each.
fn queue(pace: Pace) {
    let work = rounds(20, pace);
    on_one_worker(async move {
        let (send, mut receive) = mpsc::channel(16);
        andweorc::spawn(async move {
            loop {
                hash(work);
                if send.send(()).await.is_err() {
                    return;
                }
            }
        });
        while receive.recv().await.is_some() {
            hash(work);
            progress!("item");
        }
    });
}

/// Eight tasks that contend for a lock, 20 us with it and 20 us without.
fn lock(pace: Pace) {
    let work = rounds(20, pace);
    on_one_worker(async move {
        let lock = Arc::new(Mutex::new(()));
        let mut tasks = andweorc::JoinSet::new();
        for _ in 0..8 {
            let lock = Arc::clone(&lock);
            tasks.spawn(async move {
                loop {
                    let guard = lock.lock().await;
                    hash(work);
                    yield_now().await;
                    drop(guard);
                    hash(work);
                    progress!("item");
                }
            });
        }
        tasks.join_next().await;
    });
}

/// Six handlers that work 100 us, wait for a timer and work 100 us more: the worker is idle for a
/// part of the time.
fn timers(pace: Pace) {
    let work = rounds(100, pace);
    on_one_worker(async move {
        let mut tasks = andweorc::JoinSet::new();
        for _ in 0..6 {
            tasks.spawn(async move {
                loop {
                    hash(work);
                    sleep(Duration::from_millis(2)).await;
                    hash(work);
                    progress!("item");
                }
            });
        }
        tasks.join_next().await;
    });
}

/// A task for each request, with spans of 10 us in a span.
fn requests(pace: Pace) {
    let work = rounds(10, pace);
    on_one_worker(async move {
        loop {
            let request = async move {
                for _ in 0..4 {
                    info_span!("part").in_scope(|| hash(work));
                    yield_now().await;
                }
                progress!("item");
            };
            let request = andweorc::spawn(request.instrument(info_span!("request")));
            request.await.expect("no request panics");
        }
    });
}

/// A thread without a runtime, 50 us an item.
fn plain_thread(pace: Pace) {
    let work = rounds(50, pace);
    core_thread::register();
    loop {
        hash(work);
        progress!("item");
    }
}

//! The programs of `benches/accuracy` that coz can run, with the same costs, for `run.sh`.
//!
//! ```sh
//! beside-coz run PROGRAM PACE SECONDS                 # for coz to profile
//! beside-coz truth PROGRAM PART PERCENT PACE SECONDS  # prints the rise of throughput, in percent
//! beside-coz pace                                     # hash rounds in a microsecond
//! beside-coz line PART                                # line with the work of `first` or `second`
//! beside-coz rate PROGRAM PACE SECONDS                # prints items a second, not profiled
//! # Prints items a second of virtual time, under andweorc: in baselines, and in experiments.
//! beside-coz andweorc PROGRAM PART PERCENT PACE SECONDS
//! ```

use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::point::{Point, point};
use andweorc_profile::{ExperimentRecord, PointKind, TargetKind};
use andweorc_core::target::{Target, target};
use andweorc_core::time::Speedup;
use andweorc_core::{clock, thread};
use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, LazyLock, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Hash rounds of the two parts.
static ROUNDS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static DONE: AtomicU64 = AtomicU64::new(0);

/// Programs, and what their parts cost in us.
const PROGRAMS: [(&str, fn(), [u64; 2]); 4] = [
    ("slow_fast", slow_fast, [2000, 1500]),
    ("threads_mutex", mutex, [500, 300]),
    ("threads_barrier", barrier, [600, 400]),
    ("pipeline2", pipeline, [600, 400]),
];

// Each loop is one line, for coz to speed up: that of the part, and nothing else. It calls nothing,
// for what is inlined from elsewhere has lines of its own; without overflow checks (release) the
// arithmetic wraps.
const FIRST_LINE: u32 = line!() + 5;
#[rustfmt::skip]
#[inline(never)]
fn first() {
    let (mut x, mut rounds) = (black_box(1_u64), ROUNDS[0].load(Relaxed));
    while rounds > 0 { rounds -= 1; x += 0x9e37_79b9_7f4a_7c15; x = (x ^ (x >> 30)) * 0xbf58_476d_1ce4_e5b9; x = (x ^ (x >> 27)) * 0x94d0_49bb_1331_11eb; }
    black_box(x);
}

const SECOND_LINE: u32 = line!() + 5;
#[rustfmt::skip]
#[inline(never)]
fn second() {
    let (mut x, mut rounds) = (black_box(2_u64), ROUNDS[1].load(Relaxed));
    while rounds > 0 { rounds -= 1; x += 0x9e37_79b9_7f4a_7c15; x = (x ^ (x >> 30)) * 0xbf58_476d_1ce4_e5b9; x = (x ^ (x >> 27)) * 0x94d0_49bb_1331_11eb; }
    black_box(x);
}

/// The two parts, for andweorc.
static TARGETS: LazyLock<[&Target; 2]> =
    LazyLock::new(|| ["first", "second"].map(|name| target(TargetKind::Span, name, None, None)));

static POINT: LazyLock<&Point> =
    LazyLock::new(|| point(PointKind::Progress, "done", None, None, true));

/// Does a part, as a target while andweorc is on.
fn part(which: usize) {
    let work = [first, second][which];
    if !andweorc_core::enabled() {
        return work();
    }
    let entered = thread::enter(TARGETS[which], clock::now());
    work();
    let stay = thread::exit(entered, clock::now());
    TARGETS[which].record(stay.busy, stay.own);
}

fn done() {
    DONE.fetch_add(1, Relaxed);
    coz::progress!("done");
    if andweorc_core::enabled() {
        POINT.hit();
        thread::sync_point();
    }
}

/// The calling thread is about to wake another one, which is not to go on early.
fn wakes() {
    if andweorc_core::enabled() {
        thread::catch_up_before_waking(0);
    }
}

/// A thread of the program begins.
fn begins() {
    coz::thread_init();
    if andweorc_core::enabled() {
        thread::register();
    }
}

/// The two parts in threads that are spawned and joined each round.
fn slow_fast() {
    spawn(|| {
        begins();
        loop {
            let threads = [0, 1].map(|which| {
                spawn(move || {
                    begins();
                    part(which);
                    wakes();
                })
            });
            andweorc::blocked(|| {
                threads.into_iter().for_each(|thread| thread.join().expect("parts do not panic"));
            });
            done();
        }
    });
}

/// Two threads that work, and work under one lock.
fn mutex() {
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..2 {
        let lock = lock.clone();
        spawn(move || {
            begins();
            loop {
                part(1);
                let guard = andweorc::blocked(|| lock.lock().expect("no one panics with the lock"));
                part(0);
                wakes();
                drop(guard);
                done();
            }
        });
    }
}

/// Two threads that meet after every item.
fn barrier() {
    let meeting = Arc::new(Barrier::new(2));
    for which in [0, 1] {
        let meeting = meeting.clone();
        spawn(move || {
            begins();
            loop {
                part(which);
                wakes();
                if andweorc::blocked(|| meeting.wait()).is_leader() {
                    done();
                }
            }
        });
    }
}

/// Two tokio tasks and a channel.
fn pipeline() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    andweorc::runtime::BuilderExt::enable_profiling(&mut builder);
    let runtime = builder
        .worker_threads(2)
        .on_thread_start(coz::thread_init)
        .build()
        .expect("the runtime starts");
    let (sender, mut items) = tokio::sync::mpsc::channel(16);
    let inside = runtime.enter();
    andweorc::spawn(async move {
        loop {
            part(0);
            if sender.send(()).await.is_err() {
                break;
            }
        }
    });
    andweorc::spawn(async move {
        while items.recv().await.is_some() {
            part(1);
            done();
        }
    });
    drop(inside);
    // It runs until the process ends.
    std::mem::forget(runtime);
}

/// The best of many short tries.
fn pace() -> u64 {
    ROUNDS[0].store(100_000, Relaxed);
    let best = (0..400).map(|_| {
        let start = Instant::now();
        first();
        start.elapsed().as_nanos() as u64
    });
    100_000_000 / best.min().unwrap_or(1).max(1)
}

/// In turns as it is and with the part faster; the mean of the pairs, in percent.
fn truth(part: usize, percent: u64, seconds: u64) -> f64 {
    let full = ROUNDS[part].load(Relaxed);
    let rate = |rounds: u64| {
        ROUNDS[part].store(rounds, Relaxed);
        sleep(Duration::from_millis(50));
        let (start, before) = (Instant::now(), DONE.load(Relaxed));
        sleep(Duration::from_millis(300));
        (DONE.load(Relaxed) - before) as f64 / start.elapsed().as_secs_f64()
    };
    sleep(Duration::from_millis(500));
    let pairs = (seconds * 1000 / 700).max(3);
    let logs: f64 =
        (0..pairs).map(|_| (rate(full * (100 - percent) / 100) / rate(full)).ln()).sum();
    ((logs / pairs as f64).exp() - 1.0) * 100.0
}

/// Items a second, over this long.
fn rate(seconds: u64) -> f64 {
    sleep(Duration::from_millis(500));
    let (begin, before) = (Instant::now(), DONE.load(Relaxed));
    sleep(Duration::from_secs(seconds));
    (DONE.load(Relaxed) - before) as f64 / begin.elapsed().as_secs_f64()
}

/// Items a second of virtual time: in baselines, and in experiments on this part, in turns.
fn rates(mut experimenter: Experimenter, part: usize, percent: u64, seconds: u64) -> [f64; 2] {
    let phases = Phases::from_millis(50, 400, 50);
    let speedup = Speedup::new(percent as f64 / 100.0).expect("a percentage");
    sleep(Duration::from_millis(500));
    let mut held = |target, speedup| experimenter.run(target, speedup, phases).record();
    let pairs = (0..seconds.max(1))
        .filter_map(|_| Some((held(None, Speedup::ZERO)?, held(Some(TARGETS[part]), speedup)?)));
    let (baselines, experiments): (Vec<_>, Vec<_>) = pairs.unzip();
    let rate = |held: &[ExperimentRecord]| {
        let hits: u64 = held.iter().flat_map(|it| &it.points).map(|point| point.count).sum();
        let ns: u64 = held.iter().map(|it| it.real_ns - it.delay_ns).sum();
        hits as f64 * 1e9 / ns as f64
    };
    [rate(&baselines), rate(&experiments)]
}

/// Sets the costs of a program and starts it.
fn start(name: &str, pace: u64) -> Result<(), String> {
    let program = PROGRAMS.iter().find(|(known, ..)| *known == name);
    let (_, start, us) = program.ok_or_else(|| format!("there is no program `{name}`"))?;
    for (rounds, us) in ROUNDS.iter().zip(us) {
        rounds.store(us * pace, Relaxed);
    }
    start();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let parts = HashMap::from([("first", (0, FIRST_LINE)), ("second", (1, SECOND_LINE))]);
    let part = |name: &str| {
        parts
            .get(name)
            .copied()
            .ok_or_else(|| format!("the parts are first and second, not `{name}`"))
    };
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pace"] => println!("{}", pace()),
        ["line", name] => println!("{}", part(name)?.1),
        ["run", program, pace, seconds] => {
            start(program, pace.parse()?)?;
            sleep(Duration::from_secs(seconds.parse()?));
        }
        ["truth", program, name, percent, pace, seconds] => {
            let part = part(name)?.0;
            let percent = percent.parse::<u64>()?.min(100);
            start(program, pace.parse()?)?;
            println!("{:.1}", truth(part, percent, seconds.parse()?));
        }
        ["rate", program, pace, seconds] => {
            start(program, pace.parse()?)?;
            println!("{:.1}", rate(seconds.parse()?));
        }
        ["andweorc", program, name, percent, pace, seconds] => {
            let part = part(name)?.0;
            let on = Experimenter::new().ok_or("andweorc is on already")?;
            start(program, pace.parse()?)?;
            let [baseline, faster] =
                rates(on, part, percent.parse::<u64>()?.min(100), seconds.parse()?);
            println!("{baseline:.1} {faster:.1}");
        }
        _ => return Err("see the head of src/main.rs for what to say".into()),
    }
    // Without waiting for the threads.
    exit(0)
}

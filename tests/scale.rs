//! Many live tasks, kinds of tasks and span call sites: that all works, and what it costs in
//! memory. Alone in its process: it counts all allocations.
//!
//! ```sh
//! cargo test --release --test scale -- --ignored --nocapture  # a million tasks, 10,000 call sites
//! ```

use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::point::points;
use andweorc_core::target::targets;
use andweorc_core::thread::ledger;
use andweorc_core::time::{Speedup, Virtual};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tests_support::Site;
use tests_support::memory::{Counting, live};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing_subscriber::prelude::*;

#[global_allocator]
static COUNTING: Counting = Counting;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// `n` live tasks, all waiting for the same thing.
fn spawn(
    n: usize,
    gate: &Arc<Semaphore>,
    spawn: impl Fn(usize, Arc<Semaphore>) -> JoinHandle<()>,
) -> Vec<JoinHandle<()>> {
    (0..n).map(|i| spawn(i, Arc::clone(gate))).collect()
}

async fn waits(gate: Arc<Semaphore>) {
    drop(gate.acquire().await);
}

/// Opens the gate and waits for all tasks; returns how long that took.
fn finish(runtime: &Runtime, gate: &Semaphore, tasks: Vec<JoinHandle<()>>) -> Duration {
    let began = Instant::now();
    gate.close();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    began.elapsed()
}

/// Waits until all tasks have been polled.
fn settle() {
    let mut before = 0;
    while live() != before {
        before = live();
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Bytes of a live task, without and with andweorc.
fn tasks(n: usize, kinds: usize) -> (usize, usize) {
    let names: Vec<&'static str> =
        (0..kinds).map(|i| &*Box::leak(format!("kind {i}").into_boxed_str())).collect();
    let kind =
        |i: usize, gate| andweorc::task::Builder::new().name(names[i % kinds]).spawn(waits(gate));
    let runtime = runtime();
    let _inside = runtime.enter();
    let gate = Arc::new(Semaphore::new(0));
    let before = live();
    let plain = spawn(n, &gate, |_, gate| tokio::spawn(waits(gate)));
    settle();
    let without = (live() - before) / n;
    finish(&runtime, &gate, plain);

    // The targets themselves.
    let gate = Arc::new(Semaphore::new(0));
    let before = live();
    let first = spawn(kinds, &gate, kind);
    finish(&runtime, &gate, first);
    settle();
    println!("{} bytes for each of {kinds} kinds", live().saturating_sub(before) / kinds);

    let gate = Arc::new(Semaphore::new(0));
    let before = live();
    let profiled = spawn(n, &gate, kind);
    settle();
    let with = (live() - before) / n;
    let took = finish(&runtime, &gate, profiled);
    println!(
        "{n} live tasks of {kinds} kinds: {without} bytes each, {with} with andweorc; all woken and done in {took:?}"
    );
    (without, with)
}

/// How often each call site is hit on each thread.
const HITS: u32 = 3;

fn hit(sites: &[&'static Site]) {
    for site in sites {
        site.span().in_scope(|| std::hint::black_box(()));
    }
}

/// Does this on so many threads, all alive at once.
fn on_threads(threads: usize, f: impl Fn(usize) + Sync) {
    let all = Barrier::new(threads);
    std::thread::scope(|scope| {
        for i in 0..threads {
            let (all, f) = (&all, &f);
            scope.spawn(move || {
                all.wait();
                f(i);
                all.wait();
            });
        }
    });
}

/// A subscriber with andweorc's layer, and what is allocated once tracing itself keeps what it
/// keeps of these call sites.
fn layered(sites: &[&'static Site]) -> (tracing::Dispatch, usize) {
    tracing::subscriber::with_default(tracing_subscriber::registry(), || hit(sites));
    let before = live();
    (tracing_subscriber::registry().with(andweorc::layer()).into(), before)
}

/// Bytes that andweorc keeps for these call sites, each hit on each of so many threads, all alive
/// at once, and how long an experiment on one of them takes beyond its time.
fn sites(lines: Range<u32>, threads: usize, experimenter: &mut Experimenter) -> (usize, Duration) {
    let n = lines.len();
    let last = format!("site {}", lines.end - 1);
    let sites: Vec<&'static Site> = lines.map(|line| Site::new("scale.rs", line)).collect();
    let (layered, before) = layered(&sites);
    let hit = || {
        tracing::dispatcher::with_default(&layered, || (0..HITS).for_each(|_| hit(&sites)));
    };
    on_threads(threads, |_| hit());
    let bytes = live() - before;
    let target = targets().into_iter().find(|target| target.name() == last).unwrap();
    let measure = Duration::from_millis(200);
    let phases = Phases { warmup: Duration::ZERO, measure, cooldown: Duration::ZERO };
    let began = Instant::now();
    let record = std::thread::scope(|scope| {
        scope.spawn(hit);
        experimenter.run(Some(target), Speedup::new(0.25).unwrap(), phases).record().unwrap()
    });
    let late = began.elapsed().saturating_sub(measure);
    assert!(record.points.len() <= points().len());
    println!(
        "{n} call sites, {HITS} hits on each of {threads} threads: {} bytes each, {:.1} MB; an experiment is held {late:?} too long",
        bytes / n,
        bytes as f64 / 1e6
    );
    (bytes, late)
}

/// Bytes that andweorc keeps for these call sites, each met by each of so many threads, in a
/// baseline that does not take their latencies: a few of each thread in each, and very many in the
/// first tenth of them.
fn latencies(lines: Range<u32>, threads: usize) -> usize {
    const EACH: usize = 3;
    const HOT: usize = 200;
    let n = lines.len();
    let names: HashSet<String> = lines.clone().map(|line| format!("site {line}")).collect();
    let sites: Vec<&'static Site> = lines.map(|line| Site::new("scale.rs", line)).collect();
    let (layered, before) = layered(&sites);
    on_threads(threads, |_| tracing::dispatcher::with_default(&layered, || hit(&sites)));
    let points: Vec<_> =
        points().into_iter().filter(|point| names.contains(point.name())).collect();
    points.iter().for_each(|point| drop(point.take_latencies()));
    // The `i`-th of so many, evenly in their logarithms, from 10 us to 10 ms.
    let nth = |i: usize, of: usize| (1e4 * 1e3_f64.powf(i as f64 / of as f64)) as i64;
    ledger().begin(Speedup::ZERO, clock::now());
    on_threads(threads, |thread| {
        for (at, point) in points.iter().enumerate() {
            let each = if at < n / 10 { HOT } else { EACH };
            for i in 0..each {
                let took = nth(thread * each + i, threads * each);
                point.hit_interval(Virtual(0), Virtual(took));
            }
        }
    });
    ledger().end(clock::now());
    let bytes = live() - before;
    println!(
        "{n} call sites, {threads} threads, {} latencies in each and {} in a tenth of them: {:.1} MB",
        threads * EACH,
        threads * HOT,
        bytes as f64 / 1e6
    );
    assert_eq!(points.len(), n);
    for (at, point) in points.iter().enumerate() {
        let of = threads * if at < n / 10 { HOT } else { EACH };
        assert_eq!(point.count(), (threads + of) as u64);
        let latencies = point.take_latencies();
        let told = |rank: usize| {
            let mut seen = 0;
            let at = latencies.iter().find(|&&(_, count)| {
                seen += count as usize;
                seen > rank
            });
            at.expect("none is lost").0
        };
        for percent in [50, 90, 99] {
            let rank = of * percent / 100;
            let error = told(rank) as f64 / nth(rank, of) as f64 - 1.0;
            assert!(error.abs() < 0.01, "{percent} % of {at}: {error}");
        }
        assert_eq!(latencies.iter().map(|&(_, count)| count).sum::<u64>(), of as u64);
    }
    bytes
}

fn on() -> Experimenter {
    Experimenter::new().expect("the only one in this process")
}

/// All of it, in one process: what andweorc holds is the sum. Bytes of a live task, and of all call
/// sites with two threads and with many.
fn scale(
    experimenter: &mut Experimenter,
    live_tasks: usize,
    kinds: usize,
    call_sites: u32,
) -> (usize, usize, usize) {
    let (without, with) = tasks(live_tasks, kinds);
    let (few, late) = sites(0..call_sites, 2, experimenter);
    assert!(late < Duration::from_secs(20), "{late:?}");
    let (many, late) = sites(call_sites..2 * call_sites, 64, experimenter);
    assert!(late < Duration::from_secs(60), "{late:?}");
    (with - without, few, many)
}

#[test]
fn many_tasks_kinds_and_call_sites_are_held_in_little_memory() {
    let mut experimenter = on();
    let (task, few, many) = scale(&mut experimenter, 20_000, 1_000, 1_000);
    assert!(task <= 128, "{task} bytes for each live task");
    assert!(few <= 1_000 * 2_000, "{few} bytes");
    let most = latencies(2_000..12_000, 64);
    assert!(most <= 64_000_000, "{most} bytes");
    // The counts of a call site are 80 bytes on each thread that has met it, and its latencies are
    // kept for a while, 6 bytes each in a list with room for 256. Each thread has places for its
    // open spans, 16 KiB.
    let most = 1_000 * (1_500 + 64 * (80 + 8 * HITS as usize)) + 64 * (16 << 10);
    assert!(many <= most, "{many} bytes");
}

#[test]
#[ignore = "some seconds and a GB of memory"]
fn a_million_tasks_and_ten_thousand_call_sites_work() {
    let (task, few, many) = scale(&mut on(), 1_000_000, 1_000, 10_000);
    println!(
        "SCALE task_bytes={task} sites_mb={:.1} sites_64_threads_mb={:.1}",
        few as f64 / 1e6,
        many as f64 / 1e6
    );
}

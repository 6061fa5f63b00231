//! Soak: a service at full load that is profiled without end, and whether its memory stays flat.
//!
//! ```sh
//! cargo bench --bench soak -- --minutes 60
//! SOAK_REQUESTS=10000000 cargo bench --bench soak  # until so many were answered, however long
//! ```
//!
//! The service has its clients in the same process: a fixed number of them, each of which sends the
//! next request when it has the answer to the last, so that all workers are busy. A request spawns
//! a task, opens spans, waits for a timer and for a lock, and now and then is aborted half way. One
//! session lasts for all of it, unless it is settled before, and another one follows.
//!
//! Time in which the process was stopped (SIGSTOP) does not count, so that a long soak can be run
//! in pieces. On a machine that others use, a number of requests is the better measure of how much
//! was done. The closing line is
//!
//! `SOAK minutes=.. rss_off_mb=.. rss_start_mb=.. rss_mid_mb=.. rss_end_mb=.. slope_kb_per_min=..
//! sessions=.. experiments=.. requests=..`
//!
//! `rss_off_mb` is the resident memory after some seconds without andweorc, `rss_start_mb` the
//! median of the second minute of profiling (or the second tenth of it, if that is longer),
//! `rss_mid_mb` and `rss_end_mb` those of as long a time in the middle and at the end, and the
//! slope the regression between these. With `--most-mb` and `--most-slope` (kB a minute) it fails
//! when it is more.

use andweorc::{Profile, Session, Settings, Speedup};
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tracing::{Instrument, info_span};
use tracing_subscriber::prelude::*;

/// More than the workers, so that these are always busy.
const CLIENTS: usize = 32;

/// How long the service runs without andweorc at first.
const OFF: Duration = Duration::from_secs(10);

/// How often memory is read.
const EVERY: Duration = Duration::from_secs(1);

/// The longest that a session may be: longer than any soak.
const SESSION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Names the number of requests after which it is over, instead of minutes.
const REQUESTS: &str = "SOAK_REQUESTS";

struct Options {
    minutes: f64,
    requests: Option<u64>,
    /// Most MB that profiling may add.
    most_mb: f64,
    most_slope: f64,
}

impl Options {
    fn parse() -> Result<Options, Box<dyn Error>> {
        use lexopt::prelude::*;
        let requests = std::env::var(REQUESTS).ok();
        let requests = requests.map(|said| said.parse().map_err(|e| format!("{REQUESTS}: {e}")));
        let mut options = Options {
            minutes: 5.0,
            requests: requests.transpose()?,
            most_mb: f64::INFINITY,
            most_slope: f64::INFINITY,
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("minutes") => options.minutes = parser.value()?.parse()?,
                Long("most-mb") => options.most_mb = parser.value()?.parse()?,
                Long("most-slope") => options.most_slope = parser.value()?.parse()?,
                // What cargo says to every bench.
                Long("bench") => {}
                _ => return Err(argument.unexpected().into()),
            }
        }
        Ok(options)
    }
}

/// Resident memory in kB.
fn rss_kb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
}

fn work(rounds: u64) {
    black_box((0..rounds).fold(1_u64, |x, i| black_box(x.wrapping_mul(31).wrapping_add(i))));
}

/// State that all requests share.
#[derive(Default)]
struct Service {
    stock: Mutex<u64>,
    requests: AtomicU64,
    stop: AtomicBool,
}

async fn request(service: Arc<Service>, number: u64) {
    async {
        info_span!("parse").in_scope(|| work(20_000));
        if number.is_multiple_of(4) {
            sleep(Duration::from_millis(1)).instrument(info_span!("query")).await;
        }
        async {
            let mut stock = service.stock.lock().await;
            work(5_000);
            *stock += 1;
        }
        .instrument(info_span!("reserve"))
        .await;
        info_span!("render").in_scope(|| work(30_000));
        andweorc::progress!("answer");
    }
    .instrument(info_span!("request"))
    .await;
}

async fn client(service: Arc<Service>, first: u64) {
    let mut number = first;
    while !service.stop.load(Ordering::Relaxed) {
        let task = andweorc::task::Builder::new()
            .name("request")
            .spawn(request(Arc::clone(&service), number));
        if number.is_multiple_of(101) {
            let abort = task.abort_handle();
            // Some have ended by then: either is well.
            if timeout(Duration::from_micros(500), task).await.is_err() {
                abort.abort();
            }
        } else {
            task.await.expect("a request does not panic");
        }
        service.requests.fetch_add(1, Ordering::Relaxed);
        number += 1;
    }
}

/// Profiles until it is over, in another session when one is settled. Returns (sessions,
/// experiments).
fn profile(over: &AtomicBool) -> Result<(u32, u32), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (mut sessions, mut experiments) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let mut settings = Settings::default();
        settings.out = Some(folder.path().join("soak.jsonl"));
        settings.duration = SESSION;
        settings.order = sessions.into();
        settings.speedups = [0.1, 0.25, 0.5].into_iter().filter_map(Speedup::new).collect();
        let session = Session::start(settings)?;
        while !session.is_finished() && !over.load(Ordering::Relaxed) {
            std::thread::sleep(EVERY);
        }
        let outcome = session.finish("the soak is over");
        sessions += 1;
        experiments += outcome.analysis().experiments as u32;
    }
    Ok((sessions, experiments))
}

/// Time in which the process was not stopped.
struct Running {
    minutes: f64,
    last: Instant,
}

impl Running {
    /// Another moment has passed: a longer one than [`EVERY`] allows for was spent stopped.
    fn tick(&mut self) {
        let now = Instant::now();
        self.minutes += (now - self.last).min(2 * EVERY).as_secs_f64() / 60.0;
        self.last = now;
    }
}

fn median(samples: &[(f64, f64)]) -> f64 {
    let mut kb: Vec<f64> = samples.iter().map(|&(_, kb)| kb).collect();
    kb.sort_by(f64::total_cmp);
    kb.get(kb.len() / 2).copied().unwrap_or(f64::NAN)
}

/// kB a minute, by least squares, of samples at (minutes, kB).
fn slope(samples: &[(f64, f64)]) -> f64 {
    let n = samples.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let covariance: f64 = samples.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    covariance / samples.iter().map(|it| (it.0 - x).powi(2)).sum::<f64>()
}

fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    tracing_subscriber::registry().with(andweorc::layer()).init();
    let service = Arc::<Service>::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|i| {
            let client = client(Arc::clone(&service), i as u64 * 7);
            runtime.spawn(client.profiled("client"))
        })
        .collect();
    std::thread::sleep(OFF);
    let off = rss_kb();
    println!("off: {:.1} MB, {} requests", off / 1e3, service.requests.load(Ordering::Relaxed));

    let requests = || service.requests.load(Ordering::Relaxed);
    let before = requests();
    let over = Arc::<AtomicBool>::default();
    let profiling = std::thread::spawn({
        let over = Arc::clone(&over);
        move || profile(&over).map_err(|error| error.to_string())
    });
    let mut running = Running { minutes: 0.0, last: Instant::now() };
    let mut samples = Vec::with_capacity((options.minutes * 60.0) as usize + 1);
    while !profiling.is_finished()
        && options
            .requests
            .map_or(running.minutes < options.minutes, |all| requests() - before < all)
    {
        std::thread::sleep(EVERY);
        running.tick();
        samples.push((running.minutes, rss_kb()));
        if samples.len() % 60 == 0 {
            println!(
                "{:.1} min: {:.1} MB, {} requests",
                running.minutes,
                rss_kb() / 1e3,
                requests() - before
            );
        }
    }
    over.store(true, Ordering::Relaxed);
    let (sessions, experiments) = profiling.join().map_err(|_| "the profiler panicked")??;
    service.stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for client in clients {
            client.await?;
        }
        Ok::<(), tokio::task::JoinError>(())
    })?;

    let tenth = samples.len() / 10;
    let warm = tenth.max(60.min(samples.len() / 4));
    let steady = &samples[warm..];
    let stretch = tenth.max(30).min(steady.len());
    let start = median(&steady[..stretch]);
    let middle = median(&steady[(steady.len() - stretch) / 2..][..stretch]);
    let last = median(&steady[steady.len() - stretch..]);
    let slope = slope(steady);
    println!(
        "SOAK minutes={:.1} rss_off_mb={:.1} rss_start_mb={:.1} rss_mid_mb={:.1} rss_end_mb={:.1} slope_kb_per_min={slope:.1} sessions={sessions} \
         experiments={experiments} requests={}",
        running.minutes,
        off / 1e3,
        start / 1e3,
        middle / 1e3,
        last / 1e3,
        requests() - before
    );
    Ok((last - off) / 1e3 <= options.most_mb && slope <= options.most_slope)
}

fn main() -> ExitCode {
    let result = Options::parse().and_then(|options| run(&options));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("soak: memory grows by more than was allowed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}

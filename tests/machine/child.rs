//! The programs that the tests run, and what they see of the machine.

use andweorc::__private::rt::runtime::Builder;
use andweorc::runner::{Runner, RunnerConfig};
use andweorc_profile::Profile;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::hint::spin_loop;
use std::io::{Error, Result};
use std::path::Path;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "MACHINE_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// How often a program looks whether its profile has an end.
const LOOK: Duration = Duration::from_millis(100);

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    match program.as_str() {
        "works" => in_main(works()),
        "is sampled" => is_sampled(),
        "has a timer" => has_a_timer(),
        unknown => panic!("no program {unknown}"),
    }
    // The test harness has nothing more to say.
    exit(DONE);
}

/// Runs `root` as `#[andweorc::main(worker_threads = 2)]` does.
fn in_main(root: impl Future<Output = ()>) {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(root);
}

fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        spin_loop();
    }
}

/// Tasks of kind `target` beside others, until the run has ended. What they compute is printed.
async fn works() {
    let mut looked = Instant::now();
    let mut sum = 0_u64;
    for i in 0_u64.. {
        if looked.elapsed() >= LOOK {
            if has_ended() {
                break;
            }
            looked = Instant::now();
        }
        let target = andweorc::task::Builder::new().name("target").spawn(async move {
            for _ in 0..5 {
                spin(Duration::from_micros(200));
                tokio::task::yield_now().await;
            }
            i
        });
        let other = andweorc::spawn(async move {
            spin(Duration::from_micros(300));
            andweorc::progress!("unit");
            i
        });
        sum += target.await.unwrap().abs_diff(other.await.unwrap());
    }
    println!("sum={sum}");
}

/// Whether the profile of this program has its end.
fn has_ended() -> bool {
    let out = std::env::var_os("ANDWEORC_OUT").expect("it is profiled");
    Profile::read(Path::new(&out)).is_ok_and(|it| it.runs.iter().any(|run| run.end.is_some()))
}

/// A thread works and is sampled, while lines are experimented on.
fn is_sampled() {
    andweorc_core::thread::enable();
    thread::spawn(|| {
        andweorc::start_profiling().expect("the parent has asked whether there are perf events");
        eprintln!("ready");
        loop {
            spin(Duration::from_micros(500));
            andweorc::progress!("unit");
        }
    });
    let config =
        RunnerConfig { speedup_percentages: vec![25.0], max_ips: 1, ..RunnerConfig::default() };
    match Runner::with_config(config).run("unit") {
        Ok(results) => println!("lines={}", results.calculate_impacts().len()),
        Err(error) => println!("error={error}"),
    }
}

static TICKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_tick(_: libc::c_int) {
    // Relaxed: a count that publishes nothing else.
    TICKS.fetch_add(1, Ordering::Relaxed);
}

/// Asks for a signal for every millisecond of CPU time, as profilers in the process do.
fn tick() -> Result<()> {
    let action = SigAction::new(SigHandler::Handler(on_tick), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler only adds to an atomic.
    unsafe { sigaction(Signal::SIGPROF, &action) }?;
    let each = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: each, it_value: each };
    // SAFETY: `timer` is a valid value that the call reads; nothing is written back through the
    // null pointer.
    match unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn has_a_timer() {
    tick().unwrap();
    in_main(works());
    println!("ticks={}", TICKS.load(Ordering::Relaxed));
}

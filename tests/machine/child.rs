//! The programs that the tests run, and what they see of the machine.

use andweorc::__private::rt::runtime::Builder;
use andweorc_core::clock;
use andweorc_core::sampler::{self, Found, Sampling};
use andweorc_core::symbols::Symbols;
use andweorc_core::time::Nanos;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::hint::spin_loop;
use std::io::{Error, Result};
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "MACHINE_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// How long programs work: longer than the longest run that the tests set.
const WORK: Duration = Duration::from_secs(7);

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    match program.as_str() {
        "works" => in_main(work_for(WORK)),
        "is sampled" => is_sampled(),
        "overflows" => overflows(),
        "has a timer" => has_a_timer(),
        unknown => panic!("no program {unknown}"),
    }
    // The test harness has nothing more to say.
    exit(DONE);
}

/// As `#[andweorc::main(worker_threads = 2)]` does.
fn in_main(root: impl Future<Output = ()>) {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(root);
}

fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        spin_loop();
    }
}

/// Tasks of kind `target` beside others, until the time is up. What they compute is printed.
async fn work_for(time: Duration) {
    let began = Instant::now();
    let mut sum = 0_u64;
    for i in 0_u64.. {
        if began.elapsed() >= time {
            break;
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

/// Uses so much CPU time. Little of it in the kernel, where there are no samples: reading the CPU time is a system call.
fn burn(time: Duration) {
    let begun = clock::thread_cpu();
    while clock::thread_cpu() - begun < Nanos::from(time) {
        spin(Duration::from_millis(1));
    }
}

/// Registers the calling thread; ends the program where the kernel refuses.
fn register() {
    if let Err(error) = sampler::register() {
        println!("skipped: {error}");
        exit(DONE);
    }
}

fn print(found: &Found) {
    println!("samples={}", found.samples);
    println!("lost={}", found.lost);
}

/// A thread is sampled for as long as it takes to profile it from outside.
fn is_sampled() {
    let sampling = Sampling::start(Symbols::of_this_program().unwrap());
    thread::spawn(move || {
        register();
        eprintln!("ready");
        burn(Duration::from_secs(3));
        thread::sleep(Duration::from_millis(50));
        print(&sampling.take());
    })
    .join()
    .unwrap();
}

/// Nobody drains the ring of a thread until it is full.
fn overflows() {
    thread::spawn(move || {
        register();
        burn(Duration::from_secs(3));
        let sampling = Sampling::start(Symbols::of_this_program().unwrap());
        // The kernel tells of a loss with the next sample that has room.
        burn(Duration::from_millis(200));
        thread::sleep(Duration::from_millis(50));
        print(&sampling.take());
        // From now on there is none.
        burn(Duration::from_millis(200));
        thread::sleep(Duration::from_millis(50));
        let after = sampling.take();
        println!("samples_after={}", after.samples);
        println!("lost_after={}", after.lost);
    })
    .join()
    .unwrap();
}

static TICKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_tick(_: libc::c_int) {
    // Relaxed: a count that publishes nothing else.
    TICKS.fetch_add(1, Ordering::Relaxed);
}

/// As profilers in the process do: a signal for every millisecond of CPU time.
fn tick() -> Result<()> {
    let action = SigAction::new(SigHandler::Handler(on_tick), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler only adds to an atomic.
    unsafe { sigaction(Signal::SIGPROF, &action) }?;
    let each = libc::timeval { tv_sec: 0, tv_usec: 1000 };
    let timer = libc::itimerval { it_interval: each, it_value: each };
    // SAFETY: `timer` is a valid value that the call reads; nothing is written back through the null pointer.
    match unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn has_a_timer() {
    tick().unwrap();
    in_main(work_for(WORK));
    println!("ticks={}", TICKS.load(Ordering::Relaxed));
}

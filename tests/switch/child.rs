//! The programs that the tests run. Each prints the same at every run.

use andweorc::__private::rt::runtime::Builder;
use andweorc_profile::Profile;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, raise};
use nix::unistd::dup2_stderr;
use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::exit;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Names the program to be.
pub(crate) const PROGRAM: &str = "SWITCH_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// Exit code of a program that ended itself when it was told to.
pub(crate) const HANDLED: i32 = 9;

/// Longer than the profiler watches before it begins to experiment, and, by more than a machine may
/// be late, than `ANDWEORC_DURATION` in these tests.
const LONG: Duration = Duration::from_millis(4000);

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = env::var(PROGRAM) else { return };
    // As `#[andweorc::main(worker_threads = 2)]` does.
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let code = runtime.block_on(async {
        match program.as_str() {
            "short" => println!("checksum {:016x}", pipeline(true).await),
            "pipeline" => println!("checksum {:016x}", repeated(true, LONG).await),
            "pointless" => println!("checksum {:016x}", repeated(false, LONG).await),
            "endless" => println!("checksum {:016x}", repeated(true, Duration::MAX).await),
            "handles SIGTERM" => {
                let mut asked = signal(SignalKind::terminate()).unwrap();
                let work = andweorc::spawn(repeated(true, Duration::MAX));
                asked.recv().await;
                work.abort();
                println!("handled");
                return HANDLED;
            }
            "is told to end while it prints" => {
                pipeline(true).await;
                is_told_to_end_while_it_prints();
            }
            unknown => panic!("no program {unknown}"),
        }
        DONE
    });
    // The test harness has nothing more to say.
    exit(code);
}

/// Makes stderr a pipe that is full, so that no report can be printed, until the run has ended and
/// the program got a SIGTERM.
fn is_told_to_end_while_it_prints() {
    let (mut reader, mut stderr) = io::pipe().unwrap();
    let room = fcntl(&stderr, FcntlArg::F_GETPIPE_SZ).unwrap();
    stderr.write_all(&vec![b'.'; usize::try_from(room).unwrap()]).unwrap();
    dup2_stderr(stderr).unwrap();
    thread::spawn(move || {
        let out = env::var_os("ANDWEORC_OUT").unwrap();
        let has_ended = |profile: Profile| profile.runs.iter().any(|run| run.end.is_some());
        while !Profile::read(Path::new(&out)).is_ok_and(has_ended) {
            sleep(Duration::from_millis(10));
        }
        // To this very thread: it is handled when the call returns.
        raise(Signal::SIGTERM).unwrap();
        io::copy(&mut reader, &mut io::sink()).unwrap();
    });
}

/// The result of the pipeline, run again and again for `time`.
async fn repeated(points: bool, time: Duration) -> u64 {
    let began = Instant::now();
    let first = pipeline(points).await;
    while began.elapsed() < time {
        assert_eq!(pipeline(points).await, first);
    }
    first
}

/// Numbers through three tasks, in order; the result depends on each and on the order.
async fn pipeline(points: bool) -> u64 {
    let (into_mix, mut numbers) = mpsc::channel(16);
    let (into_sum, mut mixed) = mpsc::channel(16);
    andweorc::task::Builder::new().name("produce").spawn(async move {
        for number in 0..500_u64 {
            into_mix.send(number).await.unwrap();
        }
    });
    andweorc::task::Builder::new().name("mix").spawn(async move {
        while let Some(number) = numbers.recv().await {
            into_sum.send(mix(number, 1000)).await.unwrap();
        }
    });
    let sum = andweorc::spawn(async move {
        let mut sum = 0_u64;
        while let Some(number) = mixed.recv().await {
            sum = sum.rotate_left(1) ^ mix(number, 200);
            if points {
                andweorc::progress!("item");
            }
        }
        sum
    });
    sum.await.unwrap()
}

/// Work whose result says that it was done.
fn mix(number: u64, rounds: u32) -> u64 {
    // Any odd multiplier and addend will do.
    (0..rounds).fold(number, |x, _| x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
}

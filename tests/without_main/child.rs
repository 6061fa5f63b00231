//! The programs that the tests run.

#[path = "../faults/work.rs"]
#[allow(dead_code, reason = "shared with the tests of faults")]
mod work;

use andweorc::runtime::BuilderExt;
use andweorc::{Session, Settings};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, dup2_stderr, fork};
use std::io::{self, Write};
use std::process::exit;
use std::thread::sleep;
use std::time::Duration;
use std::{env, fs, mem};
use tokio::runtime::{Builder, Runtime};
use tracing::Instrument;
use tracing_subscriber::prelude::*;
use work::{work_for, work_until_experiments};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "SWITCH_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// The profile of the session that the program starts itself.
pub(crate) const OWN: &str = "own.jsonl";

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = env::var(PROGRAM) else { return };
    match program.as_str() {
        "builder" => by_hand().block_on(work_until_experiments()),
        "layer" => {
            tracing_subscriber::registry().with(andweorc::layer()).init();
            tokios_own().block_on(requests_until_experiments());
        }
        "subscriber" => {
            andweorc::subscriber().init();
            tokios_own().block_on(requests_until_experiments());
        }
        "endless" => by_hand().block_on(work_for(Duration::MAX)),
        "exits elsewhere" => {
            let runtime = by_hand();
            runtime.spawn(async {
                sleep(Duration::from_millis(100));
                exit(DONE);
            });
            runtime.block_on(work_for(Duration::MAX));
        }
        "short" => by_hand().block_on(work_for(Duration::from_millis(50))),
        "nobody reads" => {
            let runtime = by_hand();
            let reader = fill_stderr();
            runtime.block_on(work_for(Duration::from_millis(50)));
            // Nobody closes the other end while the program runs.
            mem::forget(reader);
        }
        "forks" => forks(),
        "session after" => {
            andweorc::subscriber().init();
            own_session(Settings::default(), OWN);
        }
        "session after experiments" => {
            andweorc::subscriber().init();
            by_hand().block_on(work_until_experiments());
            own_session(Settings::default(), OWN);
        }
        "session before" => own_session_before(),
        "session to the same file" => {
            by_hand().block_on(work_until_experiments());
            own_session(Settings::from_env().unwrap(), &env::var("ANDWEORC_OUT").unwrap());
        }
        "classic" => {
            andweorc::subscriber().init();
            // The error is that of a later step.
            let error = andweorc::run_experiments("no such point").unwrap_err();
            assert!(!matches!(error, andweorc::runner::RunError::AlreadyRunning), "{error}");
        }
        "main after layer" => main_after_layer(),
        "many starts" => {
            andweorc::subscriber().init();
            drop(andweorc::layer::<tracing_subscriber::Registry>());
            for _ in 0..2 {
                by_hand().block_on(work_for(Duration::from_millis(1500)));
            }
        }
        "looks around" => looks_around(),
        "nothing starts it" => {
            tokios_own().block_on(work_for(Duration::from_millis(50)));
            println!("worked");
        }
        unknown => panic!("no program {unknown}"),
    }
    // The test harness has nothing more to say.
    exit(DONE);
}

fn by_hand() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().enable_profiling().build().unwrap()
}

fn tokios_own() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Requests, each in a span, until experiments are held.
async fn requests_until_experiments() {
    let requests = tokio::spawn(async {
        loop {
            let request = async {
                work::spin(Duration::from_micros(200));
                tokio::task::yield_now().await;
            };
            request.instrument(tracing::info_span!("request")).await;
        }
    });
    work::experiments_began().await;
    requests.abort();
}

/// Makes stderr a pipe that is full. Returns its other end.
fn fill_stderr() -> io::PipeReader {
    let (reader, mut stderr) = io::pipe().unwrap();
    let room = fcntl(&stderr, FcntlArg::F_GETPIPE_SZ).unwrap();
    stderr.write_all(&vec![b'.'; usize::try_from(room).unwrap()]).unwrap();
    dup2_stderr(stderr).unwrap();
    reader
}

fn forks() {
    let runtime = by_hand();
    runtime.block_on(work_until_experiments());
    // SAFETY: the child has one thread, and does nothing but exit.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => exit(3),
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 3));
        }
    }
    runtime.block_on(work_for(Duration::from_millis(50)));
}

/// Starts a session in code, which must not be refused, and ends it.
fn own_session(mut settings: Settings, out: &str) {
    settings.out = Some(out.into());
    let session = Session::start(settings).unwrap_or_else(|error| panic!("{error}"));
    tokios_own().block_on(work_for(Duration::from_millis(50)));
    session.finish("as the program likes");
}

fn own_session_before() {
    let mut settings = Settings::default();
    settings.out = Some(OWN.into());
    let session = Session::start(settings).unwrap();
    andweorc::subscriber().init();
    by_hand().block_on(work_for(Duration::from_millis(50)));
    session.finish("as the program likes");
}

/// Does the same as a program whose `#[andweorc::main]` is called by another function.
fn main_after_layer() {
    andweorc::subscriber().init();
    let runtime = andweorc::__private::rt::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work_until_experiments());
    assert!(!andweorc_core::enabled(), "the session has ended");
}

/// Not enabled: no thread was started, andweorc is off.
fn looks_around() {
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    andweorc::subscriber().init();
    drop(andweorc::layer::<tracing_subscriber::Registry>());
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().enable_profiling().build().unwrap();
    runtime.block_on(async { andweorc::spawn(async {}).await.unwrap() });
    assert_eq!(threads(), before);
    assert!(!andweorc_core::enabled());
}

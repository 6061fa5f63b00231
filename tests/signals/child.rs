//! The programs that the tests run.

#[path = "../faults/work.rs"]
#[allow(dead_code, reason = "shared with the tests of faults, which use all of it")]
mod work;

use andweorc::__private::rt::runtime::Builder;
use andweorc_profile::Run;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction, signal,
};
use nix::sys::signalfd::SignalFd;
use nix::unistd::{ForkResult, dup2_stderr, execv, fork, getpid};
use std::env::args_os;
use std::ffi::{CString, OsString};
use std::io::{self, Write};
use std::mem;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::signal::unix::SignalKind;
use work::{work_for, work_until};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "SWITCH_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// Exit code of a program that got the signal that it waited for.
pub(crate) const WAITED: i32 = 9;

/// File that a child of fork waits for, in the program's folder.
pub(crate) const STOP: &str = "stop";

/// Longer than the profiler watches before it begins to experiment.
const LONG: Duration = Duration::from_millis(1800);

/// Time that is as good as for ever.
const ENDLESS: Duration = Duration::from_secs(600);

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    match program.as_str() {
        "works" => in_main(work_for(LONG)),
        "works for long" => in_main(work_for(Duration::from_secs(20))),
        "endless" => in_main(work_for(ENDLESS)),
        "works, stderr has no reader" => without_reader(LONG),
        "endless, stderr has no reader" => without_reader(ENDLESS),
        "works, stderr is full" => full(LONG),
        "endless, stderr is full" => full(ENDLESS),
        "works on after the end" => in_main(async {
            work_until(|run| run.end.is_some()).await;
            eprintln!("has ended");
            work_for(ENDLESS).await;
        }),
        "waits by sigwait" => waits(|set| set.wait().unwrap()),
        "reads a signalfd" => waits(|set| {
            let info = SignalFd::new(&set).unwrap().read_signal().unwrap().unwrap();
            Signal::try_from(info.ssi_signo.cast_signed()).unwrap()
        }),
        "resets SIGPROF" => in_main(resets_sigprof()),
        "takes SIGURG over" => {
            in_main(takes_over(|| act_on(Signal::SIGURG, SigHandler::Handler(on_signal))))
        }
        "ignores SIGURG" => in_main(takes_over(|| act_on(Signal::SIGURG, SigHandler::SigIgn))),
        "resets SIGURG" => in_main(takes_over(|| act_on(Signal::SIGURG, SigHandler::SigDfl))),
        "listens to SIGURG" => in_main(listens()),
        "leaves a child" => in_main(leaves_a_child()),
        unknown => panic!("no program {unknown}"),
    }
    // The test harness has nothing more to say.
    exit(DONE);
}

/// Runs `root` as `#[andweorc::main(worker_threads = 2)]` does.
fn in_main(root: impl Future<Output = ()>) {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(root);
}

/// SIGPIPE ends it, as it does many command line programs: not for what andweorc writes.
fn without_reader(time: Duration) {
    // SAFETY: the disposition has no handler.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }.unwrap();
    let (reader, writer) = io::pipe().unwrap();
    dup2_stderr(writer).unwrap();
    drop(reader);
    in_main(work_for(time));
}

fn full(time: Duration) {
    let (reader, mut writer) = io::pipe().unwrap();
    let room = fcntl(&writer, FcntlArg::F_GETPIPE_SZ).unwrap();
    writer.write_all(&vec![b'.'; usize::try_from(room).unwrap()]).unwrap();
    dup2_stderr(writer).unwrap();
    // Open, and read by nobody.
    mem::forget(reader);
    in_main(work_for(time));
}

/// Blocks all signals and works, until some experiments were held; then waits for any signal.
fn waits(for_any: impl FnOnce(SigSet) -> Signal) {
    block_from_the_start();
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        work_until(has_held_some).await;
        eprintln!("waits");
        println!("got={}", for_any(SigSet::all()));
    });
    exit(WAITED);
}

/// Blocks all signals in all threads of the program, that of the test harness too, which would take
/// what the others block: begins anew with that mask.
fn block_from_the_start() {
    let mask = SigSet::thread_get_mask().unwrap();
    if !mask.contains(Signal::SIGTERM) {
        SigSet::all().thread_block().unwrap();
        let own = |argument: OsString| CString::new(argument.into_vec()).unwrap();
        let arguments: Vec<_> = args_os().map(own).collect();
        let Err(error) = execv(c"/proc/self/exe", &arguments);
        panic!("{error}");
    }
}

/// Experiments that delay have been held.
fn has_held_some(run: &Run) -> bool {
    run.experiments.iter().filter(|it| it.delay_ns > 0).count() >= 3
}

static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    SEEN.fetch_add(1, Ordering::SeqCst);
}

fn act_on(signal: Signal, handler: SigHandler) {
    let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler only adds to an atomic.
    unsafe { sigaction(signal, &action) }.unwrap();
}

/// Takes SIGPROF over for a while, as a profiler does that is switched on and off.
async fn resets_sigprof() {
    work_until(has_held_some).await;
    act_on(Signal::SIGPROF, SigHandler::Handler(on_signal));
    work_for(LONG).await;
    println!("seen={}", SEEN.load(Ordering::SeqCst));
    act_on(Signal::SIGPROF, SigHandler::SigDfl);
    work_for(LONG).await;
}

/// Has another disposition for SIGURG after some experiments, and works until the run ends.
async fn takes_over(takes: impl FnOnce()) {
    work_until(has_held_some).await;
    takes();
    let began = Instant::now();
    let mut seen = (u64::MAX, 0);
    // By then nobody sends any more.
    while seen.0 != seen.1 && began.elapsed() < ENDLESS {
        seen.0 = SEEN.load(Ordering::SeqCst);
        work_for(Duration::from_millis(500)).await;
        seen.1 = SEEN.load(Ordering::SeqCst);
    }
    work_until(|run| run.end.is_some()).await;
    println!("seen={}", seen.1);
    println!("seen_later={}", SEEN.load(Ordering::SeqCst) - seen.1);
}

/// Listens to SIGURG as tokio does it: with a handler that calls the one that it replaces.
async fn listens() {
    work_until(has_held_some).await;
    let mut urgent = tokio::signal::unix::signal(SignalKind::from_raw(libc::SIGURG)).unwrap();
    for _ in 0..10 {
        raise(Signal::SIGURG).unwrap();
        urgent.recv().await.unwrap();
    }
    kill(getpid(), Signal::SIGURG).unwrap();
    urgent.recv().await.unwrap();
    work_until(|run| run.end.is_some()).await;
}

/// Ends while a child of fork goes on.
async fn leaves_a_child() {
    work_until(|run| !run.experiments.is_empty()).await;
    // SAFETY: the child makes system calls only, after it was forked from a program of many
    // threads.
    if let ForkResult::Child = unsafe { fork() }.unwrap() {
        let stop = Path::new(STOP);
        // SAFETY: takes plain numbers. Who reads what the program prints must see that it has
        // ended.
        unsafe { [libc::close(1), libc::close(2)] };
        let began = Instant::now();
        while !stop.exists() && began.elapsed() < ENDLESS {
            sleep(Duration::from_millis(20));
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
}

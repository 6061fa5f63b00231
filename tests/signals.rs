//! Signals are the program's: those that ask it to end do so in time, those that it waits for reach
//! it, and those that it takes over are not sent any more.
//!
//! The programs are this test binary, run again: [`child`] is what they do.

#[path = "signals/child.rs"]
mod child;
#[path = "switch/parent.rs"]
#[allow(dead_code, reason = "shared with the tests of the switch, which use all of it")]
mod parent;

use child::{DONE, STOP, WAITED};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use parent::{Ended, Process, Program, once, reason};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::thread;

/// A budget that is not over when a signal comes.
const LONGER: &str = "60s";

/// Signals that a thread gets for what it does itself.
const SYNCHRONOUS: [Signal; 6] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGSYS,
];

/// The programs. Its own exit code tells that it came to its end.
#[test]
#[ignore = "the program that the other tests run"]
fn child() {
    child::main();
}

/// A program that is profiled for longer than it runs.
fn profiled(name: &'static str) -> Program {
    Program::new(name).enabled().var("ANDWEORC_DURATION", LONGER)
}

/// A program whose lines are sampled.
fn sampled(name: &'static str) -> Program {
    profiled(name).var("ANDWEORC_TARGETS", "lines")
}

fn assert_ended_by(ended: &Ended, signal: Signal) {
    assert_eq!(ended.status.signal(), Some(signal as i32), "{ended:?}");
}

fn assert_done(ended: &Ended) {
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
}

/// The folders in /proc of all threads of the program.
fn threads(process: &Process) -> Vec<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.pid())).unwrap();
    tasks.map(|task| task.unwrap().path()).collect()
}

/// A set of signals in a `status` file of /proc.
fn set_of(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    u64::from_str_radix(line.expect("the kernel tells").trim(), 16).unwrap()
}

fn is_in(set: u64, signal: Signal) -> bool {
    set & 1 << (signal as i32 - 1) != 0
}

#[test]
fn a_signal_ends_the_program_whatever_stderr_is() {
    for name in ["endless, stderr has no reader", "endless, stderr is full"] {
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let program = profiled(name);
            let mut process = program.start();
            program.await_experiment(&mut process);
            process.signal(signal);
            assert_ended_by(&process.wait(), signal);
        }
    }
}

#[test]
fn main_returns_with_its_own_status_whatever_stderr_is() {
    for name in ["works, stderr has no reader", "works, stderr is full"] {
        let program = profiled(name);
        assert_done(&program.run());
        assert_eq!(reason(&program.profile()), "main returned");
    }
}

/// Holds a thread of the program for good, as a file system that hangs would. `None` where no
/// program can be traced.
fn hold(process: &Process, name: &str) -> Option<Pid> {
    let called = |task: &PathBuf| fs::read_to_string(task.join("comm")).unwrap().trim() == name;
    let task = threads(process).into_iter().find(called).expect("the thread lives");
    let tid = Pid::from_raw(task.file_name().unwrap().to_str().unwrap().parse().unwrap());
    if let Err(error) = ptrace::seize(tid, ptrace::Options::empty()) {
        println!("skipped: a program can't be traced here: {error}");
        return None;
    }
    ptrace::interrupt(tid).unwrap();
    waitpid(tid, Some(WaitPidFlag::__WALL)).unwrap();
    Some(tid)
}

/// Waits for the end of a program of which a thread is held: who traces a thread has to see its
/// end.
fn wait_with(held: Pid, process: Process) -> Ended {
    let reaper = thread::spawn(move || {
        loop {
            match waitpid(held, Some(WaitPidFlag::__WALL)) {
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(Errno::ECHILD) => break,
                _ => {}
            }
        }
    });
    let ended = process.wait();
    reaper.join().unwrap();
    ended
}

#[test]
fn a_signal_ends_the_program_also_where_the_profile_comes_to_no_end() {
    let program = profiled("endless");
    let mut process = program.start();
    program.await_experiment(&mut process);
    let Some(held) = hold(&process, "andweorc") else { return };
    process.signal(Signal::SIGTERM);
    assert_ended_by(&wait_with(held, process), Signal::SIGTERM);
}

#[test]
fn main_returns_also_where_the_profile_comes_to_no_end() {
    let program = profiled("works for long");
    let mut process = program.start();
    program.await_experiment(&mut process);
    let Some(held) = hold(&process, "andweorc") else { return };
    let ended = wait_with(held, process);
    assert_done(&ended);
    assert!(ended.stderr.contains("took too long"), "{ended:?}");
}

#[test]
fn a_program_that_waits_for_signals_gets_them_and_no_others() {
    for name in ["waits by sigwait", "reads a signalfd"] {
        let program = profiled(name).var("ANDWEORC_TARGETS", "lines,target");
        let mut process = program.start();
        process.await_stderr("waits");
        process.signal(Signal::SIGTERM);
        let ended = process.wait();
        assert_eq!(ended.status.code(), Some(WAITED), "{ended:?}");
        assert!(ended.stdout.contains("got=SIGTERM"), "{ended:?}");
    }
}

#[test]
fn threads_of_andweorc_take_no_signals() {
    let program = sampled("endless");
    let mut process = program.start();
    program.await_experiment(&mut process);
    let mut ours = 0;
    for task in threads(&process) {
        let name = fs::read_to_string(task.join("comm")).unwrap();
        if !name.starts_with("andweorc") {
            continue;
        }
        ours += 1;
        let status = fs::read_to_string(task.join("status")).unwrap();
        let blocked = set_of(&status, "SigBlk");
        for signal in Signal::iterator() {
            let may_come = SYNCHRONOUS.contains(&signal)
                || matches!(signal, Signal::SIGKILL | Signal::SIGSTOP);
            assert_eq!(is_in(blocked, signal), !may_come, "{signal} in {name}");
        }
    }
    assert!(ours >= 5, "{ours} threads");
}

#[test]
fn after_the_end_of_the_profile_no_handler_is_left() {
    let program = sampled("works on after the end").var("ANDWEORC_DURATION", "3s");
    let mut process = program.start();
    process.await_stderr("has ended");
    process.await_stderr("profile: ");
    let handled = || {
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
        let caught = set_of(&status, "SigCgt");
        let ours = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGURG, Signal::SIGPROF];
        ours.into_iter().filter(|signal| is_in(caught, *signal)).collect::<Vec<_>>()
    };
    // The report is printed a moment before.
    let began = std::time::Instant::now();
    while !handled().is_empty() {
        assert!(began.elapsed().as_secs() < 60, "{:?}", handled());
        thread::sleep(std::time::Duration::from_millis(10));
    }
    process.signal(Signal::SIGTERM);
    assert_ended_by(&process.wait(), Signal::SIGTERM);
}

#[test]
fn a_program_that_resets_sigprof_goes_on() {
    let ended = sampled("resets SIGPROF").run();
    assert_done(&ended);
    assert!(ended.stdout.contains("seen=0"), "{ended:?}");
}

#[test]
fn a_program_that_takes_sigurg_over_gets_no_more_of_it_and_the_report_says_so() {
    for name in ["takes SIGURG over", "ignores SIGURG", "resets SIGURG"] {
        // Whether lines are seen before that is up to the machine.
        once(|| {
            let program = sampled(name).var("ANDWEORC_DURATION", "10s");
            let ended = program.run();
            assert_done(&ended);
            assert!(ended.stdout.contains("seen_later=0"), "{ended:?}");
            let run = program.profile();
            let told = |text: &str| text.contains("the program took SIGURG over");
            assert!(told(&ended.stderr), "{ended:?}");
            assert!(run.notes.iter().any(|note| told(&note.text)), "{run:?}");
            let seen = ended.stdout.lines().find_map(|line| line.strip_prefix("seen="));
            let seen: u64 = seen.unwrap().parse().unwrap();
            // One may have been to tell a thread to pay.
            assert!(run.end.as_ref().unwrap().lost_samples + 1 >= seen, "{seen}: {run:?}");
            (reason(&run) == "nothing left to test", format!("{run:?}"))
        });
    }
}

#[test]
fn a_handler_that_calls_ours_is_told_of_what_others_send() {
    let program = sampled("listens to SIGURG").var("ANDWEORC_DURATION", "8s");
    let ended = program.run();
    assert_done(&ended);
    assert!(ended.stderr.contains("the program took SIGURG over"), "{ended:?}");
}

#[test]
fn a_child_of_fork_that_lives_on_does_not_hold_the_profile() {
    let program = profiled("leaves a child");
    let first = program.run();
    assert_done(&first);
    let again = program.run();
    fs::write(program.directory().join(STOP), "").unwrap();
    assert_done(&again);
    assert!(!again.stderr.contains("not profiling"), "{again:?}");
}

//! Behaviour of a profiled program on a machine that gives it less than it asks for, and beside
//! other tools that hold or watch it; docs/book/src/reference/safety.md is the same in words.
//!
//! The programs are this test binary, run again: [`child`] is what they do.

#[path = "machine/child.rs"]
mod child;
#[path = "machine/limit.rs"]
mod limit;
#[path = "switch/parent.rs"]
#[allow(dead_code, reason = "shared with the tests of the switch, which use all of it")]
mod parent;

use andweorc_profile::{ExperimentRecord, Run, TargetKind};
use child::DONE;
use limit::Limit;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use parent::{Ended, Process, Program, once, reason, stopped_for};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// How long a program is held.
const HELD: Duration = Duration::from_secs(2);

/// The programs. Its own exit code tells that it came to its end.
#[test]
#[ignore = "the program that the other tests run"]
fn child() {
    child::main();
}

/// The run of a program that works under some limit, for a budget in which there is time for some
/// experiments.
fn profiled() -> Program {
    Program::new("works").enabled().var("ANDWEORC_DURATION", "6s")
}

/// Asserts that the program came to its end, and that what it computed is right.
fn assert_done(ended: &Ended) {
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    assert!(ended.stdout.contains("sum=0"), "{ended:?}");
}

/// The number that the program printed under this name.
fn printed(ended: &Ended, name: &str) -> u64 {
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}: {ended:?}"))
}

/// How the reason begins why an experiment under a limit is discarded.
const LIMIT: &str = "a limit on processor time stopped the program";

/// Asserts that a run in which the program had `share` of one processor is whole, and that nobody
/// was delayed for the time in which it had none: what grew is the target's CPU time, which is the
/// program's at most.
fn assert_limited(run: &Run, share: f64) {
    assert_eq!(reason(run), "time", "{run:?}");
    let usable = || {
        let limited = |why: &String| why.starts_with(LIMIT);
        let whole = move |it: &&ExperimentRecord| it.discarded.as_ref().is_none_or(limited);
        // A probe delays all, whoever runs.
        let is_probe =
            |id: u32| run.targets.iter().any(|it| it.id == id && it.kind == TargetKind::Probe);
        let on_target = move |it: &&ExperimentRecord| it.target.is_some_and(|id| !is_probe(id));
        run.experiments.iter().filter(on_target).filter(whole)
    };
    let real: f64 = usable().map(|it| it.speedup * it.real_ns as f64 / 1e9).sum();
    let delay: f64 = usable().map(|it| it.delay_ns as f64 / 1e9).sum();
    println!("{} experiments: delay {delay:.3} s of {:.3} s", usable().count(), share * real);
    // Half of it more, and one lump: a stretch begins and ends anywhere.
    assert!(delay <= 1.5 * share * real + 0.05, "{delay} s of {real} s: {run:?}");
}

#[test]
fn a_limit_on_processor_time_is_nobodys_debt() {
    let share = 0.2;
    let limit = match Limit::new(share) {
        Ok(limit) => limit,
        Err(why) => return println!("skipped: no cgroup that limits processor time: {why}"),
    };
    // An experiment in which the program did not run for 0.1 s ends early, for that reason: now and
    // then all of a run do.
    let is_told = (0..5).any(|_| {
        let program = profiled();
        let process = program.start();
        limit.add(process.pid()).unwrap();
        let ended = process.wait();
        assert_done(&ended);
        let throttled = limit.throttled();
        println!("throttled in {throttled} periods of 100 ms");
        assert!(throttled > 0, "it was not limited");
        let run = program.profile();
        assert_limited(&run, share);
        let why = run.experiments.iter().filter_map(|it| it.discarded.as_ref());
        let limited = why.filter(|why| why.starts_with(LIMIT)).count();
        println!(
            "{limited} of {} experiments and baselines are discarded for it",
            run.experiments.len()
        );
        limited > 0
    });
    assert!(is_told, "no experiment is discarded for the limit");
}

#[test]
fn short_stops_all_the_time_are_nobodys_debt() {
    let (on, off) = (Duration::from_millis(30), Duration::from_millis(40));
    let program = profiled();
    let process = program.start();
    let pid = process.pid();
    let over = AtomicBool::new(false);
    let ended = scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                for (signal, time) in [(Signal::SIGSTOP, off), (Signal::SIGCONT, on)] {
                    // It may have ended.
                    nix::sys::signal::kill(pid, signal).ok();
                    sleep(time);
                }
            }
        });
        let ended = process.wait();
        over.store(true, Ordering::SeqCst);
        ended
    });
    assert_done(&ended);
    // On two processors.
    let share = 2.0 * on.as_secs_f64() / (on + off).as_secs_f64();
    assert_limited(&program.profile(), share);
}

/// Stops the process by a signal: to the process, a stop of its virtual machine looks just so.
#[test]
fn a_stop_of_some_ms_spoils_the_experiment_that_it_hits() {
    // The last number is how often this thread got a processor: none where the kernel does not
    // count.
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    if schedstat.split_ascii_whitespace().last().is_none_or(|times| times == "0") {
        return println!("skipped: this kernel tells no waits for processors");
    }
    // It may be discarded for something else first.
    once(|| {
        let program = profiled();
        let mut process = program.start();
        program.await_experiment(&mut process);
        // An experiment has just ended, and one between two of them spoils none: if the first comes
        // too early for the next, the second hits it.
        for _ in 0..4 {
            process.signal(Signal::SIGSTOP);
            sleep(Duration::from_millis(60));
            process.signal(Signal::SIGCONT);
            sleep(Duration::from_millis(90));
        }
        let ended = process.wait();
        assert_done(&ended);
        let run = program.profile();
        assert_eq!(reason(&run), "time", "{run:?}");
        let still = |why: &&str| why.starts_with("the machine stood still for ");
        let discarded = run.experiments.iter().filter_map(|it| it.discarded.as_deref());
        (discarded.filter(still).count() > 0, format!("{run:?}"))
    });
}

/// All threads of a process, held as a debugger holds them; let go when dropped.
struct Held(Vec<(Pid, Option<Signal>)>);

impl Held {
    fn hold(process: &Process) -> nix::Result<Held> {
        let mut held = Held(Vec::new());
        let tasks = format!("/proc/{}/task", process.pid());
        for task in fs::read_dir(tasks).unwrap() {
            let tid = Pid::from_raw(task.unwrap().file_name().to_str().unwrap().parse().unwrap());
            match ptrace::seize(tid, ptrace::Options::empty()) {
                // It ended.
                Err(Errno::ESRCH) => continue,
                seized => seized?,
            }
            ptrace::interrupt(tid)?;
            match waitpid(tid, Some(WaitPidFlag::__WALL))? {
                // A signal was on its way; it gets it when it is let go.
                WaitStatus::Stopped(_, signal) => held.0.push((tid, Some(signal))),
                WaitStatus::PtraceEvent(..) => held.0.push((tid, None)),
                _ => {}
            }
        }
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for (tid, signal) in &self.0 {
            ptrace::detach(*tid, *signal).expect("a held thread can be let go");
        }
    }
}

#[test]
fn a_debugger_that_holds_the_program_spoils_one_experiment() {
    // It may be held between two experiments.
    once(|| {
        let program = profiled();
        let mut process = program.start();
        program.await_experiment(&mut process);
        match Held::hold(&process) {
            Ok(held) => {
                assert!(held.0.len() > 3, "main, workers and the profiler");
                sleep(HELD);
            }
            Err(error) => {
                println!("skipped: a program can't be traced here: {error}");
                return (true, String::new());
            }
        }
        let ended = process.wait();
        assert_done(&ended);
        let run = program.profile();
        assert_eq!(reason(&run), "time", "{run:?}");
        let held = HELD.as_secs_f64() - 0.1;
        let longest =
            run.experiments.iter().filter(|it| it.discarded.is_none()).map(|it| it.real_ns);
        assert!(longest.max().unwrap_or(0) as f64 / 1e9 < held, "{run:?}");
        let discarded = run.experiments.iter().filter_map(|it| stopped_for(it.discarded.as_ref()?));
        let discarded = discarded.filter(|&gap| gap >= held).count();
        assert!(discarded <= 1, "{run:?}");
        (discarded == 1, format!("{run:?}"))
    });
}

/// To the program a suspended machine is one that stops less: CLOCK_MONOTONIC stands still
/// meanwhile, and all its own clocks with it.
#[test]
fn a_program_that_is_stopped_again_and_again_comes_to_its_end_in_order() {
    let program = profiled().var("ANDWEORC_DURATION", "8s");
    let mut process = program.start();
    program.await_experiment(&mut process);
    let began = Instant::now();
    // More than must be seen: one between two experiments spoils none.
    for _ in 0..5 {
        process.signal(Signal::SIGSTOP);
        sleep(Duration::from_millis(700));
        process.signal(Signal::SIGCONT);
        sleep(Duration::from_millis(400));
    }
    let stopped = began.elapsed();
    let ended = process.wait();
    assert_done(&ended);
    let run = program.profile();
    assert_eq!(reason(&run), "time", "{run:?}");
    let real = run.end.as_ref().unwrap().real_ns;
    assert!(u128::from(real) > stopped.as_nanos(), "stops are part of the budget: {run:?}");
    let discarded = run.experiments.iter().filter_map(|it| it.discarded.as_deref());
    assert!(discarded.filter_map(stopped_for).filter(|&gap| gap > 0.6).count() >= 2, "{run:?}");
}

#[test]
fn a_profiler_from_outside_and_the_sampler_are_not_in_each_others_way() {
    let program = Program::new("is sampled");
    let mut process = program.start();
    process.await_stderr("ready");
    let data = program.directory().join("perf.data");
    if let Err(error) = andweorc_core::sampler::probe() {
        return println!("skipped: {error}");
    }
    let perf = Command::new("perf")
        .args(["record", "--quiet", "-F", "999", "-p", &process.pid().to_string(), "-o"])
        .arg(&data)
        .args(["--", "sleep", "1"])
        .output();
    match perf {
        Err(error) => return println!("skipped: perf can't be run: {error}"),
        Ok(output) if !output.status.success() => {
            return println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(_) => {}
    }
    let ended = process.wait();
    assert_eq!(ended.status.code(), Some(DONE), "{ended:?}");
    assert!(fs::metadata(data).unwrap().len() > 0);
    assert_eq!(printed(&ended, "lines"), 1, "{ended:?}");
}

#[test]
fn a_profiler_by_signals_in_the_process_changes_nothing() {
    let program = Program::new("has a timer").enabled().var("ANDWEORC_DURATION", "6s");
    let ended = program.run();
    assert_done(&ended);
    assert!(printed(&ended, "ticks") > 100, "{ended:?}");
    let run = program.profile();
    assert_eq!(reason(&run), "time", "{run:?}");
    let delays = run.experiments.iter().filter(|it| it.target.is_some() && it.delay_ns > 0);
    assert!(delays.count() > 0, "{run:?}");
}

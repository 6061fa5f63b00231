//! The cases.

use crate::child::{Ended, Program, Stderr};
use std::thread::sleep;
use std::time::Duration;

/// One case: it held, with what was measured, or it did not, and why.
pub struct Case {
    pub name: String,
    tries: u32,
    check: Box<dyn Fn() -> Result<String, String>>,
}

impl Case {
    fn new(name: &str, check: impl Fn() -> Result<String, String> + 'static) -> Case {
        Case { name: name.into(), tries: 1, check: Box::new(check) }
    }

    /// One that compares times, which a busy machine may spoil.
    fn timed(name: &str, check: impl Fn() -> Result<String, String> + 'static) -> Case {
        Case { tries: 3, ..Case::new(name, check) }
    }

    pub fn run(&self) -> Result<String, String> {
        let mut result = (self.check)();
        for _ in 1..self.tries {
            if result.is_ok() {
                break;
            }
            result = (self.check)();
        }
        result
    }
}

fn check(held: bool, what: impl Into<String>) -> Result<String, String> {
    let what = what.into();
    if held { Ok(what) } else { Err(what) }
}

/// By how much a wake may be later than what the experiment means, ms.
const LATER: f64 = 5.0;

pub fn all() -> Vec<Case> {
    let mut all = Vec::new();
    all.extend(wakes());
    all.extend(signals());
    all.extend(results());
    all.extend(panics());
    all.extend(files());
    all.extend(stress());
    all
}

/// Wakes are neither lost nor kept.
fn wakes() -> Vec<Case> {
    let worst = |name: &'static str, most: f64| {
        Case::timed(name, move || {
            let ended = Program::on(name).run(60)?;
            let worst = ended.number("worst_ms")?;
            check(worst <= most, format!("worst {worst:.1} ms, at most {most} ms"))
        })
    };
    // A message waits 7 ms for the next, a sleep lasts 5 ms, a result comes each 40 ms: in half
    // speed they are late by as much.
    let mut all = vec![
        worst("sync_sender", 7.0 + LATER + 3.0),
        worst("two_runtimes", 10.0 + LATER + 3.0),
        worst("cpu_runtime", 40.0 + LATER),
    ];
    for kind in ["plain", "drove", "runtime", "unwrapped", "pool", "signal", "drop", "teardown"] {
        all.push(Case::timed(&format!("wakes_{kind}"), move || {
            let off = Program::off("wakes").arg(kind).arg(1).run(30)?.number("latest_ms")?;
            let on = Program::on("wakes").arg(kind).arg(2).run(30)?;
            let (beyond, received) = (on.number("beyond_ms")?, on.number("received")?);
            let most = off + LATER;
            let said = format!(
                "{received} received, later than meant by {beyond:.1} ms, at most {most:.1} ms"
            );
            check(beyond <= most && received > 20.0, said)
        }));
    }
    all
}

/// Signals are the program's.
fn signals() -> Vec<Case> {
    let ends = |name: &str, set: fn(Program) -> Program, profiled: bool, signal: i32| {
        Case::timed(name, move || {
            let mut running = set(Program::on("service")).start();
            if profiled {
                running.experiments()?;
            } else {
                sleep(Duration::from_secs(1));
            }
            running.signal(signal);
            let ended = running.end(10)?;
            ended.signal(signal)?;
            let took = ended.took.as_secs_f64();
            // Two seconds, and what the thread that is to end it needs to get going.
            check(took < 2.5, format!("ended {took:.2} s after the signal"))
        })
    };
    let returns = |name: &str, stderr: Stderr| {
        Case::timed(name, move || {
            let ended = Program::on("service").arg(2).stderr(stderr).run(20)?;
            ended.code(0)?;
            check(
                ended.took < Duration::from_millis(4500),
                format!("ended after {:.2} s", ended.took.as_secs_f64()),
            )
        })
    };
    vec![
        ends("sigterm", |program| program, true, libc::SIGTERM),
        ends("sigterm_off", |program| program.var("ANDWEORC_ENABLED", "0"), false, libc::SIGTERM),
        ends(
            "sigterm_stderr_closed",
            |program| program.stderr(Stderr::Closed),
            true,
            libc::SIGTERM,
        ),
        ends("sigterm_stderr_full", |program| program.stderr(Stderr::Full), true, libc::SIGTERM),
        ends("sigint_stderr_full", |program| program.stderr(Stderr::Full), true, libc::SIGINT),
        ends("sigterm_profile_is_a_fifo", fifo, false, libc::SIGTERM),
        returns("main_returns_stderr_closed", Stderr::Closed),
        returns("main_returns_stderr_full", Stderr::Full),
        Case::new("sigwait", || {
            let mut running = Program::on("sigwait").start();
            sleep(Duration::from_millis(1500));
            running.signal(libc::SIGTERM);
            let ended = running.end(10)?;
            ended.code(0)?;
            check(ended.stdout.contains("in order=1"), "ended in order")
        }),
        own_signal("own_sigprof", "prof"),
        own_signal("own_sigurg", "urg"),
    ]
}

/// A pipe that nobody reads in the place of the profile.
fn fifo(program: Program) -> Program {
    let path = std::env::temp_dir().join(format!("andweorc-safety-{}.fifo", std::process::id()));
    std::fs::remove_file(&path).unwrap_or_default();
    let name = std::ffi::CString::new(path.to_string_lossy().as_bytes()).expect("no zero");
    // SAFETY: the name ends with a zero and lives through the call.
    unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
    program.var("ANDWEORC_OUT", &path.to_string_lossy())
}

/// The program takes over a signal that andweorc uses, and gives it back: it sees next to none, and
/// lives.
fn own_signal(name: &str, which: &'static str) -> Case {
    Case::new(name, move || {
        let program = Program::on("own_signal").arg(which);
        let ended = program.var("ANDWEORC_TARGETS", "lines").run(30)?;
        ended.code(0)?;
        let seen = ended.number("seen")?;
        check(seen <= 64.0, format!("saw {seen} signals that it did not send"))
    })
}

/// Cases of programs that must come to the same results as without andweorc.
fn results() -> Vec<Case> {
    let mut all = vec![
        Case::new("timeout", || {
            let ended = Program::on("timeout").run(60)?;
            let (in_time, late) = (ended.number("in_time")?, ended.number("late")?);
            check(late == 0.0 && in_time > 100.0, format!("in time {in_time}, late {late}"))
        }),
        Case::new("syscalls", || {
            let ended = Program::on("syscalls").run(30)?;
            let same = ended.number("differ")? == 0.0 && ended.number("held")? == 1.0;
            check(same, ended.stdout.trim())
        }),
    ];
    if cfg!(tokio_unstable) {
        for kind in ["atomic_waker", "unconstrained", "readable", "join"] {
            all.push(Case::new(&format!("unwrapped_{kind}"), move || {
                let ended = Program::on("unwrapped").arg(kind).run(60)?;
                let (there, missing) = (ended.number("there")?, ended.number("missing")?);
                check(missing == 0.0 && there > 100.0, format!("there {there}, missing {missing}"))
            }));
        }
    }
    all
}

/// No panic and no abort of andweorc's.
fn panics() -> Vec<Case> {
    let teardown = |on: bool| {
        let ended = if on { Program::on("teardown") } else { Program::off("teardown") }.run(20)?;
        ended.code(0)?;
        check(ended.stdout.contains("closed=1"), "closed")
    };
    vec![
        Case::new("teardown", move || teardown(true)),
        Case::new("teardown_off", move || teardown(false)),
        Case::timed("waker_panics", || {
            let ended = Program::on("waker_panics").run(60)?;
            let (elsewhere, worst) = (ended.number("elsewhere")?, ended.number("worst_ms")?);
            let held = elsewhere == 0.0 && worst <= 5.0 + LATER + 3.0;
            check(held, format!("panics elsewhere {elsewhere}, worst {worst:.1} ms"))
        }),
    ]
}

/// Files.
fn files() -> Vec<Case> {
    vec![
        Case::new("files", || {
            let run =
                |program: Program| program.var("ANDWEORC_TARGETS", "lines").run(60)?.number("open");
            let (off, on) = (run(Program::off("files"))?, run(Program::on("files"))?);
            // A quarter of the limit of 512 for threads, and some that a session needs.
            check(on - off <= 128.0 + 16.0, format!("{on} open, {off} without"))
        }),
        Case::new("forked_helper", || {
            let started = |ended: Ended| ended.number("started");
            let first = Program::on("forked_helper");
            let out = std::env::temp_dir()
                .join(format!("andweorc-safety-fork-{}.jsonl", std::process::id()));
            let out = out.to_string_lossy().into_owned();
            let first = started(first.var("ANDWEORC_OUT", &out).run(20)?)?;
            let second = started(Program::on("forked_helper").var("ANDWEORC_OUT", &out).run(20)?)?;
            check([first, second] == [1.0; 2], format!("sessions started: {first}, {second}"))
        }),
    ]
}

/// Nothing hangs, and nothing is lost.
fn stress() -> Vec<Case> {
    let stress = |name: &'static str, code: Option<i32>| {
        Case::new(&format!("stress_{name}"), move || {
            // Long enough for an experiment on what most of them do.
            let program = Program::on("stress").arg(name).arg(2);
            let program =
                program.var("ANDWEORC_TARGETS", "unit").var("ANDWEORC_DURATION", "1500ms");
            let ended = program.run(40)?;
            check(!ended.stdout.contains("no target is named"), "it has a target")?;
            match code {
                Some(code) => ended.code(code)?,
                None => ended.signal(libc::SIGABRT)?,
            }
            check(!ended.stderr.contains("FAULT"), ended.stdout.lines().next().unwrap_or(""))
        })
    };
    let ends = [
        "storm",
        "timeouts",
        "select",
        "handoff",
        "joinset",
        "block",
        "runtimes",
        "local",
        "threads",
        "small64",
        "hog",
        "sockets",
        "processes",
        "signals",
        "drops",
    ];
    let mut all: Vec<Case> = ends.map(|name| stress(name, Some(0))).into();
    all.extend([stress("exit", Some(9)), stress("abort", None)]);
    all
}

//! `run --with`, while its processes are killed and stopped: the services go on.

use crate::Shop;
use crate::together::{Leftovers, PATIENCE, arguments, await_run, options, run_of};
use andweorc_profile::Run;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// So often a stop is tried until it hits an experiment.
const TRIES: usize = 20;

/// A run of two services that has begun to hold experiments.
struct Held<'a> {
    shop: &'a Shop,
    command: Child,
    /// Port of the service of `--with`.
    other: u16,
}

impl Held<'_> {
    fn start(shop: &Shop) -> Held<'_> {
        for name in ["shop.jsonl", "shop.stock.jsonl"] {
            // The first run finds none.
            fs::remove_file(shop.profiles().join(name)).unwrap_or_default();
        }
        let (options, other) = options(shop, "60s");
        let mut command = shop.command(&arguments(&options));
        let log = File::create(shop.folder.join("faults.log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let held = Held { shop, command: command.spawn().unwrap(), other };
        for profile in [held.profile(), held.profile_of_other()] {
            await_run(&profile, |run| run.experiments.len() >= 3);
        }
        held
    }

    fn profile(&self) -> PathBuf {
        self.shop.profiles().join("shop.jsonl")
    }

    fn profile_of_other(&self) -> PathBuf {
        self.shop.profiles().join("shop.stock.jsonl")
    }

    /// The process of `--with`.
    fn pid_of_other(&self) -> Pid {
        let pid = fs::read_to_string(self.shop.folder.join("stock.pid")).unwrap();
        Pid::from_raw(pid.trim().parse().unwrap())
    }

    /// The process that the command built and started.
    fn pid(&self) -> Pid {
        let port = self.shop.port.to_string();
        let is_it = |arguments: &[String]| arguments[1..] == ["serve", &port];
        let all = procfs::process::all_processes().unwrap().flatten();
        let mut found = all.filter(|process| {
            process.exe().is_ok_and(|it| it.starts_with(&self.shop.folder))
                && process.cmdline().is_ok_and(|it| !it.is_empty() && is_it(&it))
        });
        Pid::from_raw(found.next().expect("it runs").pid)
    }

    /// Waits for the end of the command.
    fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.command.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the command goes on");
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        self.command.kill().unwrap_or_default();
        self.command.wait().map(drop).unwrap_or_default();
        drop(Leftovers(self.shop));
    }
}

/// Asserts that the shop on this port sells.
fn assert_sells(port: u16) {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(b"?").unwrap();
    socket.read_exact(&mut [0]).unwrap();
}

/// Reasons for which experiments were discarded.
fn discarded(run: &Run) -> impl Iterator<Item = &str> {
    run.experiments.iter().filter_map(|it| it.discarded.as_deref())
}

fn end_of(run: &Run) -> &str {
    run.end.as_ref().map_or("", |end| &end.reason)
}

#[test]
fn services_outlive_a_killed_coordinator_a_killed_service_and_stops() {
    let shop = Shop::new("commands");
    a_killed_coordinator_ends_the_sessions_and_no_service(&shop);
    a_killed_main_program_ends_the_command_and_the_other_session(&shop);
    short_and_long_stops_of_a_service_discard_experiments_and_the_other_goes_on(&shop);
}

fn a_killed_coordinator_ends_the_sessions_and_no_service(shop: &Shop) {
    let mut held = Held::start(shop);
    kill(Pid::from_raw(held.command.id().cast_signed()), Signal::SIGKILL).unwrap();
    held.command.wait().unwrap();
    for profile in [held.profile(), held.profile_of_other()] {
        let run = await_run(&profile, |run| run.end.is_some());
        assert!(end_of(&run).contains("the coordinator"), "{:?}", run.end);
    }
    assert_sells(shop.port);
    assert_sells(held.other);
}

fn a_killed_main_program_ends_the_command_and_the_other_session(shop: &Shop) {
    let mut held = Held::start(shop);
    kill(held.pid(), Signal::SIGKILL).unwrap();
    assert_eq!(held.end().code(), Some(128 + Signal::SIGKILL as i32));
    let run = run_of(&held.profile_of_other()).unwrap();
    assert!(run.end.is_some(), "{run:?}");
    // A profile that was cut off holds the experiments that were written before.
    assert!(run_of(&held.profile()).unwrap().experiments.len() >= 3);
}

fn short_and_long_stops_of_a_service_discard_experiments_and_the_other_goes_on(shop: &Shop) {
    let mut held = Held::start(shop);
    let (stock, profile) = (held.pid_of_other(), held.profile());
    let stop = |time| {
        kill(stock, Signal::SIGSTOP).unwrap();
        sleep(time);
        kill(stock, Signal::SIGCONT).unwrap();
    };
    let is_told = |run: &Run| discarded(run).any(|it| it.contains("`stock`: the program did not"));
    // A stop between two experiments discards none.
    let was_hit = (0..TRIES).any(|_| {
        let before = run_of(&profile).unwrap().experiments.len();
        stop(Duration::from_millis(400));
        is_told(&await_run(&profile, |run| run.experiments.len() >= before + 2))
    });
    assert!(was_hit, "{:?}", run_of(&profile));

    stop(Duration::from_secs(5));
    let is_lost = |run: &Run| discarded(run).any(|it| it.contains("`stock` was lost"));
    let before = await_run(&profile, is_lost).experiments.len();
    await_run(&profile, |run| run.experiments.len() >= before + 2);
    let run = await_run(&held.profile_of_other(), |run| run.end.is_some());
    assert!(end_of(&run).contains("the coordinator"), "{:?}", run.end);
    assert_sells(held.other);
    kill(Pid::from_raw(held.command.id().cast_signed()), Signal::SIGTERM).unwrap();
    held.end();
    assert!(run_of(&profile).unwrap().end.is_some());
}

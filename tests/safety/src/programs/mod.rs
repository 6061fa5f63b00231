//! The programs, and what they share.

pub mod files;
pub mod forked_helper;
pub mod own_signal;
pub mod senders;
pub mod service;
pub mod sigwait;
pub mod stress;
pub mod syscalls;
pub mod teardown;
pub mod timeout;
pub mod unwrapped;
pub mod waker_panics;
pub mod wakes;

use andweorc::runtime::BuilderExt;
use andweorc::{Session, Settings};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Is the program of this name, with the arguments after it.
pub fn run(name: &str) {
    match name {
        "sync_sender" => wakes::sync_sender(),
        "two_runtimes" => wakes::two_runtimes(),
        "cpu_runtime" => wakes::cpu_runtime(),
        "wakes" => senders::main(),
        "service" => service::main(),
        "sigwait" => sigwait::main(),
        "unwrapped" => unwrapped::main(),
        "teardown" => teardown::main(),
        "waker_panics" => waker_panics::main(),
        "own_signal" => own_signal::main(),
        "files" => files::main(),
        "forked_helper" => forked_helper::main(),
        "timeout" => timeout::main(),
        "syscalls" => syscalls::main(),
        "stress" => stress::main(),
        other => panic!("no program {other}"),
    }
}

/// The argument after the program's name and `n` others, or `default`.
pub fn arg<T: std::str::FromStr>(n: usize, default: T) -> T {
    std::env::args().nth(3 + n).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The session of a program without `#[andweorc::main]`, when andweorc is on.
pub fn session() -> Option<Session> {
    let on = std::env::var_os("ANDWEORC_ENABLED").is_some();
    on.then(|| Session::start(Settings::from_env().expect("settings")).expect("session"))
}

pub fn spin(us: u64) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(us) {
        std::hint::spin_loop();
    }
}

/// The target of all experiments.
#[tracing::instrument]
pub async fn work() {
    spin(150);
    tokio::task::yield_now().await;
}

/// Works for ever, so that there is something to delay for.
pub async fn works() {
    loop {
        work().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        andweorc::progress!("done");
    }
}

pub fn multi_thread(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .enable_profiling()
        .build()
        .expect("runtime")
}

pub fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().enable_profiling().build().expect("runtime")
}

/// Prints what was measured, and ends the program without the destructors of what still runs.
pub fn report(text: String) -> ! {
    println!("{text}");
    std::process::exit(0)
}

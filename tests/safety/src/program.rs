//! The programs: `safety-program NAME [ARGUMENTS]`.

mod programs;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "sync_sender" => programs::wakes::sync_sender(),
        "two_runtimes" => programs::wakes::two_runtimes(),
        "cpu_runtime" => programs::wakes::cpu_runtime(),
        "wakes" => programs::senders::main(),
        "service" => programs::service::main(),
        "sigwait" => programs::sigwait::main(),
        "unwrapped" => programs::unwrapped::main(),
        "teardown" => programs::teardown::main(),
        "waker_panics" => programs::waker_panics::main(),
        "own_signal" => programs::own_signal::main(),
        "files" => programs::files::main(),
        "forked_helper" => programs::forked_helper::main(),
        "timeout" => programs::timeout::main(),
        "syscalls" => programs::syscalls::main(),
        "stress" => programs::stress::main(),
        other => panic!("no program {other}"),
    }
}

//! The kernel's account of another thread of the process.

use super::length::ThreadLook;
use crate::clock;
use crate::schedstat;
use crate::stall::stalled;
use crate::time::Real;
use std::fs;

/// Looks at a thread at `now`. `None` of one that is gone.
pub(super) fn look(tid: i32, now: Real) -> Option<ThreadLook> {
    let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
    Some(ThreadLook {
        at: now,
        cpu: clock::cpu_of_thread(tid)?,
        waited: schedstat::waited_of_thread(tid),
        is_asleep: is_asleep(&stat),
        stalled: stalled(),
    })
}

/// Whether a line of `/proc/self/task/TID/stat` is that of a thread that sleeps. Its name stands
/// before that, and may have brackets of its own.
fn is_asleep(stat: &str) -> bool {
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.bytes().next());
    matches!(state, Some(b'S' | b'D'))
}

/// The name of a system call that threads sleep in; of others their number.
pub(super) fn name_of_call(number: i64) -> String {
    const NAMES: [(libc::c_long, &str); 21] = [
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_read, "read"),
        (libc::SYS_pread64, "pread64"),
        (libc::SYS_readv, "readv"),
        (libc::SYS_write, "write"),
        (libc::SYS_pwrite64, "pwrite64"),
        (libc::SYS_writev, "writev"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_fdatasync, "fdatasync"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_flock, "flock"),
        (libc::SYS_fcntl, "fcntl"),
        (libc::SYS_ppoll, "ppoll"),
        (libc::SYS_connect, "connect"),
        (libc::SYS_accept4, "accept4"),
        (libc::SYS_recvfrom, "recvfrom"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_sendto, "sendto"),
        (libc::SYS_wait4, "wait4"),
    ];
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("system call {number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_of_a_thread_is_read_behind_its_name() {
        assert!(is_asleep("71 (tokio (rt) x) S 1 71 0"));
        assert!(is_asleep("71 (a) D 1 71 0"));
        assert!(!is_asleep("71 (a S) R 1 71 0"));
        assert!(!is_asleep(""));
    }

    #[test]
    fn calls_have_their_names() {
        assert_eq!(name_of_call(libc::SYS_futex), "futex");
        assert_eq!(name_of_call(99_999), "system call 99999");
    }
}

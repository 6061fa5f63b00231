//! The kernel's account of another thread of the process.

use super::length::ThreadLook;
use crate::clock;
use crate::proc_stat;
use crate::schedstat;
use crate::stall::stalled;
use crate::time::Real;

/// Looks at a thread at `now`. `None` of one that is gone.
pub(super) fn look(tid: i32, now: Real) -> Option<ThreadLook> {
    Some(ThreadLook {
        at: now,
        cpu: clock::cpu_of_thread(tid)?,
        waited: schedstat::waited_of_thread(tid),
        is_asleep: proc_stat::is_asleep(tid)?,
        stalled: stalled(),
    })
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
    fn calls_have_their_names() {
        assert_eq!(name_of_call(libc::SYS_futex), "futex");
        assert_eq!(name_of_call(99_999), "system call 99999");
    }
}

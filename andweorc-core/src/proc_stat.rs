//! State of another thread of the process, as the kernel tells it.

use std::fs;

/// Whether a thread sleeps, in a system call or a page fault. `None` of one that is gone, and where
/// the kernel does not tell.
pub(crate) fn is_asleep(tid: i32) -> Option<bool> {
    says_asleep(&fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?)
}

/// Whether a line of `/proc/self/task/TID/stat` is that of a thread that sleeps. Its name stands
/// before that, and may have brackets of its own.
fn says_asleep(stat: &str) -> Option<bool> {
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.bytes().next())?;
    Some(matches!(state, b'S' | b'D'))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn state_of_a_thread_is_read_behind_its_name() {
        assert_eq!(says_asleep("71 (tokio (rt) x) S 1 71 0"), Some(true));
        assert_eq!(says_asleep("71 (a) D 1 71 0"), Some(true));
        assert_eq!(says_asleep("71 (a S) R 1 71 0"), Some(false));
        assert_eq!(says_asleep(""), None);
    }

    #[test]
    fn thread_that_waits_sleeps_and_one_that_asks_does_not() {
        let (told, tid) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            told.send(nix::unistd::gettid().as_raw()).unwrap();
            ended.recv().unwrap_err();
        });
        let tid = tid.recv().unwrap();
        while is_asleep(tid) != Some(true) {
            std::thread::yield_now();
        }
        assert_eq!(is_asleep(nix::unistd::gettid().as_raw()), Some(false));
        drop(end);
        sleeper.join().unwrap();
        assert_eq!(is_asleep(tid), None);
    }
}

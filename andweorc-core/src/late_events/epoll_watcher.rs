//! A thread that the kernel tells at once when input comes for the program's sockets, while the
//! workers that wait for it are busy.
//!
//! It has an epoll of its own in which it puts the sockets and pipes that are in the others of this
//! process, those of its runtimes, as /proc/self/fdinfo lists them. It hears of input after the
//! worker that sleeps for it ([`Wakes`]): woken before, it would have the processor on which that
//! one is to run. Edge-triggered, and input only: that there is room to write again is no news for
//! who waits for an answer (a Unix socket says so whenever the other side has read something). A
//! socket that is closed leaves by itself.
//!
//! It works while an experiment is held, baselines too, so that what it costs is on both sides of a
//! comparison: 12 to 16 us of processor time for each input on a virtual machine. Where input comes
//! faster than [`MAX_READY`] in [`WITHIN`], where too little of it is [used](MIN_USED), or there
//! are more than [`MAX_FILES`], it rests for a while, and when something came is a guess, as it is
//! of timers, of sockets that were opened since it last [listed](LISTS) them, and where /proc can't
//! be read.
//!
//! While it waits for a processor, input waits for it: the kernel tells how long that was, and so
//! from when on it came. (Roughly: on Linux 6.18 the fair scheduler often counts 15 to 100 us more
//! than passed since the write that woke it.) So it need not [interrupt](interrupts_nobody) a
//! worker, of whose time some 10 us went to that for each request of a service whose workers hold a
//! lock in turns.

use super::ReadinessLog;
use crate::background_thread::BackgroundThread;
use crate::clock;
use crate::schedstat::Schedstat;
use crate::time::{Nanos, Real};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent};
use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Name of the thread.
const NAME: &str = "andweorc-input";

/// Milliseconds within which the thread hears that it is to stop.
const TURN_MS: u8 = 20;

/// How often it lists the sockets.
const LISTS: Nanos = Nanos::from_millis(1000);

/// Number of sockets that the thread is told of at once, at most.
const NEWS: usize = 64;

/// Time within which the thread comes back to its work: after longer it has not worked for a while.
const PAUSE: Nanos = Nanos::from_millis(5);

/// Number of wake-ups for which the thread rests if they all come within [`WITHIN`].
const MAX_READY: u32 = 200;

/// Time within which [`MAX_READY`] wake-ups make the thread rest: as often takes one processor in
/// forty.
const WITHIN: Nanos = Nanos::from_millis(40);

/// Number of inputs, of those for which the thread woke up [`MAX_READY`] times, that must have told
/// when something came, or it rests: where a worker sleeps in the driver most of the time, that one
/// notices by itself.
const MIN_USED: usize = MAX_READY as usize / 20;

/// Number that takes the place of [`MIN_USED`] where the thread waits for a processor each time,
/// [so long](LATE) on average, and takes it from a worker then: where input comes much faster than
/// it is let run it tells of little.
const MIN_USED_LATE: usize = MAX_READY as usize / 4;

/// See [`MIN_USED_LATE`].
const LATE: Nanos = Nanos::from_millis(1);

/// Number of open files above which the thread rests: while the kernel lists what an epoll watches,
/// nobody else can look into that.
const MAX_FILES: usize = 1000;

/// Length of the first rest. Each one after it is twice as long while the cause goes on, up to
/// [`MAX_REST`].
const MIN_REST: Nanos = Nanos::from_millis(1000);

/// Length of a rest at most.
const MAX_REST: Nanos = Nanos::from_millis(30_000);

/// A thread that counts `inputs` while it is told to. Without an epoll of its own there are none.
pub(crate) fn epoll_watcher(inputs: &'static ReadinessLog) -> BackgroundThread {
    BackgroundThread::start(NAME, move || {
        interrupts_nobody();
        let mut watch = EpollWatcher::new(inputs).ok();
        move || match &mut watch {
            Some(watch) => watch.turn(),
            None => Duration::MAX,
        }
    })
}

/// The calling thread, woken up, waits until a processor is free or its turn comes, and has its
/// part of the time as before. Anybody may ask for that; where it is refused the thread goes on as
/// others do. One to which somebody gave another priority keeps it.
fn interrupts_nobody() {
    // SAFETY: takes plain numbers. All zeros are a valid `sched_param`, of which the kernel reads
    // no more than it.
    unsafe {
        if libc::sched_getscheduler(0) == libc::SCHED_OTHER {
            let param: libc::sched_param = mem::zeroed();
            libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const param);
        }
    }
}

struct EpollWatcher {
    inputs: &'static ReadinessLog,
    epoll: Epoll,
    schedstat: Schedstat,
    /// How long it had waited for processors when that was last asked.
    waited: Nanos,
    /// When it listed the sockets last.
    listed: Option<Real>,
    /// When it was last at work.
    worked: Real,
    rests_until: Real,
    /// And for how long next.
    rest: Nanos,
    /// Since when it counts how often it wakes up, and how many inputs had been used by then.
    since: Real,
    used: usize,
    wakes: u32,
    /// For how long it waited for a processor since then.
    late: Nanos,
}

impl EpollWatcher {
    fn new(inputs: &'static ReadinessLog) -> nix::Result<EpollWatcher> {
        let now = clock::now();
        Ok(EpollWatcher {
            inputs,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            schedstat: Schedstat::new(),
            waited: Nanos::ZERO,
            listed: None,
            worked: now,
            rests_until: now,
            rest: MIN_REST,
            since: now,
            used: 0,
            wakes: 0,
            late: Nanos::ZERO,
        })
    }

    /// Works, unless it rests, and says for how long it rests then. In the next experiment it may
    /// be told to work anew before that is over.
    fn turn(&mut self) -> Duration {
        if self.pause().is_zero() {
            self.work();
        }
        self.pause()
    }

    fn work(&mut self) {
        let now = clock::now();
        let lists = self.listed.is_none_or(|listed| now - listed > LISTS);
        if lists {
            self.listed = Some(now);
            if !self.list() {
                return self.rest(now);
            }
        }
        if lists || now - self.worked > PAUSE {
            // What is there already came at any time.
            (0..MAX_FILES / NEWS + 1).take_while(|_| self.news(0) > 0).for_each(drop);
        }
        self.worked = clock::now();
        let news = self.news(TURN_MS);
        let now = clock::now();
        // Asked every time: what it waited for before is no concern of what comes next.
        let waited = self.waited();
        if news > 0 {
            self.count(news, (now - waited).max(self.worked), now);
            self.pace(waited, now);
        }
        self.worked = now;
    }

    /// How many sockets something came for, which is now known; waits for it so long.
    fn news(&mut self, ms: u8) -> usize {
        let mut events = [EpollEvent::empty(); NEWS];
        match self.epoll.wait(&mut events, ms) {
            Ok(news) => news,
            // By a signal.
            Err(Errno::EINTR) => 0,
            // Whoever closes all files, as daemons do, closes this one too.
            Err(_) => {
                self.rest(clock::now());
                0
            }
        }
    }

    /// For how long it rests from now on. To wake up in between would take 16 us of a busy worker,
    /// and of each request that is under way.
    fn pause(&self) -> Duration {
        Duration::from_nanos((self.rests_until - clock::now()).0.max(0) as u64)
    }

    fn rest(&mut self, now: Real) {
        self.rests_until = now + self.rest;
        self.rest = (self.rest + self.rest).min(MAX_REST);
    }

    /// For how long it has waited for a processor since this was last asked.
    fn waited(&mut self) -> Nanos {
        let waited = self.schedstat.waited().unwrap_or(self.waited);
        waited - mem::replace(&mut self.waited, waited)
    }

    /// So many have come, the first one at `first`, and the others until `now`.
    fn count(&self, news: usize, first: Real, now: Real) {
        let (news, took) = (news as i64, now - first);
        for n in 0..news {
            // Each at a time of its own.
            self.inputs.record(first + Nanos(took.0 * n / news + n));
        }
    }

    /// Counts that the thread woke up at `now`, having `waited` for a processor; if it does so too
    /// often, or for nothing, it rests.
    fn pace(&mut self, waited: Nanos, now: Real) {
        if self.wakes == 0 {
            (self.since, self.used, self.late) = (now, self.inputs.used(), Nanos::ZERO);
        }
        self.wakes += 1;
        self.late += waited;
        if self.wakes <= MAX_READY {
            return;
        }
        self.wakes = 0;
        let is_late = self.late > Nanos(LATE.0 * i64::from(MAX_READY));
        let least = if is_late { MIN_USED_LATE } else { MIN_USED };
        let is_of_use = self.inputs.used().wrapping_sub(self.used) >= least;
        if now - self.since < WITHIN || !is_of_use {
            self.rest(now);
        } else {
            self.rest = MIN_REST;
        }
    }

    /// Puts all sockets and pipes in its epoll that are not there yet, if that is to be had. Says
    /// whether it is.
    fn list(&self) -> bool {
        let Ok(files) = open_files() else { return false };
        if files.len() > MAX_FILES {
            return false;
        }
        let own = self.epoll.0.as_raw_fd();
        let epolls = files
            .into_iter()
            .filter(|&fd| fd != own && is_called(fd, |name| name == b"anon_inode:[eventpoll]"));
        for (fd, wakes) in epolls.flat_map(watched_by) {
            if is_called(fd, |name| name.starts_with(b"socket:")) {
                self.add(fd, if is_stream(fd) { wakes } else { Wakes::Among });
            } else if is_called(fd, |name| name.starts_with(b"pipe:")) {
                self.add(fd, Wakes::Among);
            }
        }
        true
    }

    /// Puts one in its epoll, unless it is there.
    fn add(&self, fd: RawFd, wakes: Wakes) {
        let events = match wakes {
            Wakes::Last => libc::EPOLLIN | libc::EPOLLET | libc::EPOLLEXCLUSIVE,
            Wakes::Among => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET,
        };
        let mut event = libc::epoll_event { events: events as u32, u64: 0 };
        // SAFETY: takes plain numbers and an event that lives as long as the call. If the file was
        // closed meanwhile, or the number is another one's now, the kernel says so, or tells of
        // that one.
        unsafe {
            libc::epoll_ctl(self.epoll.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event);
        }
    }
}

impl Drop for EpollWatcher {
    fn drop(&mut self) {
        self.schedstat.close();
    }
}

/// The open files of this process; one more than [too many](MAX_FILES) at most.
fn open_files() -> io::Result<Vec<RawFd>> {
    let files = fs::read_dir("/proc/self/fd")?;
    let numbers = files.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.take(MAX_FILES + 1).collect())
}

/// Whether an open file is called so.
fn is_called(fd: RawFd, so: impl Fn(&[u8]) -> bool) -> bool {
    let name = fs::read_link(format!("/proc/self/fd/{fd}"));
    name.is_ok_and(|name| so(name.as_os_str().as_bytes()))
}

/// When the thread is woken by a socket that others wait for too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wakes {
    /// After all of them. Who asks for that (`EPOLLEXCLUSIVE`) is woken in the place of others who
    /// do, behind it in the socket's queue: only where nobody does.
    Last,
    /// The last who came is woken first.
    Among,
}

/// Whether a socket is a connection. All who wait to read from one are woken, where of those who
/// wait for a datagram, or for somebody who connects, one is.
fn is_stream(fd: RawFd) -> bool {
    let option = |name| {
        let (mut value, mut size) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the kernel writes no more than `size` bytes to `value`, which has as many, and
        // how many these are to `size`. It refuses what is no socket.
        let found = unsafe {
            let value = (&raw mut value).cast();
            libc::getsockopt(fd, libc::SOL_SOCKET, name, value, &raw mut size)
        };
        (found == 0).then_some(value)
    };
    option(libc::SO_TYPE) == Some(libc::SOCK_STREAM) && option(libc::SO_ACCEPTCONN) == Some(0)
}

/// The files that an epoll watches, and when a thread that watches them too may be woken; none if
/// it is no epoll any more.
fn watched_by(epoll: RawFd) -> Vec<(RawFd, Wakes)> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{epoll}")).unwrap_or_default();
    // "tfd:        5 events:       1d data: ..."
    let watched = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let fd = words.next()?.parse().ok()?;
        let events = words.nth(1).and_then(|events| u32::from_str_radix(events, 16).ok());
        let alone = events.is_some_and(|events| events & libc::EPOLLEXCLUSIVE as u32 == 0);
        Some((fd, if alone { Wakes::Last } else { Wakes::Among }))
    };
    info.lines().filter_map(watched).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use nix::sys::epoll::EpollFlags;
    use std::io::{Read, Write};
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Instant;

    /// Input may count as come by so much before it did.
    const EARLY: Nanos = Nanos::from_millis(5);

    /// Waits until it is so.
    fn until(what: &str, mut so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !so() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn input_for_a_watched_socket_is_noticed_when_it_comes() {
        static READINESS: ReadinessLog = ReadinessLog::new();
        let runtime = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (_others, mut unwatched) = UnixStream::pair().unwrap();
        let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        runtime.add(&ours, EpollEvent::new(both, 0)).unwrap();
        let watcher = epoll_watcher(&READINESS);
        let working = watcher.work();
        let write = |stream: &mut UnixStream| {
            // So that there is room.
            while (&ours).read(&mut [0; 64]).is_ok() {}
            let before = clock::now();
            stream.write_all(&[1]).unwrap();
            before
        };
        // Whatever came before, did so 20 ms or more ago.
        let came = |after| READINESS.first(after - EARLY, clock::now());
        // Until it has listed it, nothing is noticed.
        until("the socket is not watched", || {
            let before = write(&mut theirs.try_clone().unwrap());
            thread::sleep(Duration::from_millis(20));
            came(before).is_some()
        });
        thread::sleep(Duration::from_millis(20));
        let before = write(&mut theirs);
        until("input is not noticed", || came(before).is_some());

        thread::sleep(Duration::from_millis(20));
        let before = write(&mut unwatched);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(came(before), None, "nobody waits for that");

        // What comes between experiments came at any time. It may still be at work, on a machine
        // that has no time for it.
        drop(working);
        let forgotten = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(100));
            let before = write(&mut theirs);
            let working = watcher.work();
            until("it does not work again", || came(write(&mut theirs)).is_some());
            drop(working);
            READINESS.first(before, before + Nanos::from_millis(1)).is_none()
        });
        assert!(forgotten);
    }

    #[test]
    fn watcher_takes_no_wake_from_a_worker() {
        let (connection, _other_side) = UnixStream::pair().unwrap();
        let other = |kind| {
            // SAFETY: takes plain numbers.
            let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
            assert!(fd >= 0);
            // SAFETY: it is a new file, which nobody else owns.
            unsafe { OwnedFd::from_raw_fd(fd) }
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (datagram, fresh) = (other(libc::SOCK_DGRAM), other(libc::SOCK_STREAM));
        let file = fs::File::open("/dev/null").unwrap();
        assert!(is_stream(connection.as_raw_fd()) && is_stream(fresh.as_raw_fd()));
        assert!(!is_stream(listener.as_raw_fd()) && !is_stream(datagram.as_raw_fd()));
        assert!(!is_stream(file.as_raw_fd()));

        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        let plain = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&connection, EpollEvent::new(plain, 0)).unwrap();
        epoll.add(&fresh, EpollEvent::new(plain | EpollFlags::EPOLLEXCLUSIVE, 0)).unwrap();
        let mut watched = watched_by(epoll.0.as_raw_fd());
        let mut expected =
            vec![(connection.as_raw_fd(), Wakes::Last), (fresh.as_raw_fd(), Wakes::Among)];
        watched.sort_by_key(|it| it.0);
        expected.sort_by_key(|it| it.0);
        assert_eq!(watched, expected, "who asks to be woken alone keeps that");
    }

    /// How the kernel schedules a thread of this process; 0 for the calling one.
    fn policy(thread: i32) -> libc::c_int {
        // SAFETY: takes a plain number.
        unsafe { libc::sched_getscheduler(thread) }
    }

    /// The watchers of this process: other tests have some too.
    fn watchers() -> Vec<i32> {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let is_one = |thread: &fs::DirEntry| {
            // It may have ended by now.
            fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == NAME)
        };
        threads.filter(is_one).filter_map(|it| it.file_name().to_str()?.parse().ok()).collect()
    }

    #[test]
    fn watcher_runs_under_batch_scheduling() {
        static READINESS: ReadinessLog = ReadinessLog::new();
        if policy(0) != libc::SCHED_OTHER {
            return println!("skipped: the tests were given a priority");
        }
        let _watcher = epoll_watcher(&READINESS);
        let stands_back = |watcher: i32| policy(watcher) == libc::SCHED_BATCH;
        until("it interrupts others", || watchers().into_iter().any(stands_back));
    }

    #[test]
    fn thread_given_a_priority_keeps_it() {
        let policies = thread::spawn(|| {
            // SAFETY: as in `interrupts_nobody`.
            let set = unsafe {
                let param: libc::sched_param = mem::zeroed();
                libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param)
            };
            interrupts_nobody();
            (set, policy(0))
        });
        assert_eq!(policies.join().unwrap(), (0, libc::SCHED_IDLE));
    }

    #[test]
    fn inputs_during_a_processor_wait_are_spread_over_it() {
        static READINESS: ReadinessLog = ReadinessLog::new();
        let watch = EpollWatcher::new(&READINESS).unwrap();
        watch.count(4, Real(1000), Real(1400));
        let mut came = Vec::new();
        let mut last = Real(0);
        while let Some(at) = READINESS.first(last, Real(i64::MAX)) {
            came.push(at.0);
            last = at;
        }
        assert_eq!(came, [1000, 1101, 1202, 1303]);
    }

    #[test]
    fn where_input_comes_too_fast_or_for_nothing_it_rests() {
        static READINESS: ReadinessLog = ReadinessLog::new();
        let mut watch = EpollWatcher::new(&READINESS).unwrap();
        let mut now = watch.since;
        let mut rests_if = |late: Nanos, every: i64, used: usize| {
            now = now.max(watch.rests_until) + Nanos::from_millis(3);
            for n in 0..=MAX_READY as usize {
                watch.pace(late, now + Nanos::from_micros(every * n as i64));
                if n < used {
                    READINESS.count_use();
                }
            }
            now = now + Nanos::from_micros(every * i64::from(MAX_READY));
            (watch.rests_until - now).max(Nanos::ZERO)
        };
        let mut rests_if_used = |late, used| rests_if(late, 2000, used);
        assert_eq!(rests_if_used(LATE, MIN_USED_LATE), Nanos::ZERO);
        assert_eq!(rests_if_used(LATE, MIN_USED_LATE - 1), MIN_REST);
        let in_time = LATE - Nanos::from_micros(100);
        assert_eq!(rests_if_used(in_time, MIN_USED), Nanos::ZERO);
        assert_eq!(rests_if_used(in_time, MIN_USED - 1), MIN_REST);
        let mut rests = |every| rests_if(Nanos::ZERO, every, MAX_READY as usize);
        assert_eq!(rests(200), Nanos::ZERO);
        assert_eq!(rests(199), MIN_REST);
        assert_eq!(rests(100), MIN_REST + MIN_REST, "that goes on");
        assert_eq!((0..10).map(|_| rests(100)).last(), Some(MAX_REST));
        assert_eq!(rests(200), Nanos::ZERO);
        assert_eq!(rests(100), MIN_REST);
    }

    #[test]
    fn resting_watcher_does_not_list_sockets() {
        static READINESS: ReadinessLog = ReadinessLog::new();
        let mut watch = EpollWatcher::new(&READINESS).unwrap();
        let listed = |watch: &EpollWatcher| watch.listed.is_some();
        watch.rests_until = clock::now() + Nanos::from_millis(3_600_000);
        assert!(watch.turn() > Duration::from_secs(1800));
        assert!(!listed(&watch));
        watch.rests_until = clock::now();
        // It may find too many files, and rest for that.
        watch.turn();
        assert!(listed(&watch));
    }
}

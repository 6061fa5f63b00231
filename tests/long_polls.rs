//! Long polls, as a run finds them in a program whose polls are known: one that sleeps, one that
//! computes, one of the blocking pool, and short ones.

use andweorc::{Session, Settings, task};
use andweorc_profile::{LongPoll, Profile, Run};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;

/// Length of a long poll, of which a slow machine runs some in a second too.
const LONG: Duration = Duration::from_millis(100);

/// A poll is long from this on.
const THRESHOLD: Duration = Duration::from_millis(30);

/// CPU time of the calling thread.
fn cpu() -> Duration {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    Duration::new(now.tv_sec() as u64, now.tv_nsec() as u32)
}

/// Calls nothing for most of the time: where it is is known without frame pointers.
#[inline(never)]
fn compute() {
    let until = cpu() + LONG;
    while cpu() < until {
        let mut left = std::hint::black_box(300_000_u32);
        while left > 0 {
            left -= 1;
        }
    }
}

/// Sleeps in a system call that SA_RESTART does not restart.
fn sleep_in_ppoll() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: LONG.as_nanos() as libc::c_long };
    // SAFETY: there are no descriptors, and no signal mask.
    let result = unsafe { libc::ppoll(ptr::null_mut(), 0, &raw const time, ptr::null()) };
    INTERRUPTED.fetch_add(u32::from(result != 0), Ordering::SeqCst);
}

/// How often a signal ended it.
static INTERRUPTED: AtomicU32 = AtomicU32::new(0);

/// So many polls are watched. The first may begin before the session looks for them.
const ENOUGH: u32 = 6;

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Held by a test: there is one session at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Polls like this until the session is over, and counts the polls.
async fn again(poll: impl Fn(), polls: &'static AtomicU32) {
    while !IS_OVER.load(Ordering::SeqCst) {
        poll();
        polls.fetch_add(1, Ordering::SeqCst);
        task::yield_now().await;
    }
}

/// Runs a session while these tasks run, until all of `polls` are enough. No point is hit, so that
/// it goes on to observe, and holds no experiments, in which threads are told to pay.
fn run(spawn: impl FnOnce() -> Vec<JoinHandle<()>>, polls: &[&AtomicU32]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    let profile = folder.path().join("polls.jsonl");
    settings.out = Some(profile.clone());
    settings.duration = Duration::from_secs(3600);
    settings.long_poll = Some(THRESHOLD);
    let runtime = Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    IS_OVER.store(false, Ordering::SeqCst);
    let session = Session::start(settings).unwrap();
    let _runs = runtime.enter();
    let tasks = spawn();
    while polls.iter().any(|polls| polls.load(Ordering::SeqCst) < ENOUGH) {
        std::thread::sleep(Duration::from_millis(1));
    }
    session.finish("enough");
    IS_OVER.store(true, Ordering::SeqCst);
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    Profile::read(&profile).unwrap().runs.remove(0)
}

fn named(name: &'static str) -> task::Builder {
    task::Builder::new().name(name)
}

/// The long polls of the tasks of this name.
fn long_polls<'a>(run: &'a Run, name: &str) -> Vec<&'a LongPoll> {
    let is =
        |poll: &&LongPoll| run.targets.iter().any(|it| it.id == poll.target && it.name == name);
    run.long_polls[0].polls.iter().filter(is).collect()
}

#[test]
fn no_signal_ends_what_a_long_poll_sleeps_in() {
    static POLLS: AtomicU32 = AtomicU32::new(0);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let run = run(|| vec![named("polls").spawn(again(sleep_in_ppoll, &POLLS))], &[&POLLS]);
    assert!(run.experiments.is_empty(), "{:?}", run.experiments);
    let found = long_polls(&run, "polls");
    assert!(!found.is_empty(), "{:?} {:?}", run.long_polls, run.end);
    assert!(found.iter().all(|poll| poll.syscall.as_deref() == Some("ppoll")), "{found:?}");
    assert_eq!(INTERRUPTED.load(Ordering::SeqCst), 0);
}

#[test]
fn polls_that_sleep_or_compute_are_found_with_their_places() {
    static SLEEPS: AtomicU32 = AtomicU32::new(0);
    static COMPUTES: AtomicU32 = AtomicU32::new(0);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let spawn = || {
        let waits = async {
            while !IS_OVER.load(Ordering::SeqCst) {
                named("pooled").spawn_blocking(|| std::thread::sleep(LONG)).await.unwrap();
            }
        };
        let sleeps = named("sleeps").spawn(again(|| std::thread::sleep(LONG), &SLEEPS));
        let computes = named("computes").spawn(again(compute, &COMPUTES));
        vec![sleeps, computes, named("waits").spawn(waits)]
    };
    let run = run(spawn, &[&SLEEPS, &COMPUTES]);
    let [record] = &run.long_polls[..] else { panic!("{:?}", run.long_polls) };
    let of = |name| long_polls(&run, name);
    let (sleeps, computes) = (of("sleeps"), of("computes"));
    let longest = |polls: &[&LongPoll]| polls.iter().map(|it| it.longest_ns).max().unwrap_or(0);
    // A poll that goes on as the session ends is told as far as it was seen.
    let threshold = THRESHOLD.as_nanos() as u64;
    assert!(longest(&sleeps) >= threshold && longest(&computes) >= threshold, "{record:#?}");
    assert!(of("waits").is_empty() && of("pooled").is_empty());
    let asleep = |poll: &&LongPoll| poll.asleep == poll.count;
    assert!(sleeps.iter().all(asleep) && !computes.iter().any(asleep));
    assert!(sleeps.iter().all(|poll| poll.syscall.as_deref() == Some("clock_nanosleep")));
    let is_here = |poll: &&LongPoll| poll.file.as_deref() == Some(file!());
    let function = |poll: &&LongPoll| poll.function.clone().unwrap_or_default();
    assert!(
        computes.iter().any(|it| is_here(it) && function(it).ends_with("compute")),
        "{record:#?}"
    );
    // Of a thread that sleeps the place is known where its stack has frame records.
    for poll in sleeps.iter().filter(|poll| poll.function.is_some()) {
        assert!(is_here(poll), "{poll:?}");
    }
}

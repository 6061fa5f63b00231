//! The programs that the tests run, and the faults that they meet.

#[path = "work.rs"]
mod work;

use andweorc::__private::rt::runtime::Builder;
use andweorc::runtime::BuilderExt;
use andweorc::{Profile as _, Session, Settings, Speedup, StartError};
use andweorc_core::experiment::{Experimenter, Outcome, Phases};
use andweorc_core::symbols::Symbols;
use andweorc_core::target::target;
use andweorc_core::thread::ledger;
use andweorc_core::time::Nanos;
use andweorc_core::{clock, enabled, sampler};
use andweorc_profile::{
    ExperimentRecord, Header, NoteRecord, Profile, Record, Run, TargetKind, TargetRecord, Writer,
};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::Path;
use std::process::{Command, abort, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};
use work::{
    PROFILE, experiments_began, profile, spin, work_for, work_until, work_until_experiments,
    work_until_held,
};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "SWITCH_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// Exit code of a child of fork that found all in order.
const CHILD_DONE: i32 = 8;

/// How long a program is stopped.
pub(crate) const STOP: Duration = Duration::from_secs(2);

/// Longer than the profiler watches before it begins to experiment.
const LONG: Duration = Duration::from_millis(1800);

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = std::env::var(PROGRAM) else { return };
    match program.as_str() {
        "target panics" => target_panics(),
        "main panics" => in_main(async {
            work_until_experiments().await;
            panic!("as meant");
        }),
        "aborts" => in_main(async {
            work_until_experiments().await;
            abort();
        }),
        "works" => in_main(work_for(LONG)),
        "small disk" => small_disk(),
        "small files" => small_files(),
        "no descriptors" => no_descriptors(),
        "waits untold" => waits_untold(),
        "is stopped" => is_stopped(),
        "gets stuck" => gets_stuck(),
        "saturates" => in_main(saturates()),
        "load comes late" => in_main(load_comes_late()),
        "forks" => in_main(forks()),
        "forks and returns" => forks_and_returns(),
        "execs" => in_main(async {
            work_until_experiments().await;
            let error = again("works").env_remove("ANDWEORC_ENABLED").exec();
            panic!("{error}");
        }),
        "starts another" => in_main(starts_another()),
        "two sessions" => two_sessions(),
        "two runtimes, one session" => two_runtimes_one_session(),
        "two runtimes" => two_runtimes(),
        unknown => panic!("no program {unknown}"),
    }
    // The test harness has nothing more to say.
    exit(DONE);
}

/// Runs `root` as `#[andweorc::main(worker_threads = 2)]` does.
fn in_main(root: impl Future<Output = ()>) {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(root);
}

/// This program, to be run as another one.
fn again(program: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture", "--quiet"]).env(PROGRAM, program);
    command
}

/// Holds one experiment on `target`, 50 % faster, on a thread of its own; returns when it has
/// begun.
fn experiment(measure: Duration) -> JoinHandle<Option<ExperimentRecord>> {
    let held = thread::spawn(move || {
        let (warmup, cooldown) = (Duration::from_millis(1), Duration::from_millis(1));
        let target = target(TargetKind::Task, "target", None, None);
        let phases = Phases { warmup, measure, cooldown };
        let mut experimenter = Experimenter::new().expect("the only one in this process");
        experimenter.run(Some(target), Speedup::new(0.5).unwrap(), phases).record()
    });
    // A machine that stops the program may have ended it by then.
    while ledger().speedup() == Speedup::ZERO && !held.is_finished() {
        thread::yield_now();
    }
    held
}

fn owed() -> Nanos {
    ledger().global_delay(clock::now())
}

/// By how much D grows in the next 100 ms.
fn growth() -> Nanos {
    let before = owed();
    sleep(Duration::from_millis(100));
    owed() - before
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .enable_profiling()
        .build()
        .unwrap()
}

fn target_panics() {
    let in_one_experiment = || {
        let (held, before) = (experiment(Duration::from_secs(2)), owed());
        let runtime = tokio_runtime();
        runtime.block_on(async {
            let task = andweorc::task::Builder::new().name("target").spawn(async {
                spin(Duration::from_millis(10));
                panic!("as meant");
            });
            assert!(task.await.unwrap_err().is_panic());
        });
        let (saved, growth) = (owed() - before, growth());
        let goes_on = ledger().speedup() > Speedup::ZERO;
        let record = held.join().unwrap().unwrap();
        assert!(goes_on || record.discarded.as_deref().is_some_and(was_stopped), "{record:?}");
        goes_on.then_some((saved, growth))
    };
    // One that is ended since the machine stopped the program says nothing.
    let seen = (0..TRIES).find_map(|_| in_one_experiment());
    let (saved, growth) = seen.expect("still in mid-experiment");
    println!("saved_ms={}", saved.0 as f64 / 1e6);
    println!("growth_ns={}", growth.0);
}

fn note(text: &str) -> Record {
    Record::Note(NoteRecord::new(0, text))
}

/// The limit on file sizes is a disk that is full in the middle of a line, and not any more.
fn small_disk() {
    // SAFETY: the disposition has no handler.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
    let (_, most) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    let path = Path::new("small.jsonl");
    let mut writer = Writer::create(path).unwrap();
    writer.write(&Record::Header(Header::new("faults")));
    let room = |bytes: u64| {
        let length = path.metadata().unwrap().len();
        setrlimit(Resource::RLIMIT_FSIZE, length + bytes, most).unwrap();
    };
    room(40);
    writer.write(&note(&"x".repeat(200)));
    let name = "described while the disk was full";
    writer.write(&Record::Target(TargetRecord::new(3, TargetKind::Task, name)));
    assert_eq!(writer.lost_records(), 2);
    room(100_000);
    let mut experiment = ExperimentRecord::new(0, 0, 1);
    (experiment.target, experiment.speedup) = (Some(3), 0.5);
    writer.write(&Record::Experiment(experiment));
    assert_eq!(writer.lost_records(), 1, "the note");
    let profile = Profile::read(path).unwrap_or_else(|error| panic!("{error}"));
    let run = &profile.runs[0];
    assert!(!run.torn && run.notes.is_empty());
    assert_eq!((run.targets.len(), run.experiments.len()), (1, 1));
}

/// Works under a limit on the size of files: a program that writes beyond it gets a SIGXFSZ, which
/// ends a program.
fn small_files() {
    let (_, most) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, 50, most).unwrap();
    in_main(work_for(LONG));
}

/// A thread that can't have a perf event is a participant all the same, and sampled by a timer.
fn no_descriptors() {
    let symbols = Symbols::of_this_program().unwrap();
    let sampling = sampler::Sampling::start(symbols, sampler::Event::default()).unwrap();
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 3, most).unwrap();
    thread::spawn(move || {
        andweorc_core::thread::register().unwrap();
        sampler::check().unwrap();
        let began = Instant::now();
        while sampling.take().samples == 0 {
            assert!(began.elapsed() < Duration::from_secs(30), "not one sample");
            spin(Duration::from_millis(10));
        }
    })
    .join()
    .unwrap();
    // Experiments go on without what /proc tells of the machine.
    let held = experiment(Duration::from_millis(100));
    let discarded = held.join().unwrap().unwrap().discarded;
    assert!(discarded.as_deref().is_none_or(was_stopped), "{discarded:?}");
}

/// All on one processor, where no file can be opened that tells who waited for it.
fn waits_untold() {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).unwrap();
    let first = (0..CpuSet::count()).find(|it| allowed.is_set(*it).unwrap()).unwrap();
    let mut only = CpuSet::new();
    only.set(first).unwrap();
    sched_setaffinity(this, &only).unwrap();
    in_main(async {
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 3, most).unwrap();
        work_until_held(3, 10 * LONG).await;
    });
}

fn is_stopped() {
    let held = experiment(Duration::from_secs(5));
    let runtime = tokio_runtime();
    let longest = Arc::new(AtomicU64::new(0));
    let gaps = Arc::clone(&longest);
    runtime.block_on(async move {
        andweorc::task::Builder::new().name("target").spawn(async {
            loop {
                spin(Duration::from_millis(20));
                tokio::task::yield_now().await;
            }
        });
        andweorc::spawn(async move {
            let mut last = Instant::now();
            loop {
                spin(Duration::from_micros(100));
                // Who slept for a debt when the program was stopped must not bring the stop into
                // the target.
                async { spin(Duration::from_micros(10)) }.profiled("target").await;
                let gap = last.elapsed().as_micros() as u64;
                last = Instant::now();
                gaps.fetch_max(gap, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        eprintln!("ready");
        tokio::task::spawn_blocking(move || {
            let record = held.join().unwrap().unwrap();
            println!("spoiled={}", record.discarded.unwrap_or_default());
        })
        .await
        .unwrap();
        // What would be paid late is paid by now.
        tokio::time::sleep(Duration::from_millis(500)).await;
    });
    println!("saved_ms={}", owed().0 as f64 / 1e6);
    println!("longest_gap_ms={}", longest.load(Ordering::SeqCst) as f64 / 1e3);
    exit(DONE);
}

/// Points are hit for a while, and then never again.
fn gets_stuck() {
    let until = Arc::new(AtomicU64::new(u64::MAX));
    let hits = Arc::clone(&until);
    let began = Instant::now();
    thread::spawn(move || {
        loop {
            if began.elapsed().as_millis() < hits.load(Ordering::SeqCst).into() {
                andweorc::progress!("unit");
            }
            sleep(Duration::from_millis(1));
        }
    });
    let target = target(TargetKind::Task, "target", None, None);
    let phases = |measure| Phases { warmup: Duration::ZERO, measure, cooldown: Duration::ZERO };
    let short = phases(Duration::from_millis(400));
    let mut experimenter = Experimenter::new().unwrap();
    let half = Speedup::new(0.5).unwrap();
    // On a busy machine the program itself may be stopped meanwhile: then once more.
    let discarded = (0..TRIES).find_map(|_| {
        until.store(u64::MAX, Ordering::SeqCst);
        let outcome = experimenter.run(None, Speedup::ZERO, short);
        let is_cut = matches!(outcome, Outcome::CutShort(..));
        if let Some(why) = outcome.record().unwrap().discarded {
            assert!(was_stopped(&why), "a baseline is not ended for anything else: {why}");
            return None;
        }
        assert!(!is_cut);
        until.store(began.elapsed().as_millis() as u64 + 300, Ordering::SeqCst);
        let long = phases(Duration::from_secs(50));
        let record = experimenter.run(Some(target), half, long).record().unwrap();
        record.discarded.filter(|why| !was_stopped(why))
    });
    let discarded = discarded.expect("ended early");
    assert!(discarded.starts_with("no point was hit for "), "{discarded}");
    assert_eq!(growth(), Nanos::ZERO);
    // The next one is as any other.
    until.store(u64::MAX, Ordering::SeqCst);
    let next = experimenter.run(Some(target), half, short).record().unwrap();
    assert!(next.discarded.as_deref().is_none_or(was_stopped), "{next:?}");
    assert!(next.discarded.is_some() || next.points[0].count > 0, "{next:?}");
}

/// Experiments of which one must not be discarded by what else the machine does.
const TRIES: usize = 20;

/// Whether an experiment was discarded since the machine stopped the program, or was busy.
fn was_stopped(why: &str) -> bool {
    why.starts_with("the program did not run") || was_busy(why)
}

/// Whether it came to its end, on a machine that was busy meanwhile.
pub(crate) fn was_busy(why: &str) -> bool {
    ["other processes", "the machine stole", "the machine stood still", "a limit on processor time"]
        .iter()
        .any(|begin| why.starts_with(begin))
}

/// The target runs all the time, beside the work that counts.
async fn saturates() {
    let target = andweorc::task::Builder::new().name("target").spawn(async {
        loop {
            spin(Duration::from_micros(200));
            tokio::task::yield_now().await;
        }
    });
    let other = andweorc::spawn(async {
        loop {
            spin(Duration::from_micros(100));
            andweorc::progress!("unit");
            tokio::task::yield_now().await;
        }
    });
    tokio::time::sleep(3 * LONG).await;
    target.abort();
    other.abort();
}

/// Nothing to do for most of the first second, and then one processor full of work.
async fn load_comes_late() {
    // The session starts with the first task.
    let work = andweorc::spawn(async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        loop {
            spin(Duration::from_micros(500));
            andweorc::progress!("unit");
            tokio::task::yield_now().await;
        }
    });
    tokio::time::sleep(2 * LONG).await;
    work.abort();
}

/// Checks what a child of fork must find: nothing grows, nothing is owed, nothing is on.
fn check_child() {
    assert!(!enabled(), "off");
    assert_eq!(growth(), Nanos::ZERO);
    let began = Instant::now();
    for _ in 0..1000 {
        andweorc_core::thread::catch_up();
    }
    assert!(began.elapsed() < Duration::from_millis(500), "paid for {:?}", began.elapsed());
    let refused = Session::start(Settings::default()).unwrap_err();
    assert!(matches!(refused, StartError::Forked), "{refused}");
}

/// Forks. The child runs `child`, and exits with [`CHILD_DONE`] when that does not panic.
fn fork_child(child: fn()) -> nix::unistd::Pid {
    // SAFETY: the child uses memory and threads as glibc lets it after a fork: its allocator is
    // whole.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let code = if panic::catch_unwind(child).is_ok() { CHILD_DONE } else { 1 };
            // SAFETY: ends the process without running anything of it.
            unsafe { libc::_exit(code) }
        }
    }
}

async fn forks() {
    let work = andweorc::spawn(work_for(Duration::MAX));
    experiments_began().await;
    for _ in 0..3 {
        let child = fork_child(check_child);
        let ended = tokio::task::spawn_blocking(move || waitpid(child, None).unwrap()).await;
        assert_eq!(ended.unwrap(), WaitStatus::Exited(child, CHILD_DONE));
    }
    // A child ends by the signals that andweorc handles in the parent.
    let child = fork_child(|| sleep(Duration::from_secs(30)));
    kill(child, Signal::SIGTERM).unwrap();
    let ended = tokio::task::spawn_blocking(move || waitpid(child, None).unwrap()).await;
    assert_eq!(ended.unwrap(), WaitStatus::Signaled(child, Signal::SIGTERM, false));
    work.abort();
}

fn forks_and_returns() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let forked = runtime.block_on(async {
        work_until_experiments().await;
        // SAFETY: as in `fork_child`.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => Some(child),
            ForkResult::Child => None,
        }
    });
    match forked {
        None => exit(CHILD_DONE),
        Some(child) => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, CHILD_DONE));
        }
    }
}

/// A program that was started by a profiled one inherits its settings, and with them the place of
/// its profile.
async fn starts_another() {
    let work = andweorc::spawn(work_for(Duration::MAX));
    experiments_began().await;
    let other = tokio::task::spawn_blocking(|| again("works").output().unwrap()).await.unwrap();
    let told = String::from_utf8(other.stderr).unwrap();
    assert_eq!(other.status.code(), Some(DONE), "{told}");
    assert!(told.contains("not profiling") && told.contains("another run writes to it"), "{told}");
    work.abort();
}

fn settings(out: &str, duration: Duration) -> Settings {
    let mut settings = Settings::default();
    settings.out = Some(out.into());
    settings.duration = duration;
    settings
}

fn two_sessions() {
    let first = Session::start(settings("first.jsonl", Duration::from_secs(2))).unwrap();
    for _ in 0..2 {
        let second = Session::start(settings("second.jsonl", Duration::from_secs(2))).unwrap_err();
        assert!(matches!(second, StartError::AlreadyRunning), "{second}");
    }
    assert!(!Path::new("second.jsonl").exists());
    tokio_runtime().block_on(work_for(LONG).profiled("main"));
    drop(first.wait());
    assert!(!Profile::read(Path::new("first.jsonl")).unwrap().runs[0].experiments.is_empty());
    // After it there may be another.
    drop(Session::start(settings("second.jsonl", Duration::from_secs(2))).unwrap());
    assert!(Path::new("second.jsonl").exists());
}

fn two_runtimes_one_session() {
    let session = Session::start(settings(PROFILE, Duration::from_secs(60))).unwrap();
    let first = tokio_runtime();
    first.block_on(work_until_experiments().profiled("main"));
    first.spawn(work_for(Duration::MAX).profiled("never ends"));
    drop(first);
    // The one that is held at the moment has begun before the second.
    let held = profile().unwrap().experiments.len() + 1;
    let go_on = |run: &Run| {
        let since = run.experiments.iter().skip(held);
        since.flat_map(|it| &it.points).any(|point| point.count > 0)
    };
    let second = tokio_runtime();
    second.block_on(work_until(go_on).profiled("main"));
    drop(session.finish("enough"));
    let run = profile().unwrap();
    assert_eq!(run.end.as_ref().unwrap().reason, "enough");
    assert!(go_on(&run), "experiments go on: {run:?}");
}

fn two_runtimes() {
    in_main(work_until_experiments());
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
        let work = andweorc::spawn(work_for(Duration::from_secs(1)));
        println!("growth_ns={}", growth().0);
        work.await.unwrap();
    });
}

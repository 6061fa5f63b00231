//! How many file descriptors a session holds for the program's threads. A process of its own, whose
//! limit is lowered.
#![cfg(not(loom))]

use andweorc_core::clock;
use andweorc_core::sampler::{check, probe};
use andweorc_core::session::Session;
use andweorc_core::settings::Settings;
use andweorc_core::thread::register;
use andweorc_core::time::Nanos;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Files that the process may have open.
const LIMIT: u64 = 100;

const MOST: usize = LIMIT as usize / 4;

const THREADS: usize = 2 * MOST;

/// Perf events that the process holds.
fn events() -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().contains("[perf_event]")).count()
}

/// Waits until it is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: {} events", events());
        sleep(Duration::from_millis(1));
    }
}

/// Has the threads end, also where the test fails.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

#[test]
fn sampling_holds_a_quarter_of_the_descriptors_at_most_and_idle_threads_hold_none() {
    if let Err(error) = probe() {
        return println!("skipped: {error}");
    }
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, LIMIT, most).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.out = Some(folder.path().join("profile.jsonl"));
    settings.duration = Duration::from_secs(600);
    settings.targets = vec!["lines".to_owned()];
    let session = Session::start(settings).unwrap();
    // The thread that takes the samples begins with an event of its own, for a moment.
    until("sampling has begun", || events() > 0);
    let (registered, works) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    scope(|scope| {
        let _ends = Ends(&works);
        for number in 0..THREADS {
            let (registered, works) = (&registered, &works);
            scope.spawn(move || {
                register().unwrap();
                check().unwrap();
                registered.fetch_add(1, Ordering::SeqCst);
                // The last one works when it is told so, and ends when all are.
                loop {
                    match works.load(Ordering::SeqCst) {
                        0 => break,
                        n if n == number => {
                            let begun = clock::now();
                            while clock::now() - begun < Nanos::from_millis(1) {}
                        }
                        _ => sleep(Duration::from_secs(2)),
                    }
                }
            });
        }
        until("all are there", || registered.load(Ordering::SeqCst) == THREADS);
        let held = events();
        assert!(0 < held && held <= MOST, "{held} of {MOST}");
        let list = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        assert!(list.contains("/proc/") && !list.contains("perf_event"), "{list}");
        until("all are idle", || events() == 0);
        works.store(THREADS - 1, Ordering::SeqCst);
        until("one is at work", || events() == 1);
    });
    let outcome = session.finish("seen");
    // The report breaks its lines at 80 columns.
    let report = outcome.report().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("a quarter of what the program may have, 25"), "{report}");
    assert_eq!(events(), 0);
}

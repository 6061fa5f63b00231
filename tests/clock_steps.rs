//! Steps of the wall clock change nothing. Alone in its process: here the wall clock is one that
//! steps by an hour, forth and back, whenever anybody reads it.

use andweorc::{Profile as _, Session, Settings};
use andweorc_profile::Profile;
use libc::{CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_TAI};
use libc::{c_int, clockid_t, timespec};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracing::{Instrument, info_span};
use tracing_subscriber::prelude::*;

const STEP: i64 = 3600;

/// How often the wall clock was read.
static READ: AtomicI64 = AtomicI64::new(0);

/// How often the clock was read that counts suspended time.
static BOOT: AtomicU64 = AtomicU64::new(0);

/// In the place of libc's, for this program and all crates in it.
///
/// # Safety
///
/// As libc's: `time` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the kernel writes one timespec to where the caller says that it may, or fails.
    let code = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) };
    match clock {
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_TAI if code == 0 => {
            let step = [STEP, -STEP, 0][READ.fetch_add(1, Ordering::SeqCst) as usize % 3];
            // SAFETY: as above, and the kernel has just written it.
            unsafe { (*time).tv_sec += step };
        }
        CLOCK_BOOTTIME => {
            BOOT.fetch_add(1, Ordering::SeqCst);
        }
        _ => {}
    }
    if code == 0 { 0 } else { -1 }
}

fn spin(us: u64) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(us) {
        std::hint::spin_loop();
    }
}

async fn request() {
    info_span!("work").in_scope(|| spin(300));
    tokio::time::sleep(Duration::from_millis(1)).await;
    info_span!("render").in_scope(|| spin(100));
}

#[test]
fn steps_of_the_wall_clock_change_nothing() {
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let read = [seconds(), seconds(), seconds()];
    assert!(read[0].abs_diff(read[1]) >= STEP as u64, "the clock steps: {read:?}");

    tracing_subscriber::registry().with(andweorc::layer()).init();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.jsonl");
    let mut settings = Settings::default();
    settings.out = Some(path.clone());
    settings.duration = Duration::from_secs(5);
    let began = Instant::now();
    let session = Session::start(settings).unwrap();
    let before = READ.load(Ordering::SeqCst);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(async {
        while !session.is_finished() && began.elapsed() < Duration::from_secs(30) {
            let request = request().instrument(info_span!("request"));
            tokio::spawn(request.profiled("request")).await.unwrap();
        }
    });
    drop(session.wait());
    let took = began.elapsed();
    // Who reads it is not andweorc, once it has written the header.
    assert_eq!(READ.load(Ordering::SeqCst), before, "the wall clock was read in the run");
    assert_eq!(BOOT.load(Ordering::SeqCst), 0, "suspended time was counted");

    let run = Profile::read(&path).unwrap().runs.remove(0);
    let end = run.end.unwrap();
    assert!(u128::from(end.real_ns) <= took.as_nanos() && end.real_ns > 2_000_000_000, "{end:?}");
    assert!(run.experiments.len() >= 4, "{:?}", run.experiments);
    let mut last = 0;
    for experiment in &run.experiments {
        assert!(experiment.start_ns > last, "{experiment:?}");
        last = experiment.start_ns + experiment.real_ns;
        assert!(last < end.real_ns && experiment.delay_ns < experiment.real_ns, "{experiment:?}");
        for point in &experiment.points {
            let longest = point.latency.last().map_or(0, |&(ns, _)| ns);
            assert!(longest < 5_000_000_000, "{experiment:?}");
        }
    }
    // What was used for the times above goes on while wall clocks step.
    let now = || {
        let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` may be written to.
        assert_eq!(unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) }, 0);
        (time.tv_sec, time.tv_nsec)
    };
    assert!(now() <= now());
}

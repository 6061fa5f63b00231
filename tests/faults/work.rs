//! Work of the programs until something befalls them.

use andweorc::Speedup;
use andweorc_core::thread::ledger;
use andweorc_profile::{Profile, Run};
use std::hint::spin_loop;
use std::path::Path;
use std::time::{Duration, Instant};

/// The profile of a program that begins its session itself.
pub(crate) const PROFILE: &str = "profile.jsonl";

/// How often a program looks into its profile.
const LOOK: Duration = Duration::from_millis(50);

/// Tasks of kind `target` beside others, for so long.
pub(crate) async fn work_for(time: Duration) {
    let began = Instant::now();
    work_while(|| began.elapsed() < time).await;
}

/// Runs tasks of kind `target` beside others until an experiment is written: when that is, only the
/// machine knows.
pub(crate) async fn work_until_experiments() {
    work_until(|run| !run.experiments.is_empty()).await;
}

/// Runs tasks of kind `target` beside others until `is` holds of this program's profile.
pub(crate) async fn work_until(is: impl Fn(&Run) -> bool) {
    let mut looked = Instant::now();
    work_while(|| {
        if looked.elapsed() < LOOK {
            return true;
        }
        let goes_on = !profile().is_some_and(|run| is(&run));
        looked = Instant::now();
        goes_on
    })
    .await;
}

/// Runs tasks of kind `target` beside others until so many experiments have been held, baselines
/// aside, or `most` of time has passed: for a program that can't read its profile.
pub(crate) async fn work_until_held(experiments: usize, most: Duration) {
    let (began, mut held, mut delays) = (Instant::now(), 0, false);
    work_while(|| {
        let before = std::mem::replace(&mut delays, ledger().speedup() > Speedup::ZERO);
        held += usize::from(before && !delays);
        held < experiments && began.elapsed() < most
    })
    .await;
}

/// Returns once an experiment is written.
pub(crate) async fn experiments_began() {
    while profile().is_none_or(|run| run.experiments.is_empty()) {
        tokio::time::sleep(LOOK).await;
    }
}

/// The profile of this program, as far as it is written.
pub(crate) fn profile() -> Option<Run> {
    let out = std::env::var_os("ANDWEORC_OUT").unwrap_or(PROFILE.into());
    Profile::read(Path::new(&out)).ok()?.runs.pop()
}

async fn work_while(mut goes_on: impl FnMut() -> bool) {
    while goes_on() {
        let target = andweorc::task::Builder::new().name("target").spawn(async {
            for _ in 0..5 {
                spin(Duration::from_micros(200));
                tokio::task::yield_now().await;
            }
        });
        let other = andweorc::spawn(async {
            spin(Duration::from_micros(300));
            andweorc::progress!("unit");
        });
        target.await.unwrap();
        other.await.unwrap();
    }
}

pub(crate) fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        spin_loop();
    }
}

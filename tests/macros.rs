//! `progress!`, `begin!`, `end!` and `#[andweorc::test]` in a process with andweorc on.

use andweorc_core::clock;
use andweorc_core::experiment::Experimenter;
use andweorc_core::point::{Importance, Point, points, unmatched};
use andweorc_core::thread::ledger;
use andweorc_core::time::Speedup;
use andweorc_profile::PointKind;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Switches andweorc on for this process, and holds a baseline, so that latencies are recorded.
static ON: LazyLock<Experimenter> = LazyLock::new(|| {
    let on = Experimenter::new().expect("the only one in this process");
    ledger().begin(Speedup::ZERO, clock::now());
    on
});

const WORK: Duration = Duration::from_millis(10);

fn all_named(name: &str) -> Vec<&'static Point> {
    points().into_iter().filter(|point| point.name() == name).collect()
}

fn the_point(name: &str) -> &'static Point {
    match all_named(name)[..] {
        [point] => point,
        ref all => panic!("points named {name}: {all:?}"),
    }
}

#[andweorc::test]
async fn progress_is_counted_by_name_wherever_it_is_made() {
    LazyLock::force(&ON);
    for _ in 0..3 {
        andweorc::progress!("served");
    }
    let task = andweorc::spawn(async { andweorc::progress!("served") });
    task.await.unwrap();
    let point = the_point("served");
    assert_eq!((point.kind(), point.count()), (PointKind::Progress, 4));
    assert_eq!(point.importance(), Importance::Explicit);
}

#[andweorc::test]
async fn progress_without_a_name_is_named_by_its_place() {
    LazyLock::force(&ON);
    let line = line!() + 2;
    for _ in 0..2 {
        andweorc::progress!();
    }
    andweorc::progress!();
    assert_eq!(the_point(&format!("{}:{line}", file!())).count(), 2);
    assert_eq!(the_point(&format!("{}:{}", file!(), line + 2)).count(), 1);
}

#[andweorc::test]
async fn an_interval_lasts_from_begin_to_end_and_nests() {
    LazyLock::force(&ON);
    andweorc::begin!("lookup");
    andweorc::begin!("lookup");
    thread::sleep(WORK);
    andweorc::end!("lookup");
    thread::sleep(WORK);
    andweorc::end!("lookup");
    let point = the_point("lookup");
    assert_eq!((point.kind(), point.count()), (PointKind::Latency, 2));
    let latencies = point.take_latencies();
    let work = WORK.as_nanos() as u64;
    assert!(latencies[0].0 >= work && latencies[1].0 >= 2 * work, "{latencies:?}");
}

#[andweorc::test]
async fn an_end_on_another_thread_is_unmatched() {
    LazyLock::force(&ON);
    andweorc::begin!("astray");
    let before = unmatched();
    thread::spawn(|| andweorc::end!("astray")).join().unwrap();
    assert_eq!(unmatched(), before + 1);
    assert_eq!(the_point("astray").count(), 0);
    andweorc::end!("astray");
    assert_eq!(the_point("astray").count(), 1);
}

#[test]
fn the_macros_are_expressions_without_a_value() {
    LazyLock::force(&ON);
    let name = |odd: bool| if odd { "odd" } else { "even" };
    for i in 0..4 {
        match i {
            0 => andweorc::progress!("first arm"),
            1 => andweorc::begin!("arm"),
            2 => andweorc::end!("arm"),
            _ => andweorc::progress!(name(true)),
        }
    }
    assert_eq!(["first arm", "arm", "odd"].map(|name| the_point(name).count()), [1, 1, 1]);
}

#[andweorc::test]
async fn a_test_has_one_thread_when_nothing_is_said() {
    assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::CurrentThread);
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[andweorc::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_has_as_many_workers_as_it_says() {
    assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::MultiThread);
    assert_eq!(Handle::current().metrics().num_workers(), 2);
    let tasks: Vec<_> = (0..10).map(|i| andweorc::spawn(async move { i })).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    assert_eq!(sum, 45);
}

#[andweorc::test(flavor = "local")]
async fn a_test_may_spawn_what_is_not_send() {
    let counted = std::rc::Rc::new(1);
    let task = tokio::task::spawn_local(async move { *counted });
    assert_eq!(task.await.unwrap(), 1);
}

#[andweorc::test(flavor = "local")]
#[should_panic(expected = "as it should")]
async fn a_test_of_a_local_runtime_may_panic() {
    panic!("as it should");
}

#[andweorc::test]
async fn a_test_may_return_a_result() -> Result<(), std::num::ParseIntError> {
    assert_eq!("7".parse::<u8>()?, 7);
    Ok(())
}

#[andweorc::test]
#[should_panic(expected = "as it should")]
async fn a_test_may_panic() {
    panic!("as it should");
}

#[cfg(feature = "test-util")]
#[andweorc::test(start_paused = true)]
async fn a_paused_clock_moves_by_itself() {
    let (real, paused) = (std::time::Instant::now(), tokio::time::Instant::now());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(paused.elapsed() >= Duration::from_secs(3600));
    assert!(real.elapsed() < Duration::from_secs(3600));
}

//! Waits of tasks and spans: by what they are ended, and as targets.

use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::target::{Target, target};
use andweorc_core::time::Speedup;
use andweorc_profile::{ExperimentRecord, TargetKind};
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::task;
use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tests_support::wakes::Waits;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, Semaphore};

/// One experiment at a time, whichever test it is for.
static EXPERIMENTER: LazyLock<Mutex<Experimenter>> =
    LazyLock::new(|| Mutex::new(Experimenter::new().expect("the only one in this process")));

fn runtime() -> Runtime {
    LazyLock::force(&EXPERIMENTER);
    Builder::new_multi_thread().worker_threads(2).enable_all().enable_profiling().build().unwrap()
}

fn spawn(name: &'static str, future: impl Future<Output = ()> + Send + 'static) {
    drop(task::Builder::new().name(name).spawn(future));
}

fn wait_of(name: &str) -> &'static Target {
    target(TargetKind::Wait, name, None, None)
}

fn hold(target: &Target, speedup: f64) -> ExperimentRecord {
    let phases = Phases::from_millis(50, 300, 20);
    let speedup = Speedup::new(speedup).unwrap();
    let mut experimenter = EXPERIMENTER.lock().unwrap_or_else(PoisonError::into_inner);
    experimenter.run(Some(target), speedup, phases).record().expect("nobody stops it")
}

const TIMER: Duration = Duration::from_millis(10);

#[test]
fn waits_are_told_apart_by_what_ends_them() {
    let runtime = runtime();
    runtime.block_on(async {
        let permits = Arc::new(Semaphore::new(0));
        let (permits_too, timer) = (permits.clone(), wait_of("waits: timer"));
        let waits: [Waits; 5] = Default::default();
        let told = waits.clone();
        spawn("waits: permit", async move {
            for waits in told {
                waits.told_by(permits_too.acquire()).await.unwrap().forget();
            }
        });
        let timers = task::Builder::new().name("waits: timer").spawn(async move {
            for waits in waits {
                // For as long as the other waits for it at least.
                waits.sleep().await;
                permits.add_permits(1);
            }
        });
        timers.await.unwrap();
        let [outside, by_task, _] = timer.waited_ns().unwrap();
        assert!(outside >= 4 * TIMER.as_nanos() as u64, "{outside}");
        assert_eq!(by_task, 0);
    });
    let permit = wait_of("waits: permit");
    while permit.count() < 5 {
        std::thread::yield_now();
    }
    let [outside, by_task, _] = permit.waited_ns().unwrap();
    assert!(by_task >= 4 * TIMER.as_nanos() as u64, "{by_task}");
    assert_eq!(outside, 0);
}

#[test]
fn one_that_yields_waits_in_the_run_queue() {
    let runtime = runtime();
    let yielding = |name: &'static str, known: bool| {
        let task = task::Builder::new().name(name).spawn_on(
            async move {
                for _ in 0..2000 {
                    match known {
                        true => task::yield_now().await,
                        false => tokio::task::yield_now().await,
                    }
                }
            },
            runtime.handle(),
        );
        runtime.block_on(task).unwrap();
        wait_of(name).waited_ns().unwrap()
    };
    let [outside, by_task, queue] = yielding("waits: yields", true);
    assert!(outside == 0 && by_task == 0 && queue > 0, "{outside} {by_task} {queue}");
    // Of these the first ones are not known to be yields.
    let [_, by_task, queue] = yielding("waits: tokio's yields", false);
    assert!(by_task == 0 && queue > 0, "{by_task} {queue}");
}

#[test]
fn one_that_yields_on_a_worker_that_never_parked_waits_in_the_run_queue() {
    for hooked in [true, false] {
        let mut builder = Builder::new_current_thread();
        if hooked {
            builder.enable_profiling();
        }
        let runtime = builder.build().unwrap();
        let name = if hooked { "waits: never parked" } else { "waits: no hooks" };
        // Where the machine stands still during a yield that is not known as one yet: once more.
        let known = (0..20).any(|_| {
            let before = wait_of(name).waited_ns().unwrap_or_default();
            runtime.block_on(async {
                let task = task::Builder::new().name(name).spawn(async {
                    for _ in 0..500 {
                        tokio::task::yield_now().await;
                    }
                });
                while !task.is_finished() {
                    tokio::task::yield_now().await;
                }
            });
            let [outside, by_task, queue] = wait_of(name).waited_ns().unwrap();
            assert_eq!(by_task, before[1]);
            outside - before[0] < (queue - before[2]) / 4
        });
        assert!(known, "{name}");
    }
}

#[test]
fn delay_grows_while_somebody_is_in_the_wait_that_is_the_target() {
    let runtime = runtime();
    let _guard = runtime.enter();
    for _ in 0..3 {
        spawn("waits: sleeper", async {
            loop {
                tokio::time::sleep(TIMER).await;
            }
        });
    }
    let share = |record: &ExperimentRecord| record.delay_ns as f64 / record.real_ns as f64;
    // What passes while the machine is too busy to run the program is not credited: then once more.
    let most = (0..20).map(|_| share(&hold(wait_of("waits: sleeper"), 0.4))).inspect(|grown| {
        assert!(*grown <= 0.41, "{grown}");
    });
    let mut grown = most.skip_while(|grown| *grown < 0.2);
    assert!(grown.next().is_some(), "it does not grow by 20 % of the time");
    let idle = hold(wait_of("waits: nobody"), 0.5);
    assert_eq!(idle.delay_ns, 0);
}

#[test]
fn a_wait_ends_with_the_task_that_is_in_it() {
    let runtime = runtime();
    let begun = Arc::new(Notify::new());
    let begin = Arc::clone(&begun);
    let waits = Waits::default();
    let told = waits.clone();
    let waiter = async move {
        told.told_by(begin.notified()).await;
        std::future::pending::<()>().await;
    };
    let waiter = task::Builder::new().name("waits: aborted").spawn_on(waiter, runtime.handle());
    // What was waited before the experiment does not count.
    runtime.block_on(waits.sleep());
    let (record, waited) = std::thread::scope(|scope| {
        let held = scope.spawn(|| hold(wait_of("waits: aborted"), 0.4));
        std::thread::sleep(Duration::from_millis(60));
        // From here on it waits within the experiment, until it is aborted.
        let begin = Instant::now();
        begun.notify_one();
        std::thread::sleep(Duration::from_millis(20));
        waiter.abort();
        assert!(runtime.block_on(waiter).unwrap_err().is_cancelled());
        let waited = begin.elapsed();
        (held.join().unwrap(), waited)
    });
    assert!(record.delay_ns as f64 <= 0.41 * waited.as_nanos() as f64, "{waited:?}: {record:?}");
}

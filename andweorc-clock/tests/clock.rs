//! The clock that a program reads while it is delayed.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]

use andweorc_clock as _;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::target::target;
use andweorc_core::time::{Real, Speedup};
use andweorc_core::{clock, own_thread, program_clock};
use andweorc_profile::{ExperimentRecord, TargetKind};
use andweorc_tokio::runtime::BuilderExt;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::MissedTickBehavior::{Burst, Delay, Skip};

/// One experiment at a time, whichever test it is for.
static EXPERIMENTER: LazyLock<Mutex<Experimenter>> =
    LazyLock::new(|| Mutex::new(Experimenter::new().expect("the only one in this process")));

/// Runs `act` while the whole program is delayed by half, by a target of this kind.
fn delayed_by<T: Send>(kind: TargetKind, act: impl FnOnce() -> T + Send) -> (T, ExperimentRecord) {
    let mut experimenter = EXPERIMENTER.lock().unwrap_or_else(PoisonError::into_inner);
    let target = target(kind, "clock", None, None);
    let before = program_clock::behind(clock::now());
    let ended = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let ends = ended.clone();
        let acting = scope.spawn(move || {
            while kind == TargetKind::Probe && program_clock::behind(clock::now()) == before {
                thread::yield_now();
            }
            let acted = act();
            ends.store(true, Ordering::SeqCst);
            acted
        });
        let phases = Phases::from_millis(20, 600, 20);
        let record = experimenter.run(Some(target), Speedup::new(0.5).unwrap(), phases).record();
        assert!(ended.load(Ordering::SeqCst), "the experiment lasts for as long");
        (acting.join().unwrap(), record.expect("nobody stops it"))
    })
}

fn delayed<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    delayed_by(TargetKind::Probe, act).0
}

/// How long something took in the program's time, and really.
fn time(act: impl FnOnce()) -> (Duration, Duration) {
    let (began, really) = (Instant::now(), clock::now());
    act();
    (began.elapsed(), (clock::now() - really).to_duration())
}

#[test]
fn instants_are_virtual_and_stay_behind() {
    let before = program_clock::behind(clock::now());
    let busy = || {
        time(|| {
            let began = clock::now();
            while clock::now() - began < andweorc_core::time::Nanos::from_millis(200) {}
        })
    };
    let (read, real) = delayed(busy);
    let share = read.as_secs_f64() / real.as_secs_f64();
    assert!((0.4..0.6).contains(&share), "{share}");
    let behind = program_clock::behind(clock::now()) - before;
    assert!(behind.to_duration() > real / 3, "{behind:?}");
    let _no_experiment = EXPERIMENTER.lock().unwrap_or_else(PoisonError::into_inner);
    let (read, real) = busy();
    let share = read.as_secs_f64() / real.as_secs_f64();
    assert!((0.99..1.01).contains(&share), "{share}");
}

#[test]
fn threads_of_andweorcs_own_read_real_time() {
    let (read, real) = delayed(|| {
        let own = own_thread::spawn("clock", || time(|| thread::sleep(Duration::from_millis(50))));
        own.unwrap().join().unwrap()
    });
    assert!(read.abs_diff(real) < Duration::from_millis(1), "{read:?} {real:?}");
}

#[test]
fn a_look_of_andweorcs_own_is_real_and_tells_nothing_of_the_driver() {
    let (passed, [untold, told]) = delayed(|| {
        let began = program_clock::by_real_time(Instant::now);
        thread::sleep(Duration::from_millis(20));
        let passed = program_clock::by_real_time(Instant::now) - began;
        // A driver that has events does so, and looks for timers after them.
        program_clock::driver_returned();
        program_clock::by_real_time(Instant::now);
        let untold = program_clock::noticed_a_timer();
        std::hint::black_box(Instant::now());
        (passed, [untold, program_clock::noticed_a_timer()])
    });
    assert!(passed >= Duration::from_millis(35), "{passed:?}: twice as long, by real time");
    assert!(!untold && told);
}

#[test]
fn while_a_wait_is_the_target_the_clock_is_as_fast_as_real_time() {
    let sleep = || time(|| thread::sleep(Duration::from_millis(50)));
    let ((read, real), _) = delayed_by(TargetKind::Wait, sleep);
    assert!(read.abs_diff(real) < Duration::from_millis(1), "{read:?} {real:?}");
}

#[test]
fn wait_with_a_deadline_is_in_virtual_time() {
    const WAIT: Duration = Duration::from_millis(20);
    let waits: [(&str, fn()); 5] = [
        ("sleep", || thread::sleep(WAIT)),
        ("park", || {
            let began = Instant::now();
            while began.elapsed() < WAIT {
                thread::park_timeout(WAIT - began.elapsed());
            }
        }),
        ("receive", || {
            let (_sender, receiver) = channel::<()>();
            assert_eq!(receiver.recv_timeout(WAIT), Err(RecvTimeoutError::Timeout));
        }),
        ("condvar", || {
            let lock = Mutex::new(());
            let waits = Condvar::new().wait_timeout_while(lock.lock().unwrap(), WAIT, |()| true);
            assert!(waits.unwrap().1.timed_out());
        }),
        ("parking_lot", || {
            let lock = parking_lot::Mutex::new(());
            let _locked = lock.lock();
            thread::scope(|scope| {
                scope.spawn(|| assert!(lock.try_lock_for(WAIT).is_none()));
            });
        }),
    ];
    for (name, wait) in waits {
        let (read, real) = delayed(|| time(wait));
        assert!(read >= WAIT && real > WAIT * 3 / 2, "{name}: {read:?} {real:?}");
        // The clock is behind by now, and the kernel's is not.
        let (read, real) = time(wait);
        assert!(read >= WAIT && real >= WAIT, "{name}, later: {read:?} {real:?}");
    }
}

#[test]
fn tokios_timers_go_off_in_virtual_time() {
    const TICK: Duration = Duration::from_millis(2);
    for missed in [Burst, Delay, Skip] {
        let (ticks, read) = delayed(|| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime =
                builder.worker_threads(1).enable_all().enable_profiling().build().unwrap();
            let ticking = andweorc_tokio::task::Builder::new().spawn_on(
                async move {
                    let mut ticks = tokio::time::interval(TICK);
                    ticks.set_missed_tick_behavior(missed);
                    ticks.tick().await;
                    let (began, mut ticked) = (Instant::now(), 0);
                    while began.elapsed() < TICK * 100 {
                        ticks.tick().await;
                        ticked += 1;
                    }
                    (ticked, began.elapsed())
                },
                runtime.handle(),
            );
            runtime.block_on(ticking).unwrap()
        });
        let expected = read.as_secs_f64() / TICK.as_secs_f64();
        // A tick that comes late moves those that follow, unless they come in a burst.
        let least = if missed == Burst { expected - 2.0 } else { expected / 2.0 };
        assert!((least..expected + 2.0).contains(&f64::from(ticks)), "{missed:?} {ticks}");
    }
}

#[test]
fn a_timeout_does_not_come_early() {
    let (read, real) = delayed(|| {
        time(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().enable_profiling().build().unwrap();
            runtime.block_on(async {
                let never = std::future::pending::<()>();
                tokio::time::timeout(Duration::from_millis(50), never).await.unwrap_err();
            });
        })
    });
    assert!(read >= Duration::from_millis(50), "{read:?}");
    assert!(real > Duration::from_millis(75), "{real:?}");
}

#[test]
fn the_clock_never_goes_back_on_any_thread() {
    let latest = Mutex::new(Instant::now());
    delayed(|| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let before = *latest.lock().unwrap();
                        let now = Instant::now();
                        assert!(now >= before);
                        let mut latest = latest.lock().unwrap();
                        *latest = now.max(*latest);
                    }
                });
            }
        });
    });
}

#[test]
fn readings_of_the_kernels_clock_are_real() {
    let apart = delayed(|| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` may be written to.
        unsafe { clock::c_clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        clock::now() - Real(program_clock::from_timespec(&time).0)
    });
    assert!(apart.to_duration() < Duration::from_millis(10), "{apart:?}");
}

#[test]
fn timers_are_told_from_sockets() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().enable_profiling().build().unwrap();
    let runtime = &runtime;
    let waited = |name: &'static str, waits: bool| {
        let act = move || {
            let (listener, asks) = (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), 20);
            let address = listener.local_addr().unwrap();
            // The world outside, as far as andweorc knows: it neither wakes a task nor takes part.
            let answering = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() {
                    thread::sleep(Duration::from_millis(2));
                    stream.write_all(&byte).unwrap();
                }
            });
            let asking = andweorc_tokio::task::Builder::new().name(name).spawn_on(
                async move {
                    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
                    for _ in 0..asks {
                        if waits {
                            tokio::time::sleep(Duration::from_millis(2)).await;
                        } else {
                            stream.write_all(&[1]).await.unwrap();
                            stream.read_u8().await.unwrap();
                        }
                    }
                },
                runtime.handle(),
            );
            runtime.block_on(asking).unwrap();
            answering.join().unwrap();
        };
        delayed(act);
        let wait = target(TargetKind::Wait, name, None, None);
        let [outside, ..] = wait.waited_ns().unwrap();
        wait.waited_for_timers_ns() as f64 / outside as f64
    };
    let (timers, sockets) = (waited("clock: timers", true), waited("clock: sockets", false));
    assert!(timers > 0.8 && sockets < 0.2, "{timers} {sockets}");
}

#[test]
fn clocks_of_other_kinds_keep_their_distance() {
    let kinds = [libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_BOOTTIME, libc::CLOCK_MONOTONIC_COARSE];
    type Read = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> i32;
    let read = |id, by: Read| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` may be written to.
        assert_eq!(unsafe { by(id, &mut time) }, 0);
        program_clock::from_timespec(&time).0
    };
    unsafe extern "C" fn kernels(id: libc::clockid_t, time: *mut libc::timespec) -> i32 {
        // SAFETY: the caller answers for `time`.
        unsafe { clock::c_clock_gettime(id, time) }
    }
    // From CLOCK_MONOTONIC, ns. _RAW is mostly behind it, and CLOCK_BOOTTIME counts suspensions.
    let distances = |by: Read| kinds.map(|id| read(id, by) - read(libc::CLOCK_MONOTONIC, by));
    let expected = distances(kernels);
    let apart = delayed(|| distances(libc::clock_gettime));
    for (kind, (apart, expected)) in kinds.iter().zip(apart.into_iter().zip(expected)) {
        assert!((apart - expected).abs() < 50_000_000, "{kind}: {apart} {expected}");
    }
}

#[test]
fn deadlines_that_never_come_are_waited_for() {
    delayed(|| {
        for most in [Duration::from_millis(u64::MAX), Duration::from_secs(1 << 40), Duration::MAX] {
            let (sender, receiver) = channel();
            let sending = thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                sender.send(()).unwrap();
            });
            let (_, real) = time(|| receiver.recv_timeout(most).unwrap());
            assert!(real > Duration::from_millis(15), "{real:?}");
            sending.join().unwrap();
        }
    });
}

#[test]
fn shared_libraries_call_the_c_librarys_functions() {
    for name in [c"clock_gettime", c"epoll_wait", c"nanosleep", c"syscall"] {
        // SAFETY: the names are C strings.
        let [first, next] = [libc::RTLD_DEFAULT, libc::RTLD_NEXT]
            .map(|from| unsafe { libc::dlsym(from, name.as_ptr()) });
        assert!(!first.is_null() && first == next, "{name:?}");
    }
}

#[test]
fn no_signal_ends_a_system_call_of_a_plain_thread() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // Since a runtime was built, plain threads take part.
    drop(builder.enable_all().enable_profiling().build().unwrap());
    let ended = delayed(|| {
        thread::spawn(|| {
            // By a wait on a futex the thread begins to take part.
            thread::park_timeout(Duration::from_millis(1));
            let mut ended = 0;
            for _ in 0..100 {
                let began = clock::now();
                while clock::now() - began < andweorc_core::time::Nanos::from_micros(500) {}
                // SAFETY: there are no descriptors.
                ended += u32::from(unsafe { libc::poll(std::ptr::null_mut(), 0, 2) } < 0);
            }
            ended
        })
        .join()
        .unwrap()
    });
    assert_eq!(ended, 0);
}

//! How much stack the handler of andweorc's signal takes. A process of its own, since there is one
//! experiment at a time.
#![cfg(not(loom))]

use andweorc_core::clock;
use andweorc_core::experiment::{Experimenter, Phases};
use andweorc_core::point::point;
use andweorc_core::sampler::{Event, Sampling};
use andweorc_core::symbols::Symbols;
use andweorc_core::target::{Target, target, targets};
use andweorc_core::thread::{catch_up, enter, exit, register};
use andweorc_core::time::{Nanos, Speedup};
use andweorc_profile::{PointKind, TargetKind};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

/// An alternate stack as most programs have it, SIGSTKSZ, which std gives each thread too.
const USUAL: usize = 8192;

/// The one of the test is larger, so that what is beyond the usual one is seen.
const SIZE: usize = 65536;

/// The byte that the stack is filled with.
const UNTOUCHED: u8 = 0xa5;

static DONE: AtomicBool = AtomicBool::new(false);

fn is_done() -> bool {
    DONE.load(Ordering::SeqCst)
}

fn spin(time: Nanos) {
    let begun = clock::now();
    while clock::now() - begun < time {
        std::hint::spin_loop();
    }
}

/// Works on a thread with an alternate stack. Returns how much of that was used.
fn used() -> usize {
    let mut stack = vec![UNTOUCHED; SIZE];
    let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
    let mut before = new;
    // SAFETY: the memory is this thread's until the stack of before is put back.
    assert_eq!(unsafe { libc::sigaltstack(&raw const new, &raw mut before) }, 0);
    register().expect("there is room for two threads");
    let done = point(PointKind::Progress, "done", None, None, true);
    while !is_done() {
        // On a course: what it does after it hit a point is known.
        spin(Nanos::from_micros(500));
        done.hit();
        catch_up();
    }
    // SAFETY: that one was there before.
    assert_eq!(unsafe { libc::sigaltstack(&raw const before, ptr::null_mut()) }, 0);
    let untouched = stack.iter().take_while(|byte| **byte == UNTOUCHED).count();
    SIZE - untouched
}

/// Is inside of `target` for most of the time.
fn is_target(target: &'static Target) {
    register().expect("there is room for two threads");
    while !is_done() {
        let visit = enter(target, clock::now());
        spin(Nanos::from_millis(5));
        exit(visit, clock::now());
        sleep(Duration::from_millis(1));
    }
}

/// All threads of this process that begin later stay on one processor, where they wait for each
/// other.
fn stay_on_one_processor() {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).unwrap();
    let first = (0..CpuSet::count()).find(|it| allowed.is_set(*it).unwrap()).unwrap();
    let mut only = CpuSet::new();
    only.set(first).unwrap();
    sched_setaffinity(this, &only).unwrap();
}

#[test]
fn the_handler_fits_on_the_usual_alternate_stack() {
    stay_on_one_processor();
    let mut experimenter = Experimenter::new().expect("the only one in this process");
    let symbols = Symbols::of_this_program().unwrap().with_scope("re:.".parse().unwrap());
    let sampling = Sampling::start(symbols, Event::default()).unwrap();
    let timed = target(TargetKind::Span, "timed", None, None);
    let used = scope(|scope| {
        let used = scope.spawn(used);
        scope.spawn(|| is_target(timed));
        sleep(Duration::from_millis(500));
        let phases = Phases::from_millis(1, 500, 1);
        let half = Speedup::new(0.5).unwrap();
        sampling.take();
        let sampled = targets().into_iter().filter(|it| it.kind() == TargetKind::Line).take(5);
        for target in sampled.chain([timed; 3]) {
            experimenter.run(Some(target), half, phases).record();
        }
        DONE.store(true, Ordering::SeqCst);
        used.join().unwrap()
    });
    println!("{used} bytes");
    assert!(used > 0, "no signal was handled there");
    assert!(used < USUAL, "{used} of {USUAL} bytes");
}

//! The allocator of a whole program.

use andweorc_alloc::Alloc;
use andweorc_core::allocations::Snapshot;
use andweorc_core::experiment::Experimenter;
use andweorc_core::target::{Target, target};
use andweorc_core::{clock, thread};
use andweorc_profile::{TargetAllocations, TargetKind};
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

#[global_allocator]
static ALLOCATOR: Alloc = Alloc::system();

/// There is one experimenter at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn span(name: &str) -> &'static Target {
    target(TargetKind::Span, name, None, None)
}

fn inside<T>(target: &Target, run: impl FnOnce() -> T) -> T {
    let visit = thread::enter(target, clock::now());
    let result = run();
    thread::leave(target, &visit, true, clock::now());
    result
}

/// Allocations of a target since `before`.
fn of(target: &Target, before: &Snapshot) -> Option<TargetAllocations> {
    let record = Snapshot::read().since(before, None, 1)?;
    record.targets.into_iter().find(|it| it.target == Some(target.id()))
}

#[test]
fn counts_of_many_threads_are_exact() {
    const THREADS: u64 = 12;
    const ROUNDS: u64 = 500;
    let _alone = alone();
    let _on = Experimenter::new().unwrap();
    let target = span("exact");
    let before = Snapshot::read();
    let work = move || {
        let mut kept = Vec::with_capacity(ROUNDS as usize);
        for _ in 0..ROUNDS {
            let boxed = inside(target, || {
                drop(black_box(Vec::<u8>::with_capacity(100)));
                black_box(Box::new([0_u64; 4]))
            });
            kept.push(boxed);
        }
        kept
    };
    let threads: Vec<_> = (0..THREADS).map(|_| std::thread::spawn(work)).collect();
    let kept: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let seen = of(target, &before).unwrap();
    let all = THREADS * ROUNDS;
    assert_eq!((seen.bytes, seen.count), (all * 132, all * 2));
    assert_eq!((seen.live_bytes, seen.live_count), (all * 32, all));
    assert_eq!((seen.churned_bytes, seen.churned_count), (all * 100, all));
    assert!(seen.peak_bytes >= seen.live_bytes);
    // Another thread than those that made them.
    drop(kept);
    let seen = of(target, &before).unwrap();
    assert_eq!((seen.freed_bytes, seen.freed_count), (all * 132, all * 2));
    assert_eq!((seen.live_bytes, seen.churned_count), (0, all));
}

#[test]
fn grown_vector_counts_each_of_its_sizes_once() {
    let _alone = alone();
    let target = span("grown");
    let mut early = Vec::<u8>::with_capacity(64);
    early.extend([1; 64]);
    let on = Experimenter::new().unwrap();
    let before = Snapshot::read();
    inside(target, || {
        // From before andweorc was on: counted from here on.
        early.reserve_exact(64);
        early.reserve_exact(192);
    });
    let seen = of(target, &before).unwrap();
    assert_eq!((seen.bytes, seen.count), (128 + 256, 2));
    assert_eq!((seen.live_bytes, seen.live_count, seen.churned_bytes), (256, 1, 128));
    drop(on);
    // Off again: it is taken off, and counted no more.
    early.reserve_exact(1000);
    let seen = of(target, &before).unwrap();
    assert_eq!((seen.count, seen.live_bytes, seen.live_count), (2, 0, 0));
    assert_eq!(early, [1; 64]);
}

#[test]
fn nothing_is_counted_while_it_is_off() {
    let _alone = alone();
    let target = span("off");
    let before = Snapshot::read();
    let kept = inside(target, || black_box(vec![7_u8; 1000]));
    assert_eq!(of(target, &before), None);
    let _on = Experimenter::new().unwrap();
    // Nor is it taken off what was never counted.
    drop(kept);
    assert_eq!(of(target, &before), None);
}

#[test]
fn blocks_go_between_threads_that_end() {
    let _alone = alone();
    let _on = Experimenter::new().unwrap();
    let target = span("handed over");
    let before = Snapshot::read();
    let (to, from) = mpsc::sync_channel::<Box<[u8]>>(4);
    let freer = std::thread::spawn(move || from.iter().map(|block| block.len()).sum::<usize>());
    for _ in 0..200 {
        let to = to.clone();
        std::thread::spawn(move || {
            let block = inside(target, || vec![0; 50].into_boxed_slice());
            to.send(block).unwrap();
        })
        .join()
        .unwrap();
    }
    drop(to);
    assert_eq!(freer.join().unwrap(), 200 * 50);
    let seen = of(target, &before).unwrap();
    assert_eq!((seen.bytes, seen.count, seen.live_count), (200 * 50, 200, 0));
}

#[test]
fn destructors_of_thread_locals_may_allocate() {
    struct Late(u8);
    impl Drop for Late {
        fn drop(&mut self) {
            inside(span("late"), || drop(black_box(vec![self.0; 77])));
        }
    }
    thread_local! {
        static LATE: Late = const { Late(1) };
    }
    let _alone = alone();
    let _on = Experimenter::new().unwrap();
    let target = span("late");
    let before = Snapshot::read();
    std::thread::spawn(|| LATE.with(|late| assert_eq!(late.0, 1))).join().unwrap();
    let seen = of(target, &before).unwrap();
    assert_eq!((seen.bytes, seen.live_bytes), (77, 0));
}

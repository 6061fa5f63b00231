//! Events by target, as a run counts them before its first experiment: with those of the kernel,
//! which every machine has, by the path that those of a processor take.

use andweorc::task;
use andweorc_core::point::point;
use andweorc_core::sampler::probe;
use andweorc_core::session::Session;
use andweorc_core::settings::Settings;
use andweorc_profile::settings::CountedEvent;
use andweorc_profile::{EventsRecord, PointKind, Profile, Run};
use std::fs;
use std::hint::black_box;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Builder;
use tracing::{Dispatch, dispatcher, info_span};

/// Pages that are touched at a time.
const PAGES: usize = 64;

/// Touches fresh memory, each page of which faults.
#[inline(never)]
fn touch() {
    const PAGE: usize = 4096;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: fresh memory, which nothing else refers to, and which is given back.
    unsafe {
        let (rights, length) = (libc::PROT_READ | libc::PROT_WRITE, PAGES * PAGE);
        let at = libc::mmap(ptr::null_mut(), length, rights, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        // A page of its own for each: no huge ones.
        libc::madvise(at, length, libc::MADV_NOHUGEPAGE);
        (0..PAGES).for_each(|page| at.cast::<u8>().add(page * PAGE).write_volatile(1));
        libc::munmap(at, length);
    }
}

/// Works without touching anything: nothing but operators, so that there is no other function.
#[inline(never)]
fn digest(rounds: u64) -> u64 {
    let (mut x, mut left) = (black_box(1_u64), rounds);
    while left > 0 {
        x ^= (x << 7) ^ left;
        left -= 1;
    }
    x
}

/// Runs a program of a part that faults and one that works, with these events counted, and returns
/// what it wrote.
fn profiled(events: &[CountedEvent], targets: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let mut settings = Settings::default();
    settings.out = Some(path.clone());
    // Ended as soon as there is what is looked for.
    settings.duration = Duration::from_secs(120);
    settings.targets = targets.split(',').map(str::to_owned).collect();
    settings.events = events.to_vec();
    let item = point(PointKind::Progress, "item", None, None, true);
    let session = Session::start(settings).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stopped = Arc::clone(&stop);
    let works = async move {
        while !stopped.load(Ordering::SeqCst) {
            info_span!("faulting").in_scope(touch);
            info_span!("working").in_scope(|| digest(100_000));
            item.hit();
            task::yield_now().await;
        }
    };
    let task = task::Builder::new().name("worker").spawn_on(works, runtime.handle());
    let is_done = || {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.contains(r#"{"record":"events""#) || text.contains(r#"{"record":"experiment""#)
    };
    while !session.is_finished() && !is_done() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let outcome = session.finish("the test has seen enough");
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(task).unwrap();
    println!("{}", outcome.report());
    Profile::read(&path).unwrap().runs.remove(0)
}

/// Events of this kind in the target of this name, all overflows of it, and what they stand for.
fn of(run: &Run, record: &EventsRecord, event: CountedEvent, target: &str) -> (u64, u64) {
    let at = record.events.iter().position(|it| it.name == event.name()).unwrap();
    let known = run.targets.iter().find(|it| it.name == target);
    let found =
        record.targets.iter().find(|it| it.target.is_some() && it.target == known.map(|it| it.id));
    found.map_or((0, 0), |it| (it.overflows[at], it.counts[at]))
}

/// The note of a run in which the program was slower while events were counted, as it is on a busy
/// machine.
const SLOWED: &str = "counting events slows the program";

fn notes(run: &Run) -> Vec<&str> {
    run.notes.iter().map(|note| &*note.text).collect()
}

#[test]
fn events_are_those_of_the_part_in_which_they_happen_and_absent_ones_are_named() {
    dispatcher::set_global_default(Dispatch::new(andweorc::subscriber())).unwrap();
    if let Err(why) = probe() {
        return println!("SKIPPED, since nothing can be counted here: {why}");
    }
    let (faults, clock) = (CountedEvent::PageFaults, CountedEvent::CpuClock);
    for targets in ["faulting,working", "faulting,functions"] {
        let mut tries = (0..3).map(|_| profiled(&[CountedEvent::Cycles, faults, clock], targets));
        let Some(run) = tries.find(|run| !notes(run).iter().any(|it| it.contains(SLOWED))) else {
            println!("SKIPPED, since the machine is too busy: {targets}");
            continue;
        };
        let notes = notes(&run);
        let [record] = &run.events[..] else { panic!("{:?}, but the notes {notes:?}", run.events) };
        let has_cycles = record.events[0].name == "cycles";
        assert_ne!(has_cycles, notes.iter().any(|it| it.contains("`cycles` is not counted")));
        let (faulting, working) =
            (of(&run, record, faults, "faulting"), of(&run, record, faults, "working"));
        assert!(faulting.0 > 20 && 20 * working.1 < faulting.1, "{faulting:?} {working:?}");
        let busy = of(&run, record, clock, "working");
        assert!(busy.0 > 20, "{:?}", record.targets);
        if targets.ends_with("functions") {
            for (event, function, span) in
                [(faults, "events::touch", faulting), (clock, "events::digest", busy)]
            {
                let function = of(&run, record, event, function);
                assert!(2 * function.1 > span.1, "{function:?} of {span:?}");
            }
        }
        for event in &record.events {
            let all = (event.overflows + event.lost).max(1);
            assert!(2 * event.lost < all, "{event:?}");
            // What overflows stand for is what the counters say, but for the last periods.
            let told: u64 = record
                .targets
                .iter()
                .filter(|it| is_span(&run, it.target))
                .map(|it| it.counts[record.events.iter().position(|other| other == event).unwrap()])
                .sum();
            let due = event.count as f64 * event.overflows as f64 / all as f64;
            assert!((told as f64 - due).abs() < 0.25 * due, "{told} of {event:?}");
        }
    }
}

fn is_span(run: &Run, target: Option<u32>) -> bool {
    let known = run.targets.iter().find(|it| Some(it.id) == target);
    known.is_none_or(|it| it.kind != andweorc_profile::TargetKind::Function)
}

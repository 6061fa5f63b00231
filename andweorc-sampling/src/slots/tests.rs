use super::*;
use crate::signal::{Handler, Sender};

/// Slots are for good, and a registry that goes forgets them: the leak check finds them here.
fn keep(slot: &'static Slot) {
    static KEPT: Mutex<Vec<&Slot>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
}

#[test]
fn a_thread_that_has_begun_with_something_else_than_what_is_asked_for_begins_anew() {
    let _handler = Handler::install(Sender::Source, &SAMPLES).unwrap();
    let timers =
        Asked { event: Event::TaskClock, kind: Kind::Timer, period: Nanos::from_millis(1000) };
    let tid = nix::unistd::gettid().as_raw();
    let is_sampled = |meanwhile: Option<Asked>| {
        let mut registry = Registry { asked: Some(timers), ..Registry::new() };
        let (slot, opened, asked) = registry.slot(|_, _| {});
        keep(slot);
        let mut live = Live::new(tid, slot, opened, false);
        let begun = live.begin(asked.unwrap());
        registry.asked = meanwhile;
        registry.add(live, asked, begun);
        registry.remove(slot).unwrap().source.is_some()
    };
    assert!(is_sampled(Some(timers)));
    assert!(!is_sampled(None), "nobody asks for samples any more");
    let events = Asked { event: Event::TaskClock, kind: Kind::Perf(Event::TaskClock), ..timers };
    let (refused, mut registry) = (perf::probe().is_err(), Registry::new());
    let (slot, opened, asked) = registry.slot(|_, _| {});
    keep(slot);
    registry.asked = Some(events);
    registry.add(Live::new(tid, slot, opened, false), asked, Ok(Begun::NotAsked));
    let live = registry.remove(slot).unwrap();
    assert_eq!(live.source.is_some_and(|source| source.is_exact()), !refused);
    assert_eq!(registry.refused.is_some(), refused);
}

#[test]
fn threads_with_a_perf_event_have_a_timer_once_timers_are_used() {
    let _handler = Handler::install(Sender::Source, &SAMPLES).unwrap();
    let period = Nanos::from_millis(1000);
    let kind = Kind::Perf(Event::TaskClock);
    let mut registry = Registry::new();
    registry.use_timers();
    assert_eq!(registry.asked, None, "nobody asks for samples");
    registry.asked = Some(Asked { event: Event::TaskClock, kind, period });
    let (slot, opened, asked) = registry.slot(|_, _| {});
    keep(slot);
    let mut live = Live::new(nix::unistd::gettid().as_raw(), slot, opened, false);
    let begun = live.begin(asked.unwrap());
    registry.add(live, asked, begun);
    registry.use_timers();
    let live = registry.remove(slot).unwrap();
    assert!(matches!(live.source, Some(Source::Timer(_))), "{:?}", live.source);
    // Relaxed: of this thread.
    assert_eq!(slot.stands_for.load(Ordering::Relaxed), 0, "the time since the one before");
}

#[test]
fn a_timer_stands_in_for_a_perf_event() {
    std::thread::spawn(|| {
        let tid = nix::unistd::gettid().as_raw();
        open(tid, false, |_, _| None, |_, _| {});
        let _handler = Handler::install(Sender::Source, &SAMPLES).unwrap();
        let (slot, _) = SLOT.get().expect("who was taken up has a slot");
        let _timer = Source::timer(tid, Nanos::from_millis(1));
        let begun = clock::thread_cpu();
        // Another test may take the count in between.
        while slot.handled.load(Ordering::Relaxed) == 0 {
            let worked = clock::thread_cpu() - begun;
            assert!(worked < Nanos::from_millis(3000), "not one sample in {worked}");
        }
        close();
    })
    .join()
    .unwrap();
}

use super::*;
use crate::clock;
use crate::profile::TargetKind;
use crate::target::targets;
use crate::thread::LEDGER;

/// Works for so long, CPU time.
fn work(time: Nanos) {
    let begun = clock::thread_cpu();
    while clock::thread_cpu() - begun < time {}
}

#[test]
fn a_thread_with_an_account_is_sampled() {
    thread::enable();
    let symbols = Symbols::of_this_program().unwrap().with_scope("re:.".parse().unwrap());
    let sampling = match Sampling::start(symbols, Event::default()) {
        Ok(sampling) => sampling,
        Err(error) => return println!("skipped: {error}"),
    };
    sampling.count_functions_alone();
    std::thread::spawn(|| {
        register().unwrap();
        register().expect("once is enough");
        work(Nanos::from_millis(100));
    })
    .join()
    .unwrap();
    let found = sampling.take();
    assert!(found.samples > 0, "100 ms of work and not one sample");
    let of = |kind| targets().into_iter().filter(move |target| target.kind() == kind);
    let alone: u64 = of(TargetKind::FunctionSelf).map(|target| target.busy_ns()).sum();
    // What was drained before functions were to be counted alone has no such target.
    let own: u64 = of(TargetKind::Function).map(|target| target.own_ns()).sum();
    assert!(alone > 0 && alone <= own, "{alone} of {own}");
    assert!(LEDGER.owed(clock::now()) >= Nanos::ZERO);
}

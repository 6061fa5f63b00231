use super::*;
use crate::clock;
use crate::thread::LEDGER;

/// Works for so long, CPU time.
fn work(time: Nanos) {
    let begun = clock::thread_cpu();
    while clock::thread_cpu() - begun < time {}
}

#[test]
fn a_thread_with_an_account_is_sampled() {
    thread::enable();
    let sampling = match Sampling::start(Symbols::of_this_program().unwrap(), Event::default()) {
        Ok(sampling) => sampling,
        Err(error) => return println!("skipped: {error}"),
    };
    std::thread::spawn(|| {
        register().unwrap();
        register().expect("once is enough");
        work(Nanos::from_millis(100));
    })
    .join()
    .unwrap();
    let found = sampling.take();
    assert!(found.samples > 0, "100 ms of work and not one sample");
    assert!(LEDGER.owed(clock::now()) >= Nanos::ZERO);
}

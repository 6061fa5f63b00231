//! Who yields with tokio's own `yield_now` does not wait for the world outside. A process of its own: in experiments the first wakes of a kind are held.

use andweorc_core::profile::TargetKind;
use andweorc_core::target::target;
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::task;

/// Whether a task of a new kind, which does nothing but yield, was mostly woken by the program.
fn is_recognised(kind: &str) -> bool {
    let yields = async {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    };
    let runtime = tokio::runtime::Handle::current();
    runtime.block_on(task::Builder::new().name(kind.to_owned()).spawn(yields)).unwrap();
    let waited = target(TargetKind::Wait, kind, None, None).waited_ns();
    let [outside, by_task, _] = waited.expect("it is a wait");
    by_task > outside
}

#[test]
fn tasks_that_yield_do_not_wait_for_the_world_outside() {
    andweorc_core::thread::enable();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().andweorc().build().unwrap();
    let _guard = runtime.enter();
    // The first wakes of a kind tell that it may yield. They may take long, if another process takes the processor; not each time.
    assert!((0..50).any(|number| is_recognised(&format!("yields: {number}"))));
}

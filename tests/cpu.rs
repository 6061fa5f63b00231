//! Where the CPU time of tasks goes by call chains, as a run records it while it observes a program
//! whose functions are known.

use andweorc::task;
use andweorc_core::point::point;
use andweorc_core::session::Session;
use andweorc_core::settings::Settings;
use andweorc_profile::{PointKind, Profile, Run, StackGroup, StacksRecord};
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Builder;
use tracing::{Dispatch, Instrument, dispatcher, info_span};

/// Nothing but operators: what is called would be another function.
#[inline(never)]
fn digest(rounds: u64) -> u64 {
    let (mut x, mut left) = (black_box(1u64), rounds);
    while left > 0 {
        x ^= (x << 7) ^ left;
        left -= 1;
    }
    x
}

#[inline(never)]
fn parse(rounds: u64) -> u64 {
    black_box(digest(black_box(rounds)))
}

async fn answer(rounds: u64) -> u64 {
    // Goes on in another poll, on top of other frames of the runtime.
    task::yield_now().await;
    parse(rounds)
}

/// The chains of a group by the names of their functions, from the outside in, and their samples.
fn chains<'a>(record: &'a StacksRecord, group: &StackGroup) -> Vec<(Vec<&'a str>, u64)> {
    let mut names: Vec<Vec<&str>> = Vec::new();
    for node in &group.stacks {
        let mut chain = node.parent.map_or(Vec::new(), |parent| names[parent as usize].clone());
        chain.push(&record.frames[node.frame as usize].name);
        names.push(chain);
    }
    names.into_iter().zip(group.stacks.iter().map(|node| node.samples)).collect()
}

/// Name of the target with this id.
fn named(run: &Run, id: Option<u32>) -> Option<&str> {
    let target = run.targets.iter().find(|target| Some(target.id) == id)?;
    Some(&target.name)
}

/// Works in tasks and spans under a session that samples. Returns the run.
fn profiled() -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cpu.jsonl");
    let mut settings = Settings::default();
    settings.out = Some(path.clone());
    // Ended as soon as there is what is looked for.
    settings.duration = Duration::from_secs(120);
    settings.targets = vec!["functions".to_owned()];
    let item = point(PointKind::Progress, "item", None, None, true);
    let session = Session::start(settings).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    dispatcher::set_global_default(Dispatch::new(andweorc::subscriber())).unwrap();
    let task = |span: bool| {
        let stop = Arc::clone(&stop);
        let works = async move {
            while !stop.load(Ordering::SeqCst) {
                let answers = answer(100_000);
                if span {
                    answers.instrument(info_span!("priced")).await
                } else {
                    answers.await
                };
                item.hit();
            }
        };
        let name = if span { "in spans" } else { "plain" };
        task::Builder::new().name(name).spawn_on(works, runtime.handle())
    };
    let tasks = [task(false), task(true)];
    let has_record =
        || fs::read_to_string(&path).is_ok_and(|text| text.contains(r#"{"record":"stacks""#));
    while !session.is_finished() && !has_record() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let outcome = session.finish("the test has seen enough");
    stop.store(true, Ordering::SeqCst);
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    println!("{}", outcome.report());
    Profile::read(&path).unwrap().runs.remove(0)
}

#[test]
fn samples_are_chains_of_functions_by_task_and_span() {
    let run = profiled();
    let record = &run.stacks[0];
    assert_eq!(run.stacks.len(), 1, "only what was observed is recorded");
    for (task, span) in [("plain", None), ("in spans", Some("priced"))] {
        let is = |group: &&StackGroup| {
            named(&run, group.task) == Some(task) && named(&run, group.span) == span
        };
        let groups: Vec<_> = record.groups.iter().filter(is).collect();
        assert!(!groups.is_empty(), "no samples of {task}: {:?}", record.groups);
        let chains: Vec<_> = groups.iter().flat_map(|group| chains(record, group)).collect();
        let sum = |is: &dyn Fn(&[&str]) -> bool| -> u64 {
            chains.iter().filter(|(chain, _)| is(chain)).map(|(_, samples)| samples).sum()
        };
        // Whether or not the code has frame pointers, as builds of `cargo andweorc run` do.
        let whole = sum(&|chain| chain.ends_with(&["cpu::answer", "cpu::parse", "cpu::digest"]));
        let all = sum(&|_| true);
        // Where timers take the samples there may be a few.
        assert!(all > 4 && whole > all / 2, "{whole} of {all}: {chains:#?}");
        let alone = sum(&|chain| chain[0] == "cpu::digest");
        assert_eq!(alone, 0, "a chain without its callers says so: {chains:#?}");
    }
    let counted: u64 =
        record.groups.iter().flat_map(|it| &it.stacks).map(|node| node.samples).sum();
    assert_eq!((counted, record.merged), (record.samples, 0));
    assert!(record.frames.iter().any(|frame| frame.own && frame.name == "cpu::digest"));
    assert!(record.groups.iter().all(|group| !group.thread.is_empty()), "threads have names");
    println!(
        "{} samples, {} unwound, {} cut off, {} ended early, {} functions, {} bytes",
        record.samples,
        record.unwound,
        record.cut_off,
        record.ended_early,
        record.frames.len(),
        serde_json::to_vec(record).unwrap().len()
    );
}

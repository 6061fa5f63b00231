//! A program whose allocator is andweorc's: its profile has what each target allocated, in all
//! stretches without delays and in no other.

use andweorc::{Session, Settings, Speedup};
use andweorc_alloc::Alloc;
use andweorc_profile::estimate::analyse;
use andweorc_profile::{Profile, Run, TargetAllocations};
use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Alloc = Alloc::system();

/// Whether this program was built as `cargo andweorc run` does, so that call chains are whole.
fn has_frame_pointers() -> bool {
    option_env!("RUSTFLAGS").is_some_and(|flags| flags.contains("force-frame-pointers"))
}

/// Bytes and allocations of a request, in its span.
const REQUEST: [u64; 2] = [40 << 10, 40];

#[tracing::instrument]
fn request() {
    let [bytes, count] = REQUEST;
    let block = || black_box(Vec::<u8>::with_capacity((bytes / count) as usize));
    let mut held = [const { Vec::new() }; REQUEST[1] as usize];
    held.iter_mut().for_each(|held| *held = block());
}

/// Profiles requests for a few seconds.
fn profiled() -> Run {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.out = Some(folder.path().join("allocations.jsonl"));
    settings.duration = Duration::from_secs(6);
    settings.speedups = vec![Speedup::new(0.5).unwrap()];
    let path = settings.out.clone().unwrap();
    andweorc::subscriber().init();
    let session = Session::start(settings).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.spawn(async {
        loop {
            let task = andweorc::task::Builder::new().name("handler").spawn(async {
                request();
                // The task's own, freed on whichever thread drops it.
                black_box(vec![1_u8; 777])
            });
            drop(task.await);
        }
    });
    println!("{}", session.wait().report());
    drop(runtime);
    Profile::read(&path).unwrap().runs.remove(0)
}

/// Allocations of the target of this name, by stretch.
fn of<'a>(run: &'a Run, name: &str) -> Vec<&'a TargetAllocations> {
    let target = run.targets.iter().find(|it| it.name == name).expect("it ran");
    let targets = run.allocations.iter().flat_map(|record| &record.targets);
    targets.filter(|it| it.target == Some(target.id)).collect()
}

/// The samples stand for what was counted in the same stretch, and their chains lead to the line
/// that allocates.
fn check_samples(run: &Run) {
    let [stacks] = &run.allocation_stacks[..] else { panic!("{run:?}") };
    assert_eq!((stacks.lost, stacks.merged), (0, 0));
    let request = run.targets.iter().find(|it| it.name == "request").unwrap();
    let groups = || stacks.groups.iter().filter(|it| it.target == Some(request.id));
    let nodes = groups().flat_map(|it| &it.stacks);
    let [bytes, count, samples] = nodes.fold([0; 3], |[bytes, count, samples], node| {
        [bytes + node.bytes, count + node.count, samples + node.samples]
    });
    let counted = run.allocations[0].targets.iter().find(|it| it.target == Some(request.id));
    let counted = counted.unwrap();
    // Five deviations of so many samples.
    let far = 5.0 / (samples as f64).sqrt() + 0.02;
    for (told, is) in [(bytes, counted.bytes), (count, counted.count)] {
        let off = told as f64 / is as f64 - 1.0;
        assert!(off.abs() < far, "{told} of {is}, by {samples} samples");
    }
    let lines = analyse(std::slice::from_ref(run)).allocation_lines;
    assert!(lines.iter().map(|it| it.samples).sum::<u64>() == stacks.samples, "{lines:#?}");
    if has_frame_pointers() {
        let first = &lines[0];
        let is_block = first.function.starts_with("allocations::request");
        let file = first.file.as_deref();
        assert!(is_block && file == Some("tests/allocations.rs"), "{lines:#?}");
        assert!(stacks.ended_early * 10 < stacks.samples, "{stacks:?}");
    }
    let frames: Vec<&str> = stacks.frames.iter().map(|it| &*it.name).collect();
    assert!(!frames.iter().any(|name| name.contains("__rust_alloc")), "{frames:#?}");
}

#[test]
fn profile_has_what_each_target_allocated_without_delays() {
    let run = profiled();
    let is_baseline =
        |seq: u32| run.experiments.iter().any(|it| it.seq == seq && it.target.is_none());
    let [first, others @ ..] = &run.allocations[..] else { panic!("{run:?}") };
    assert_eq!(first.seq, None);
    assert!(!others.is_empty() && others.iter().all(|it| it.seq.is_some_and(is_baseline)));
    for of in of(&run, "request") {
        assert!(of.count > 0, "{of:?}");
        // Stretches begin and end in the middle of requests.
        let [bytes, count] = REQUEST;
        let size = bytes / count;
        // They may do so in the middle of counting a block, too.
        assert!(of.bytes.abs_diff(of.count * size) <= 8 * size, "{of:?}");
        assert!(of.live_count <= 2 * count && of.peak_bytes >= of.live_bytes, "{of:?}");
        let kept = of.freed_count.saturating_sub(of.churned_count);
        assert!(kept <= 2 * count, "all is freed in the span: {of:?}");
    }
    check_samples(&run);
    let handlers = of(&run, "handler");
    assert!(handlers.len() > 1 && handlers.iter().all(|it| it.bytes > 777 && it.count > 0));
    let analysis = analyse(std::slice::from_ref(&run));
    let request = analysis.allocations.iter().find(|it| it.name == "request").unwrap();
    assert!(request.churn.unwrap() > 0.9 && request.bytes_per_s > 0.0, "{request:?}");
    let point = analysis.points.iter().find(|it| it.name == "request").unwrap();
    let each = request.count_per_s / point.now.throughput.unwrap();
    // By the rates of the baselines, of which the first stretch is none.
    assert!((each / REQUEST[1] as f64 - 1.0).abs() < 0.5, "{each} allocations a request");
}

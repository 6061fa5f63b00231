use super::*;
use crate::estimate::verdict::NOTHING;
use crate::{
    ExperimentRecord, Header, PointCount, PointKind, PointRecord, Record, Run, SamplesRecord,
    TargetKind, TargetRecord, TargetTime, VERSION,
};

/// A run with the targets 1 `hot` and 2 `cold`, and the latency point 1 `request`.
pub(crate) fn run() -> Run {
    let mut run = Run::new(Header {
        schema: VERSION,
        program: "shop".into(),
        build_id: None,
        host: "here".into(),
        cores: 2,
        andweorc: "0.1.0".into(),
        tokio: None,
        tokio_unstable: None,
        sampling: None,
        duration_ns: 30_000_000_000,
        speedups: vec![0.25, 0.5],
        targets: vec![],
        points: vec![],
        start_unix_ms: 0,
    });
    for (id, name) in [(1, "hot"), (2, "cold")] {
        run.push(Record::Target(TargetRecord {
            id,
            kind: TargetKind::Span,
            name: name.into(),
            file: Some("src/shop.rs".into()),
            line: Some(10 * id),
        }));
    }
    run.push(Record::Point(PointRecord {
        id: 1,
        kind: PointKind::Latency,
        name: "request".into(),
        file: None,
        line: None,
        rank: 0,
    }));
    let time = |target, busy_ns| TargetTime { target, busy_ns, count: 1, waits: None };
    run.push(Record::Samples(SamplesRecord {
        real_ns: 2_000,
        cpu_ns: 1_000,
        others_ns: None,
        source: "timed".into(),
        targets: vec![time(1, 200), time(2, 700)],
        lost: 0,
    }));
    run
}

/// Appends an experiment of a virtual second with this many hits, each of this latency.
pub(crate) fn push(run: &mut Run, target: Option<u32>, speedup: f64, count: u64, latency: u64) {
    let delay_ns = (speedup * 4e8) as u64;
    run.push(Record::Experiment(ExperimentRecord {
        seq: run.experiments.len() as u32,
        target,
        speedup,
        start_ns: 0,
        real_ns: 1_000_000_000 + delay_ns,
        delay_ns,
        cpu_ns: None,
        points: vec![PointCount { point: 1, count, latency: vec![(latency, count)] }],
        sampled: Vec::new(),
        joint: None,
        discarded: None,
    }));
}

/// `n` rounds of both targets at both speedups, with a little noise: `hot` brings +10 % and +20 %,
/// `cold` nothing. The load is closed.
pub(crate) fn measured(n: u64) -> Run {
    let mut run = closed();
    let mut random = fastrand::Rng::with_seed(3);
    let mut noisy = |value: f64| (value * (1.0 + 0.004 * (random.f64() - 0.5))) as u64;
    push(&mut run, None, 0.0, noisy(10_000.0), 1_000);
    for _ in 0..n {
        for (target, speedup, factor) in
            [(1, 0.25, 1.1), (2, 0.25, 1.0), (1, 0.5, 1.2), (2, 0.5, 1.0)]
        {
            push(
                &mut run,
                Some(target),
                speedup,
                noisy(10_000.0 * factor),
                (1_000.0 / factor) as u64,
            );
            push(&mut run, None, 0.0, noisy(10_000.0), 1_000);
        }
    }
    run
}

/// Of [`run_with_probe`].
pub(crate) const PROBE: u32 = 9;

/// A run as [`run`] makes it, with a probe, in which the program is delayed as a whole.
pub(crate) fn run_with_probe() -> Run {
    let mut run = run();
    run.targets.push(TargetRecord {
        id: PROBE,
        kind: TargetKind::Probe,
        name: "everything".into(),
        file: None,
        line: None,
    });
    run
}

/// A run like [`run_with_probe`], whose two probes say that the load is closed.
pub(crate) fn closed() -> Run {
    let mut run = run_with_probe();
    for _ in 0..2 {
        push(&mut run, None, 0.0, 10_000, 1_000);
        push(&mut run, Some(PROBE), 0.2, 10_010, 1_000);
    }
    run
}

/// A run in which a probe did so many times what the baselines did in virtual time; 1.25 is all
/// that came.
pub(crate) fn probed(times: f64) -> Run {
    let mut run = run_with_probe();
    for _ in 0..2 {
        push(&mut run, None, 0.0, 1_000, 1_000);
        push(&mut run, Some(PROBE), 0.2, (1_000.0 * times) as u64, 1_000);
    }
    push(&mut run, None, 0.0, 1_000, 1_000);
    run
}

fn near(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

#[test]
fn target_that_matters_ranks_first_and_the_other_is_nothing() {
    let analysis = analyse(&[measured(4)]);
    let names: Vec<_> = analysis.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["hot", "cold"]);
    let (hot, cold) = (&analysis.targets[0], &analysis.targets[1]);
    assert_eq!((hot.verdict, cold.verdict), (Verdict::Matters, Verdict::Nothing));
    assert_eq!((hot.share, cold.share), (Some(0.2), Some(0.7)));
    assert_eq!((hot.wall_share, cold.wall_share), (Some(0.1), Some(0.35)));
    let effects: Vec<_> = hot.effects_on("request", Metric::Throughput).collect();
    near(effects[0].effect_pct, 10.0, 0.5);
    near(effects[1].effect_pct, 20.0, 0.5);
    assert!(effects[0].ci_low.unwrap() < 10.0 && effects[0].ci_high.unwrap() > 10.0);
    assert_eq!((effects[0].n, effects[1].n), (4, 4));
    let impact = &hot.impacts[0];
    assert_eq!(impact.metric, Metric::Throughput);
    near(impact.slope, 40.0, 1.0);
    assert!(impact.r2 > 0.99 && impact.ci_low.unwrap() < 40.0 && impact.ci_high.unwrap() > 40.0);
    let p99 = hot.effects_on("request", Metric::P99).next_back().unwrap();
    near(p99.effect_pct, -100.0 / 6.0, 0.2);
}

#[test]
fn drift_cancels() {
    let mut run = run();
    for i in 0..41u64 {
        let rate = 10_000 + 200 * i;
        match i % 4 {
            1 => push(&mut run, Some(1), 0.5, rate * 11 / 10, 1_000),
            3 => push(&mut run, Some(2), 0.5, rate, 1_000),
            _ => push(&mut run, None, 0.0, rate, 1_000),
        }
    }
    let analysis = analyse(&[run]);
    let effect = |i: usize| analysis.targets[i].effects[0].effect_pct;
    near(effect(0), 10.0, 0.01);
    near(effect(1), 0.0, 0.01);
}

#[test]
fn discarded_experiments_and_baselines_are_left_out() {
    let mut run = measured(4);
    // A baseline, and the experiment on `cold` before it.
    for i in [7, 8] {
        run.experiments[i].discarded = Some("steal".into());
        run.experiments[i].points[0].count = 1;
    }
    let analysis = analyse(&[run]);
    assert_eq!(analysis.discarded, 2);
    near(analysis.targets[0].effects[0].effect_pct, 10.0, 0.5);
    assert_eq!(analysis.targets[1].effects[0].n, 3);
}

#[test]
fn one_experiment_has_no_interval_and_is_inconclusive() {
    let analysis = analyse(&[{
        let mut run = run();
        push(&mut run, None, 0.0, 1_000, 1);
        push(&mut run, Some(1), 0.5, 1_500, 1);
        run
    }]);
    let hot = &analysis.targets[0];
    assert_eq!(hot.effects[0].ci_low, None);
    assert_eq!(hot.verdict, Verdict::Inconclusive { more_seconds: None });
    assert_eq!(hot.half_width(), f64::INFINITY);
}

#[test]
fn one_experiment_has_an_interval_from_what_others_scatter_and_is_inconclusive() {
    let mut run = measured(3);
    let is_cold = |one: &ExperimentRecord| one.target == Some(2) && one.speedup == 0.5;
    let first = run.experiments.iter().position(is_cold).unwrap();
    let mut seq = 0..;
    run.experiments.retain(|one| seq.next() == Some(first) || !is_cold(one));
    let analysis = analyse(&[run]);
    let cold = analysis.targets.iter().find(|target| target.name == "cold").unwrap();
    let effect = cold.ranking_effect().unwrap();
    assert_eq!((effect.speedup, effect.n), (0.5, 1));
    assert!(effect.ci_low.unwrap() > -NOTHING && effect.ci_high.unwrap() < NOTHING, "{effect:?}");
    assert!(matches!(cold.verdict, Verdict::Inconclusive { .. }), "{cold:?}");
}

#[test]
fn noise_is_inconclusive_and_says_how_much_longer() {
    let mut run = closed();
    for i in 0..12 {
        let noise = [9_700, 10_300, 10_150, 9_820][i % 4];
        push(&mut run, None, 0.0, 10_000, 1);
        push(&mut run, Some(1), 0.5, noise, 1);
    }
    match analyse(&[run]).targets[0].verdict {
        Verdict::Inconclusive { more_seconds: Some(more) } => assert!(more > 10.0, "{more}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn target_whose_speedup_lowers_throughput_hurts() {
    let mut run = closed();
    push(&mut run, None, 0.0, 10_000, 1);
    for i in 0..6 {
        push(&mut run, Some(1), 0.5, 9_000 + i, 1);
        push(&mut run, None, 0.0, 10_000, 1);
    }
    assert_eq!(analyse(&[run]).targets[0].verdict, Verdict::Hurts);
}

#[test]
fn runs_merge_by_identity_not_by_id() {
    let (first, mut second) = (measured(2), measured(2));
    for record in &mut second.targets {
        record.id += 100;
    }
    for experiment in &mut second.experiments {
        experiment.target = experiment.target.map(|id| id + 100);
    }
    let analysis = analyse(&[first, second]);
    assert_eq!(analysis.targets.len(), 2);
    assert_eq!(analysis.targets[0].effects[0].n, 4);
}

#[test]
fn nothing_comes_of_nothing() {
    assert_eq!(analyse(&[]), Analysis::default());
    assert!(analyse(&[run()]).targets.is_empty());
}

#[test]
fn quantiles_are_those_of_the_histogram() {
    let experiment = ExperimentRecord {
        seq: 0,
        target: None,
        speedup: 0.0,
        start_ns: 0,
        real_ns: 2_000_000_000,
        delay_ns: 1_000_000_000,
        cpu_ns: None,
        points: vec![PointCount { point: 1, count: 100, latency: vec![(1, 50), (5, 49), (9, 1)] }],
        sampled: Vec::new(),
        joint: None,
        discarded: None,
    };
    let of = |metric: Metric| metric.of(&experiment, 1).unwrap();
    assert_eq!(of(Metric::Throughput), 100.0);
    near(of(Metric::Mean), 3.04, 1e-9);
    assert_eq!((of(Metric::P50), of(Metric::P99)), (1.0, 5.0));
    assert_eq!(Metric::P50.of(&experiment, 2), None);
}

/// Rounds of both targets under a load that comes at its own pace: the probes find it all done, and
/// so is it in every experiment, with a little noise. A faster `cold` takes a tenth off the
/// latency, `hot` adds one.
fn open_load(probed: u64) -> Run {
    let mut run = run_with_probe();
    let mut random = fastrand::Rng::with_seed(5);
    let mut noisy = |value: f64| (value * (1.0 + 0.002 * (random.f64() - 0.5))) as u64;
    push(&mut run, None, 0.0, 10_000, noisy(1e6));
    for _ in 0..6 {
        for (target, speedup, latency) in [(PROBE, 0.2, 1e6), (1, 0.5, 1.1e6), (2, 0.5, 0.9e6)] {
            let count = if target == PROBE { probed } else { noisy(10_000.0) };
            push(&mut run, Some(target), speedup, count, noisy(latency));
            push(&mut run, None, 0.0, noisy(10_000.0), noisy(1e6));
        }
    }
    run
}

#[test]
fn targets_under_open_load_are_ranked_by_latency() {
    let runs = [open_load(12_500)];
    for analysis in [analyse(&runs), analyse_ranking(&runs)] {
        assert_eq!(analysis.load, Some(Load::Open));
        assert_eq!(analysis.ranked_by, Ranking { point_index: 0, metric: Metric::Mean });
        let judged: Vec<_> =
            analysis.targets.iter().map(|it| (it.name.as_str(), it.verdict)).collect();
        assert_eq!(judged, [("cold", Verdict::Matters), ("hot", Verdict::Hurts)]);
        near(analysis.targets[0].ranking_effect().unwrap().effect_pct, -10.0, 0.2);
        assert!(analysis.targets[0].half_width() < 1.0);
    }
    // The same, but it waits.
    let analysis = analyse(&[open_load(10_000)]);
    assert_eq!((analysis.load, analysis.ranked_by), (Some(Load::Closed), Ranking::default()));
    assert!(analysis.targets.iter().all(|target| target.verdict == Verdict::Nothing));
}

#[test]
fn targets_are_judged_by_any_metric_and_by_the_throughput_only_where_it_tells() {
    let judged = |probed: u64, metric: Metric| -> (bool, Vec<(usize, Verdict)>) {
        let analysis = analyse(&[open_load(probed)]);
        let judged = analysis.judged_by(Ranking { point_index: 0, metric });
        let judged = judged.into_iter().map(|one| (one.target, one.verdict)).collect();
        (analysis.can_judge(metric), judged)
    };
    // Under the closed load `hot` is before `cold` among the targets, by what they do to the rate.
    let (hot, cold) = match analyse(&[open_load(10_000)]).targets[0].name.as_str() {
        "hot" => (0, 1),
        _ => (1, 0),
    };
    let by_latency = (true, vec![(cold, Verdict::Matters), (hot, Verdict::Hurts)]);
    assert_eq!(judged(10_000, Metric::P99), by_latency);
    let (can, open) = judged(12_500, Metric::Throughput);
    let unknown = Verdict::Inconclusive { more_seconds: None };
    assert!(!can && open.iter().all(|(_, verdict)| *verdict == unknown), "{open:?}");
    assert_eq!(judged(12_500, Metric::P99).1[0], (0, Verdict::Matters), "it is ranked first");

    let analysis = analyse(&[measured(4)]);
    let as_ranked: Vec<_> = analysis.judged_by(analysis.ranked_by);
    assert_eq!(as_ranked.len(), analysis.targets.len());
    for (i, one) in as_ranked.into_iter().enumerate() {
        assert_eq!((one.target, one.verdict), (i, analysis.targets[i].verdict));
    }
    assert!(analysis.judged_by(Ranking { point_index: 9, ..analysis.ranked_by }).is_empty());
}

#[test]
fn without_latencies_there_is_only_the_throughput() {
    let mut run = open_load(12_500);
    run.points[0].kind = PointKind::Progress;
    for experiment in &mut run.experiments {
        experiment.points[0].latency.clear();
    }
    let analysis = analyse_ranking(&[run]);
    assert_eq!((analysis.load, analysis.ranked_by), (Some(Load::Open), Ranking::default()));
}

#[test]
fn the_first_point_with_latencies_is_ranked_by_and_the_first_of_all_is_probed() {
    let mut run = open_load(12_500);
    // What was the only point becomes the second; the first counts the same work.
    (run.points[0].kind, run.points[0].rank) = (PointKind::Latency, 1);
    run.push(Record::Point(PointRecord {
        id: 7,
        kind: PointKind::Progress,
        name: "done".into(),
        file: None,
        line: None,
        rank: 0,
    }));
    for experiment in &mut run.experiments {
        let count = experiment.points[0].count;
        experiment.points.push(PointCount { point: 7, count, latency: vec![] });
    }
    let runs = [run];
    for analysis in [analyse(&runs), analyse_ranking(&runs)] {
        assert_eq!(analysis.ranked_by, Ranking { point_index: 1, metric: Metric::Mean });
        assert_eq!(analysis.ranking_point().unwrap().name, "request");
        assert_eq!(analysis.targets[0].name, "cold");
    }
}

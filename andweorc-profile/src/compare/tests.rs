use super::*;
use crate::estimate::Metric;
use crate::estimate::tests::{PROBE, measured, probed, push, run};
use std::slice;

/// Noise as it was seen on virtual machines: runs drift, experiments vary, and some are disturbed.
#[derive(Clone, Copy)]
struct Noise {
    /// Standard deviation between runs, of the throughput; the p99 drifts by twice as much.
    drift: f64,
    /// Standard deviation inside a run; that of the p99 is four times as large.
    inside: f64,
    /// Share of the baselines that something else on the machine slows down by a fifth.
    disturbed: f64,
}

const USUAL: Noise = Noise { drift: 0.015, inside: 0.025, disturbed: 0.03 };

/// Two profiles of one run each.
fn of_two(a: &Run, b: &Run) -> Option<Comparison> {
    compare(slice::from_ref(a), slice::from_ref(b), &Limits::default())
}

/// Standard normal.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// A side of so many runs, each of 15 baselines (a run of about 15 s), with a service this much
/// slower (0.1: throughput 10 % lower, latency 1/0.9 of what it was).
fn side(random: &mut fastrand::Rng, runs: usize, slower: f64, noise: Noise) -> Vec<Run> {
    let one = |random: &mut fastrand::Rng| {
        let mut run = run();
        let (drift, tail) = (noise.drift * normal(random), 2.0 * noise.drift * normal(random));
        for _ in 0..15 {
            let disturbed = if random.f64() < noise.disturbed { 0.8 } else { 1.0 };
            let rate = (drift + noise.inside * normal(random)).exp() * disturbed * (1.0 - slower);
            let latency =
                (tail + 4.0 * noise.inside * normal(random)).exp() / disturbed / (1.0 - slower);
            push(&mut run, None, 0.0, (10_000.0 * rate) as u64, (1e6 * latency) as u64);
        }
        run
    };
    (0..runs).map(|_| one(random)).collect()
}

/// Of so many pairs: the share in which (the throughput, any of the outcomes) regressed.
fn regressed(pairs: u32, runs: usize, slower: f64, noise: Noise) -> (f64, f64) {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut throughput, mut any) = (0, 0);
    for _ in 0..pairs {
        let (a, b) = (side(&mut random, runs, 0.0, noise), side(&mut random, runs, slower, noise));
        let outcomes = compare(&a, &b, &Limits::default()).unwrap().outcomes;
        assert_eq!(outcomes.len(), 2);
        throughput += u32::from(outcomes[0].state == State::Regressed);
        any += u32::from(outcomes.iter().any(|one| one.state == State::Regressed));
    }
    (f64::from(throughput) / f64::from(pairs), f64::from(any) / f64::from(pairs))
}

#[test]
fn equal_versions_seldom_raise_an_alarm_and_a_true_change_is_caught() {
    for drift in [0.01, 0.015, 0.02] {
        for inside in [0.02, 0.03] {
            for runs in [1, 2, 3, 5] {
                let noise = Noise { drift, inside, ..USUAL };
                let (_, alarms) = regressed(300, runs, 0.0, noise);
                let (caught, _) = regressed(300, runs, 0.1, noise);
                println!(
                    "drift {drift}, inside {inside}, {runs} runs a side: alarms {alarms:.3}, caught {caught:.3}"
                );
                assert!(alarms <= 0.05);
                assert!(caught >= if runs == 1 { 0.75 } else { 0.9 });
            }
        }
    }
}

#[test]
fn that_nothing_changed_is_shown_by_some_runs() {
    let mut random = fastrand::Rng::with_seed(3);
    for (runs, least) in [(2, 0.1), (3, 0.6), (4, 0.8)] {
        let mut shown = 0;
        for _ in 0..200 {
            let (a, b) = (side(&mut random, runs, 0.0, USUAL), side(&mut random, runs, 0.0, USUAL));
            let state = compare(&a, &b, &Limits::default()).unwrap().outcomes[0].state;
            shown += u32::from(matches!(state, State::Unchanged { .. }));
        }
        let share = f64::from(shown) / 200.0;
        println!("{runs} runs a side: unchanged {share:.3}");
        assert!(share >= least);
    }
}

#[test]
fn a_drift_larger_than_assumed_is_learned_from_several_runs() {
    let noise = Noise { drift: 0.05, ..USUAL };
    let (alarms, _) = regressed(300, 5, 0.0, noise);
    println!("5 runs a side: alarms {alarms:.3}");
    assert!(alarms <= 0.05);
}

#[test]
fn comparison_reports_improved_and_unchanged_metrics() {
    let mut random = fastrand::Rng::with_seed(5);
    let (a, b) = (side(&mut random, 3, 0.0, USUAL), side(&mut random, 3, -0.2, USUAL));
    let outcomes = compare(&a, &b, &Limits::default()).unwrap().outcomes;
    let metrics = outcomes.iter().map(|one| one.metric).collect::<Vec<_>>();
    assert_eq!(metrics, [Metric::Throughput, Metric::P99]);
    for one in &outcomes {
        assert_eq!(one.state, State::Improved, "{one:?}");
        assert!(one.ci_low < Some(one.change_pct) && one.ci_high > Some(one.change_pct));
        assert_eq!((one.runs, one.baselines), ([3, 3], [45, 45]));
    }
    let (change, latency) = (outcomes[0].change_pct, outcomes[1].change_pct);
    assert!((change - 20.0).abs() < 5.0 && (latency + 16.7).abs() < 8.0, "{change} {latency}");
    let same = side(&mut random, 8, 0.0, USUAL);
    match compare(&same, &side(&mut random, 8, 0.0, USUAL), &Limits::default()).unwrap().outcomes[0]
        .state
    {
        State::Unchanged { bound } => assert!(bound > 0.0 && bound <= 5.0, "{bound}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_service_with_two_modes_is_erratic() {
    let modes = |slow: usize| {
        let mut run = run();
        for i in 0..40 {
            push(&mut run, None, 0.0, if i % 10 < slow { 7_000 } else { 10_000 }, 1_000);
        }
        run
    };
    let of = |a: &[Run], b: &[Run]| compare(a, b, &Limits::default()).unwrap().outcomes[0].state;
    let state = of(&[modes(0)], &[modes(5)]);
    assert!(matches!(state, State::Erratic { scatter } if scatter > 15.0), "{state:?}");
    let state = of(&[modes(0), modes(0)], &[modes(10), modes(0)]);
    assert!(matches!(state, State::Erratic { .. }), "{state:?}");
}

#[test]
fn a_service_that_stalls_is_not_unchanged() {
    let stalls = |each: usize| {
        let mut run = run();
        for i in 0..40 {
            push(&mut run, None, 0.0, 10_000, 1_000);
            if i % each == 0 {
                run.experiments[i].points.clear();
            }
        }
        run
    };
    let of = |a: &Run, b: &Run| of_two(a, b).unwrap().outcomes[0].clone();
    let one = of(&stalls(100), &stalls(2));
    assert!(matches!(one.state, State::Erratic { .. }), "{one:?}");
    assert_eq!(one.baselines, [40, 40]);
    // A single one is an outlier.
    assert_eq!(of(&stalls(100), &stalls(100)).change_pct, 0.0);
}

/// A run in which both targets are tested at 50 %, with these effects in %.
fn tested(hot: f64, cold: f64) -> Run {
    let mut run = run();
    push(&mut run, None, 0.0, 10_000, 1_000);
    for i in 0..6 {
        for (target, effect) in [(1, hot), (2, cold)] {
            let noise = f64::from(i % 3 - 1);
            push(&mut run, Some(target), 0.5, (100.0 * (100.0 + effect + noise)) as u64, 1_000);
            push(&mut run, None, 0.0, 10_000, 1_000);
        }
    }
    run
}

#[test]
fn impacts_are_compared_target_by_target() {
    let a: Vec<Run> = (0..3).map(|_| tested(20.0, 0.0)).collect();
    let mut b: Vec<Run> = (0..3).map(|_| tested(2.0, 15.0)).collect();
    for run in &mut b {
        // Other ids, lines and folders are the same targets.
        run.targets.reverse();
        for target in &mut run.targets {
            target.line = target.line.map(|line| line + 7);
            target.file = Some("/home/me/shop/src/shop.rs".into());
        }
    }
    let targets = compare(&a, &b, &Limits::default()).unwrap().targets;
    let told: Vec<_> = targets.iter().map(|one| (one.name.as_str(), one.state.unwrap())).collect();
    assert_eq!(told, [("cold", State::Regressed), ("hot", State::Improved)]);
    let cold = &targets[0];
    let (before, after) = (cold.impact_a.unwrap(), cold.impact_b.unwrap());
    assert!(before.slope.abs() < 1.0 && (after.slope - 30.0).abs() < 1.0, "{cold:?}");
    assert!(cold.ci_low.unwrap() < 30.0 && cold.ci_high.unwrap() > 30.0, "{cold:?}");
    assert_eq!((cold.presence, before.n), (Presence::Both, 18));
    assert_eq!(cold.place_b.as_ref().unwrap().line, Some(27));
}

#[test]
fn new_gone_and_untested_targets_have_no_change() {
    let (a, mut b) = (tested(20.0, 0.0), tested(20.0, 0.0));
    b.targets[1].name = "render".into();
    let targets = of_two(&a, &b).unwrap().targets;
    let find = |name: &str| targets.iter().find(|target| target.name == name).unwrap();
    assert_eq!(find("render").presence, Presence::New);
    assert_eq!(find("cold").presence, Presence::Gone);
    for name in ["render", "cold"] {
        assert_eq!((find(name).state, find(name).change), (None, None), "{name}");
    }
    let mut untested = tested(20.0, 0.0);
    untested.experiments.retain(|one| one.target != Some(2));
    let targets = of_two(&a, &untested).unwrap().targets;
    let cold = targets.iter().find(|target| target.name == "cold").unwrap();
    assert_eq!((cold.presence, cold.state), (Presence::Both, Some(State::Inconclusive)));
    assert!(cold.impact_a.is_some() && cold.impact_b.is_none());
}

#[test]
fn speedups_that_can_not_be_are_left_out() {
    let (a, mut b) = (tested(20.0, 0.0), tested(20.0, 0.0));
    for (i, one) in b.experiments.iter_mut().filter(|one| one.target == Some(1)).enumerate() {
        one.speedup = [0.0, 1e308, f64::NAN, -1.0, 0.5, 0.5][i];
    }
    let targets = of_two(&a, &b).unwrap().targets;
    let hot = targets.iter().find(|target| target.name == "hot").unwrap();
    assert_eq!(hot.impact_b.unwrap().n, 2);
    assert!(hot.change.unwrap().abs() < 5.0, "{hot:?}");
}

#[test]
fn chance_finds_among_many_targets_are_rare() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut alarms = 0;
    for _ in 0..200 {
        let mut one = || -> Vec<Run> {
            let mut run = |_| tested(20.0 + 2.5 * normal(&mut random), 2.5 * normal(&mut random));
            (0..2).map(&mut run).collect()
        };
        let (a, b) = (one(), one());
        let targets = compare(&a, &b, &Limits::default()).unwrap().targets;
        let changed = |target: &TargetChange| {
            matches!(target.state, Some(State::Regressed | State::Improved))
        };
        alarms += u32::from(targets.iter().any(changed));
    }
    assert!(alarms <= 10, "{alarms} of 200");
}

#[test]
fn differences_in_setup_between_sides_are_noted() {
    let (mut a, mut b) = (measured(2), measured(2));
    b.header.host = "there".into();
    b.header.duration_ns = 60_000_000_000;
    (a.header.tokio, a.header.tokio_unstable) = (Some("1.54.1".into()), Some(true));
    (b.header.tokio, b.header.tokio_unstable) = (Some("1.54.1".into()), Some(false));
    let notes = of_two(&a, &b).unwrap().notes.join(
        "
",
    );
    for expected in [
        "the hosts differ: A here, B there",
        "A tokio_unstable, B stable tokio",
        "A 30s, B 1m",
        "one run on a side",
    ] {
        assert!(notes.contains(expected), "{expected} in {notes}");
    }
    let mut c = a.clone();
    for run in [&mut c, &mut b] {
        run.header = a.header.clone();
        run.header.build_id = Some("0b".into());
    }
    let notes = compare(&[c.clone(), c], &[b.clone(), b], &Limits::default()).unwrap().notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("the same build"));
}

fn without_probes(mut run: Run) -> Run {
    run.experiments.retain(|it| it.target != Some(PROBE));
    run
}

#[test]
fn a_throughput_that_is_the_loads_has_a_note() {
    let of = |a: f64, b: f64| of_two(&probed(a), &probed(b)).unwrap();
    let both = of(1.25, 1.24);
    assert_eq!(both.load, [Some(Load::Open); 2]);
    assert!(both.outcomes[0].note.as_ref().unwrap().starts_with("A and B kept up"));
    assert_eq!(both.outcomes[1].note, None, "a latency can move");
    assert!(of(1.25, 1.0).outcomes[0].note.as_ref().unwrap().starts_with("A kept up"));
    assert!(of(1.0, 1.25).outcomes[0].note.as_ref().unwrap().starts_with("B kept up"));
    assert_eq!(
        (of(1.0, 1.0).load, of(1.0, 1.0).outcomes[0].note.clone()),
        ([Some(Load::Closed); 2], None)
    );
    let unprobed = || without_probes(measured(2));
    assert_eq!(of_two(&unprobed(), &unprobed()).unwrap().load, [None; 2]);
}

/// Runs of a load that comes at its own pace: `hot` takes `of_hot` % off the mean latency at a
/// speedup of a half, and nothing moves the throughput.
fn kept_up(times: f64, of_hot: f64) -> Vec<Run> {
    let of = |seed: u64| {
        let mut run = probed(times);
        for i in 0..6 {
            let latency = 1e3 * (1.0 - of_hot / 100.0) + 2.0 * ((seed + i) % 3) as f64;
            push(&mut run, Some(1), 0.5, 1_000, latency as u64);
            push(&mut run, None, 0.0, 1_000, 1_000);
        }
        run
    };
    (0..3).map(of).collect()
}

#[test]
fn impacts_under_an_open_load_are_those_on_the_latency() {
    let of = |a: &[Run], b: &[Run]| compare(a, b, &Limits::default()).unwrap();
    let (small, large) = (kept_up(1.25, 5.0), kept_up(1.25, 20.0));
    for (a, b, state) in [(&small, &large, State::Regressed), (&large, &small, State::Improved)] {
        let found = of(a, b);
        let by = RankedBy { point: "request".into(), metric: Metric::Mean };
        assert_eq!(found.ranked_by, by);
        let hot = &found.targets[0];
        let sign = if state == State::Regressed { -1.0 } else { 1.0 };
        assert_eq!((hot.name.as_str(), hot.state), ("hot", Some(state)), "{hot:?}");
        assert!((hot.change.unwrap() - sign * 30.0).abs() < 1.0, "{hot:?}");
        assert!(!found.outcomes[0].note.as_ref().unwrap().contains("impacts"));
    }
    // A side that can't keep up has latencies too.
    assert_eq!(of(&small, &kept_up(1.0, 20.0)).ranked_by.metric, Metric::Mean);
    let waits = of(&kept_up(1.0, 5.0), &kept_up(1.0, 20.0));
    assert_eq!(waits.ranked_by.metric, Metric::Throughput);
    assert!(waits.targets[0].change.unwrap().abs() < 1.0, "{waits:?}");
}

#[test]
fn without_latencies_impacts_are_those_on_the_throughput() {
    let (a, mut b) = (kept_up(1.25, 5.0), kept_up(1.25, 20.0));
    let counts = b.iter_mut().flat_map(|run| &mut run.experiments);
    counts.flat_map(|one| &mut one.points).for_each(|count| count.latency.clear());
    let found = compare(&a, &b, &Limits::default()).unwrap();
    assert_eq!(found.ranked_by.metric, Metric::Throughput);
    assert!(found.outcomes[0].note.as_ref().unwrap().contains("throughput and impacts are"));
}

#[test]
fn without_a_common_point_there_is_nothing_to_compare() {
    let (a, mut b) = (measured(2), measured(2));
    b.points[0].name = "reply".into();
    assert_eq!(of_two(&a, &b), None);
    assert_eq!(compare(&[a], &[], &Limits::default()), None);
}

#[test]
fn discarded_baselines_are_left_out() {
    let (a, mut b) = (measured(3), measured(3));
    for one in b.experiments.iter_mut().step_by(2).take(3) {
        one.points[0].count /= 2;
        one.discarded = Some("steal".into());
    }
    let outcomes = of_two(&a, &b).unwrap().outcomes;
    assert_eq!(outcomes[0].baselines[0] - outcomes[0].baselines[1], 3);
    assert!(outcomes[0].change_pct.abs() < 1.0, "{outcomes:?}");
}

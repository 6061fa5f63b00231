//! Several runs, which differ by more than their experiments scatter.

use super::*;
use crate::estimate::runs::{Said, combine, differ, odd};

/// Runs of one program, by what each says of one effect, which is zero.
#[derive(Clone, Copy, Debug)]
struct Replicas {
    runs: usize,
    /// Standard deviation between them.
    tau: f64,
    /// Some are eight times as long as others.
    unequal: bool,
}

/// Standard error of what the shortest run says, and degrees of freedom from which it knows that.
const ERROR: f64 = 0.01;
const KNOWN: usize = 10;

impl Replicas {
    fn draw(&self, random: &mut Rng) -> Vec<Said> {
        let one = |run: usize| {
            let length = if self.unequal { [1.0, 2.0, 3.0, 8.0][run % 4] } else { 1.0 };
            let variance = ERROR * ERROR / length;
            let value = self.tau * normal(random) + variance.sqrt() * normal(random);
            let squares: f64 = (0..KNOWN).map(|_| normal(random).powi(2)).sum();
            let of_one = variance * squares / KNOWN as f64;
            Said { run, value, variance: scatter::Variance { of_one, df: KNOWN as f64 } }
        };
        (0..self.runs).map(one).collect()
    }
}

#[test]
fn intervals_of_runs_that_differ_hold_the_effect() {
    for tau in [0.0, 0.01, 0.03] {
        for unequal in [false, true] {
            for (runs, draws) in [(2, 600), (3, 600), (5, 600), (20, 300), (200, 200)] {
                let replicas = Replicas { runs, tau, unequal };
                let mut random = Rng::with_seed(runs as u64);
                let (mut covered, mut differs, mut named) =
                    (Share::default(), Share::default(), Share::default());
                for _ in 0..draws {
                    let said = replicas.draw(&mut random);
                    let together = combine(&said).unwrap();
                    covered.add(together.value.abs() <= together.half());
                    differs.add(differ(&said));
                    named.add(runs <= 20 && !odd(&said, 1).is_empty());
                }
                let [covered, differs, named] = [covered, differs, named].map(Share::value);
                let of = format!("{replicas:?}: {covered:.3}, differ {differs:.3}, odd {named:.3}");
                // Two and three runs are surer to hold it: they can't tell how much they differ.
                assert!(covered >= 0.93, "{of}");
                assert!(named <= 0.06, "{of}");
                assert!(tau > 0.0 || differs <= 0.05, "{of}");
                assert!(tau < 0.03 || runs < 20 || differs > 0.95, "{of}");
            }
        }
    }
}

#[test]
fn errors_of_runs_are_those_of_a_bootstrap_over_runs() {
    for (runs, tau) in [(20, 0.0), (20, 0.01), (20, 0.03), (60, 0.01)] {
        let replicas = Replicas { runs, tau, unequal: true };
        let mut random = Rng::with_seed(4);
        let (mut by_formula, mut by_bootstrap) = (0.0, 0.0);
        for _ in 0..20 {
            let said = replicas.draw(&mut random);
            by_formula += combine(&said).unwrap().error.powi(2);
            let mut again = || {
                let resampled: Vec<Said> = (0..runs).map(|_| said[random.usize(..runs)]).collect();
                combine(&resampled).unwrap().value
            };
            let values: Vec<f64> = (0..100).map(|_| again()).collect();
            let centre = stats::mean(&values);
            let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
            // A bootstrap is too small by one run.
            by_bootstrap += squares / 99.0 * runs as f64 / (runs as f64 - 1.0);
        }
        let ratio = (by_formula / by_bootstrap).sqrt();
        assert!((0.9..1.15).contains(&ratio), "{runs} runs, tau {tau}: {ratio:.3}");
    }
}

/// Many analyses of so many whole runs with so many experiments on each target at each speedup.
/// The effect of a target in a run is off by `tau` at a speedup of one half.
fn replicated(tau: f64, phases: &[usize], runs: usize, draws: u64) -> Told {
    let mut told = Told::default();
    for seed in 0..draws {
        let mut random = Rng::with_seed(seed);
        let run = |random: &mut Rng, i: usize| {
            let truths = EFFECTS[2..5].iter().map(|effect| (effect / 100.0).ln_1p());
            let curves: Vec<Curve> =
                truths.map(|truth| linear(truth + tau * normal(random))).collect();
            simulated_with(QUIET, &curves, [phases[i % phases.len()]; 2], random)
        };
        let runs: Vec<Run> = (0..runs).map(|i| run(&mut random, i)).collect();
        told.take(&analyse_ranking(&runs), &EFFECTS[2..5]);
    }
    told
}

#[test]
fn analyses_of_several_runs_hold_the_effects_and_claim_nothing_false() {
    // Experiments scatter by 0.012: replicas by nothing, as much, and by more. Phases of runs are
    // experiments on each target at each speedup.
    let cases: [(f64, &[usize], usize, u64); 9] = [
        (0.012, &[1, 2, 8], 2, 100),
        (0.012, &[1, 2, 8], 3, 100),
        (0.0, &[2], 5, 100),
        (0.012, &[2], 5, 150),
        (0.012, &[1, 2, 8], 5, 150),
        (0.03, &[2], 5, 150),
        (0.012, &[2], 20, 60),
        (0.012, &[1, 2, 8], 20, 40),
        (0.012, &[1], 200, 25),
    ];
    for (tau, phases, runs, draws) in cases {
        let told = replicated(tau, phases, runs, draws);
        let [covered, matters, nothing] =
            [told.covered, told.false_matters, told.false_nothing].map(Share::value);
        let of = format!(
            "tau {tau} {phases:?} {runs} runs: covered {covered:.3}, false matters {matters:.3}, false nothing {nothing:.3}"
        );
        assert!(covered >= 0.93 && matters <= 0.05 && nothing <= 0.05, "{of}");
    }
}

#[test]
fn runs_that_differ_are_told_and_an_odd_one_is_named() {
    let mut random = Rng::with_seed(1);
    let mut analysis = |tau: f64, odd: Option<usize>| {
        let run = |i: usize| {
            let off = if odd == Some(i) { 0.3 } else { tau * normal(&mut random) };
            simulated_with(QUIET, &[linear(0.2 + off), [0.0; 2]], [4, 4], &mut random)
        };
        analyse_ranking(&(0..10).map(run).collect::<Vec<_>>())
    };
    let part_0 = |analysis: &Analysis| {
        let target = analysis.targets.iter().find(|it| it.name == "part 0").unwrap().clone();
        (target.ranking_effect().unwrap().clone(), target.odd_runs)
    };
    let (alike, none) = part_0(&analysis(0.0, None));
    assert!(!alike.runs_differ && alike.tau.unwrap() < 1.0 && none.is_empty(), "{alike:?}");
    assert_eq!((alike.runs, alike.n), (10, 40));
    let (differ, none) = part_0(&analysis(0.05, None));
    assert!(differ.runs_differ && none.is_empty(), "{differ:?}");
    // A deviation of 0.05 of the logarithm is 6 points about an effect of 22 %.
    assert!((3.0..10.0).contains(&differ.tau.unwrap()), "{differ:?}");
    let (_, odd) = part_0(&analysis(0.01, Some(6)));
    assert_eq!(odd, [6]);
}

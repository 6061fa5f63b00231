//! Sampled targets whose CPU time goes with the time that passes and not with the work that is
//! done: a thread that waits by spinning is in its loop for as long as others take.
//!
//! While the target itself is sped up by `s`, all else is delayed by `s` for each second inside of
//! it. Of real work a unit takes as much CPU time as without that, and so does what is done once in
//! a while, by the program's clock, in a second of virtual time. What waits by spinning goes on for
//! all of the delay: its CPU time becomes `1 / (1 - s)` times as long, by the unit and by virtual
//! time alike. The **fill** of a target is how far it goes from the one to the other: the slope of
//! the logarithm of that ratio over `-ln(1 - s)`, 0 for work and 1 for a spinning thread.
//!
//! A target fills time when its fill is surely above [`LEAST_FILL`] by virtual time and by the hits
//! of each point, and no faster program comes of it. That it spins does not follow: a thread that
//! computes without a pause what nobody waits for looks the same, and so does one that writes
//! batches as fast as it can. Of all these the share of CPU says nothing.
//!
//! Samples tell the CPU time in a target, and not the delay that came of it, which is credited by
//! shares of contexts: in a context with work and a spinning loop these grow together.

use crate::estimate::observation::Observation;
use crate::estimate::series::Series;
use crate::stats::{slope_through_origin, t_quantile};
use crate::{ExperimentRecord, PointCount};
use std::collections::HashMap;

/// The least fill, at the lower end of its 95 % interval, of what fills time. Experiments cost CPU
/// time, so that work seems to fill some, and pays what a spinning thread would spin for.
const LEAST_FILL: f64 = 0.4;

/// With fewer experiments the scatter is hardly known.
const MIN_EXPERIMENTS: usize = 3;

/// Unit of what CPU time may go with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Unit {
    /// A second of virtual time.
    Time,
    /// A hit of the point with this id.
    Hit(u32),
}

/// The CPU time of sampled targets by each unit, in baselines and in the experiments on the target
/// itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    series: HashMap<(u32, Unit), Series>,
}

impl Sampled {
    /// The next experiment, with what its points did.
    pub(crate) fn push(
        &mut self,
        experiment: &ExperimentRecord,
        points: &HashMap<u32, &PointCount>,
        most: usize,
    ) {
        for time in &experiment.sampled {
            let units = points.keys().map(|&point| Unit::Hit(point)).chain([Unit::Time]);
            for unit in units {
                self.series.entry((time.target, unit)).or_default();
            }
        }
        for (&(target, unit), series) in &mut self.series {
            if experiment.target.is_some_and(|it| it != target) {
                continue;
            }
            let busy = experiment.sampled.iter().find(|time| time.target == target);
            let units = match unit {
                Unit::Time => experiment.real_ns.checked_sub(experiment.delay_ns),
                Unit::Hit(point) => points.get(&point).map(|count| count.count),
            };
            let value = busy.zip(units).map(|(busy, units)| busy.busy_ns as f64 / units as f64);
            series.push(experiment, value, most);
        }
    }

    /// Whether the CPU time of the target with this id goes with time, by all units; `None` without
    /// enough experiments on it.
    pub(crate) fn fills_time(&self, target: u32) -> Option<bool> {
        let of_target = self.series.iter().filter(|((it, _), _)| *it == target);
        let least: Option<Vec<f64>> =
            of_target.map(|(_, series)| least_fill(series.observations(target))).collect();
        let least = least.filter(|least| !least.is_empty())?;
        Some(least.into_iter().all(|least| least > LEAST_FILL))
    }
}

/// The lower end of the 95 % interval of a target's fill.
fn least_fill(observations: impl Iterator<Item = Observation>) -> Option<f64> {
    let below_one = observations.filter(|one| one.speedup < 1.0);
    let data: Vec<(f64, f64)> =
        below_one.map(|one| (-(1.0 - one.speedup).ln(), one.log_ratio)).collect();
    if data.len() < MIN_EXPERIMENTS {
        return None;
    }
    let fill = slope_through_origin(&data);
    let df = (data.len() - 1) as f64;
    let squares: f64 = data.iter().map(|(x, y)| (y - fill * x).powi(2)).sum();
    let leverage: f64 = data.iter().map(|(x, _)| x * x).sum();
    Some(fill - t_quantile(df) * (squares / df / leverage).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::analyse;
    use crate::estimate::tests::run_with_probe;
    use crate::{PointKind, PointRecord, Record, Run, TargetTime};

    /// CPU time of a target in an experiment of so many virtual ns, with so many hits of the first
    /// point and of the second, that delayed by so many ns.
    type Cpu = fn(time: f64, hits: [f64; 2], delay: f64) -> f64;

    /// A run in which target 1 is tested at 25 and 50 %, `rounds` times each. All other time is
    /// delayed by it for as long as the CPU time in it says. Throughput changes by `change` % for
    /// each % of the speedup, that of the second point by half of it.
    fn run_of(cpu: Cpu, rounds: u64, change: f64) -> Run {
        let mut run = run_with_probe();
        run.push(Record::Point(PointRecord {
            id: 2,
            kind: PointKind::Progress,
            name: "other".into(),
            file: None,
            line: None,
            rank: 1,
        }));
        let mut random = fastrand::Rng::with_seed(7);
        let mut hold = |target: Option<u32>, speedup: f64, change: f64| {
            let mut noisy = |value: f64| value * (1.0 + 0.02 * (random.f64() - 0.5));
            let time = 1e9;
            let hits =
                [1.0, 0.5].map(|of_it| noisy(1_000.0 * (1.0 + of_it * change * speedup)).round());
            // D grows by the speedup of the time inside, and that may grow by D.
            let delay = (0..100).fold(0.0, |delay, _| speedup * cpu(time, hits, delay));
            let busy_ns = noisy(cpu(time, hits, delay)) as u64;
            let delay_ns = delay as u64;
            let count = |(point, hits)| PointCount { point, count: hits as u64, latency: vec![] };
            run.push(Record::Experiment(ExperimentRecord {
                seq: run.experiments.len() as u32,
                target,
                speedup,
                start_ns: 0,
                real_ns: time as u64 + delay_ns,
                delay_ns,
                cpu_ns: None,
                points: [1, 2].into_iter().zip(hits).map(count).collect(),
                sampled: vec![TargetTime { target: 1, busy_ns, count: 1, waits: None }],
                joint: None,
                discarded: None,
            }));
        };
        hold(None, 0.0, 0.0);
        for _ in 0..2 {
            hold(Some(crate::estimate::tests::PROBE), 0.2, 0.0);
            hold(None, 0.0, 0.0);
        }
        for _ in 0..rounds {
            for speedup in [0.25, 0.5] {
                hold(Some(1), speedup, change);
                hold(None, 0.0, 0.0);
            }
        }
        run
    }

    const SPINNING: Cpu = |time, _, delay| 0.6 * time + delay;
    const BY_HITS: Cpu = |_, [hits, _], _| 400_000.0 * hits;
    const BY_OTHER_HITS: Cpu = |_, [_, hits], _| 400_000.0 * hits;
    const BY_THE_CLOCK: Cpu = |time, _, _| 0.6 * time;

    fn fills_time(cpu: Cpu, rounds: u64, change: f64) -> bool {
        let analysis = analyse(&[run_of(cpu, rounds, change)]);
        analysis.targets.iter().find(|target| target.name == "hot").unwrap().fills_time
    }

    #[test]
    fn a_spinning_loop_fills_time() {
        assert!(fills_time(SPINNING, 3, 0.0));
    }

    #[test]
    fn work_fills_no_time_whatever_it_goes_with() {
        for change in [-0.3, 0.0, 0.3] {
            for work in [BY_HITS, BY_OTHER_HITS, BY_THE_CLOCK] {
                assert!(!fills_time(work, 3, change), "{change}");
            }
        }
    }

    #[test]
    fn what_makes_the_program_faster_or_slower_does_not_fill_time() {
        assert!(!fills_time(SPINNING, 5, 0.3));
        assert!(!fills_time(SPINNING, 5, -0.3));
    }

    #[test]
    fn two_experiments_do_not_tell_that_a_target_fills_time() {
        assert!(!fills_time(SPINNING, 1, 0.0));
        assert!(fills_time(SPINNING, 2, 0.0));
    }

    #[test]
    fn one_run_that_sees_work_outweighs_one_that_sees_a_spinning_loop() {
        let [spins, works] = [SPINNING, BY_HITS].map(|cpu| run_of(cpu, 3, 0.0));
        assert!(analyse(&[spins.clone(), spins.clone()]).targets[0].fills_time);
        assert!(!analyse(&[spins, works]).targets[0].fills_time);
    }

    #[test]
    fn a_profile_without_samples_in_its_experiments_tells_nothing() {
        let mut run = run_of(SPINNING, 3, 0.0);
        run.experiments.iter_mut().for_each(|one| one.sampled.clear());
        assert!(!analyse(&[run]).targets[0].fills_time);
    }
}

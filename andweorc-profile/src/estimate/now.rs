//! The figures of points now, undelayed, and as they would be at each speedup.
//!
//! A metric is now its mean over the baselines that can be used and in which the point did
//! anything. What it would be is that, changed by the effect.

use crate::estimate::metric::{Metric, Now};
use crate::estimate::observe::Rows;
use crate::estimate::summary::{PointSummary, TargetSummary};

/// Gives each point what it does now. `rows` know the points by the same indices.
pub(crate) fn measure(points: &mut [PointSummary], rows: &[Rows<'_>]) {
    for (index, point) in points.iter_mut().enumerate() {
        let level = |metric| {
            let levels = rows.iter().map(|run| run.of_all_baselines(index, metric));
            let (sum, n) = levels.fold((0.0, 0), |(sum, n), (more, m)| (sum + more, n + m));
            (n > 0).then(|| sum / n as f64)
        };
        point.now = Now {
            throughput: level(Metric::Throughput),
            mean: level(Metric::Mean),
            p50: level(Metric::P50),
            p90: level(Metric::P90),
            p99: level(Metric::P99),
        };
    }
}

/// Gives each effect that is known what the metric would be.
pub(crate) fn foresee(targets: &mut [TargetSummary], points: &[PointSummary]) {
    for effect in targets.iter_mut().flat_map(|target| &mut target.effects) {
        let now = points.get(effect.point_index).and_then(|point| point.now.get(effect.metric));
        effect.value = now
            .filter(|_| !effect.says_nothing())
            .map(|now| now * (1.0 + effect.effect_pct / 100.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::analyse;
    use crate::estimate::tests::{closed, measured, push};

    #[test]
    fn values_are_those_of_baselines_changed_by_the_effect() {
        let analysis = analyse(&[measured(3)]);
        let now = analysis.points[0].now;
        let (rate, p99) = (now.throughput.unwrap(), now.p99.unwrap());
        assert!((9_970.0..10_030.0).contains(&rate), "{rate}");
        assert_eq!((p99, now.mean), (1_000.0, Some(1_000.0)));
        let hot = &analysis.targets[0];
        for effect in &hot.effects {
            let before = now.get(effect.metric).unwrap();
            let then = effect.value.unwrap();
            assert!((then / before - 1.0 - effect.effect_pct / 100.0).abs() < 1e-9, "{effect:?}");
        }
    }

    #[test]
    fn an_interval_that_says_nothing_foretells_no_value() {
        let mut run = closed();
        for latency in [1_000, 9_000, 1_000, 20_000, 900] {
            push(&mut run, None, 0.0, 10_000, latency);
            push(&mut run, Some(1), 0.5, 10_000, latency * 2);
        }
        let analysis = analyse(&[run]);
        let effects = &analysis.targets[0].effects;
        let effect = effects.iter().find(|effect| effect.metric == Metric::Mean).unwrap();
        assert!(effect.says_nothing() && effect.value.is_none(), "{effect:?}");
        assert!(analysis.points[0].now.throughput.is_some());
    }
}

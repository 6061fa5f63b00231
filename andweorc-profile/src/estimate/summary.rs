//! The results: points, targets, effects, impacts.

use crate::estimate::metric::{Metric, Now, Ranking};
use crate::estimate::verdict::Verdict;
use crate::stats::Regression;
use crate::{PointKind, PointRecord, TargetKind, TargetRecord};
use serde::Serialize;

/// Kind, name, file and line, which make a target or a point of kind `K` the same in two runs.
pub(crate) type Identity<'a, K> = (K, &'a str, Option<&'a str>, Option<u32>);

/// A point.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PointSummary {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: PointKind,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line, where known.
    pub line: Option<u32>,
    /// The figures in baselines.
    pub now: Now,
}

impl From<&PointRecord> for PointSummary {
    fn from(record: &PointRecord) -> PointSummary {
        PointSummary {
            name: record.name.clone(),
            kind: record.kind,
            file: record.file.clone(),
            line: record.line,
            now: Now::default(),
        }
    }
}

impl PointSummary {
    /// Whether a run means this point: ids are local to a run, names and places are not.
    pub fn is(&self, record: &PointRecord) -> bool {
        self.identity() == record.identity()
    }

    pub(crate) fn identity(&self) -> Identity<'_, PointKind> {
        (self.kind, &self.name, self.file.as_deref(), self.line)
    }
}

impl PointRecord {
    pub(crate) fn identity(&self) -> Identity<'_, PointKind> {
        (self.kind, &self.name, self.file.as_deref(), self.line)
    }
}

impl TargetRecord {
    pub(crate) fn identity(&self) -> Identity<'_, TargetKind> {
        (self.kind, &self.name, self.file.as_deref(), self.line)
    }
}

/// A target and all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TargetSummary {
    /// Its kind.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
    /// Source file, where known.
    pub file: Option<String>,
    /// Line, where known.
    pub line: Option<u32>,
    /// Its share of the program's CPU time, 0 to 1, where it was measured.
    pub share: Option<f64>,
    /// Time inside it per time that passed, summed over threads, where it was measured: 0.5 is half
    /// of the wall time on one thread, and two threads that are inside it all the time make 2.
    pub wall_share: Option<f64>,
    /// Whether its CPU time goes with the time that passes and not with the work that is done, as
    /// that of a thread that spins: its shares say nothing of what it is worth then. Only sampled
    /// targets are known to, from experiments on them.
    pub fills_time: bool,
    /// By point, metric and speedup.
    pub effects: Vec<Effect>,
    /// By point and metric.
    pub impacts: Vec<Impact>,
    /// The runs that say something else of it than all others do, by their indices: each lies
    /// outside of what those let expect of it. Without odd ones a report of several runs names one
    /// in at most one of twenty.
    pub odd_runs: Vec<usize>,
    /// Metric that the target is ranked and judged by.
    #[serde(skip)]
    pub ranked_by: Metric,
    /// Verdict on the target, by the metric that it is ranked by.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Real seconds of experiments on it, their baselines included.
    pub seconds: f64,
}

/// The relative change of a metric of a point at one speedup.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Effect {
    /// Name of the point.
    pub point: String,
    /// Its index among the points of the analysis: another point may have the same name, at another
    /// place or of another kind.
    pub point_index: usize,
    /// The metric.
    pub metric: Metric,
    /// The speedup, a fraction.
    pub speedup: f64,
    /// The change in %, with what the [overhead](Effect::overhead_pct) took from it as far as
    /// processors are [short](crate::estimate::Analysis::shortage).
    pub effect_pct: f64,
    /// The metric as it would be: per second, or in ns. `None` where the interval says nothing, and
    /// where no baseline tells what it is now.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval, %; `None` where nothing was repeated, so that no scatter is
    /// known. The interval holds how repeats scatter, and of the
    /// [overhead](Effect::overhead_pct) on the better side what was not added back, and on the
    /// worse side what was.
    pub ci_low: Option<f64>,
    /// Upper end of its 95 % interval, %.
    pub ci_high: Option<f64>,
    /// Both ends by how repeats scatter alone, %.
    #[serde(skip)]
    pub repeats: Option<[f64; 2]>,
    /// How much more CPU time the program used for each hit of the point than in the baselines, %;
    /// pauses are not counted. That is what the experiments cost it. `None` where it was not
    /// measured.
    pub overhead_pct: Option<f64>,
    /// Number of experiments.
    pub n: usize,
    /// Number of runs that they are of.
    pub runs: usize,
    /// By how much runs differ, as a standard deviation in points; `None` with a single run, which
    /// can't tell.
    pub tau: Option<f64>,
    /// Runs differ by more than chance lets them (Cochran's Q, at 1 %).
    pub runs_differ: bool,
    /// Degrees of freedom of the interval; infinite without one.
    #[serde(skip)]
    pub df: f64,
    /// Two-sided p-value of no effect.
    #[serde(skip)]
    pub p_value: f64,
}

impl Effect {
    /// Whether its interval is so wide, more than 50 points to each side, that it says nothing.
    pub fn says_nothing(&self) -> bool {
        self.ci_low.zip(self.ci_high).is_some_and(|(low, high)| high - low > 2.0 * VAGUE)
    }

    /// Its interval, turned so that more is better.
    pub(crate) fn gain(&self) -> Option<(f64, f64)> {
        let (low, high) = (self.ci_low?, self.ci_high?);
        Some(if self.metric.less_is_better() { (-high, -low) } else { (low, high) })
    }

    /// Half the width of its interval by how repeats scatter, in points: more of them make it
    /// narrower. Infinite without one.
    pub(crate) fn half_width(&self) -> f64 {
        self.repeats.map_or(f64::INFINITY, |[low, high]| (high - low) / 2.0)
    }
}

/// Half the width of an interval that says nothing, in points.
const VAGUE: f64 = 50.0;

/// The slope of the effect over the speedup.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Impact {
    /// Name of the point.
    pub point: String,
    /// Its index among the points of the analysis: another point may have the same name, at another
    /// place or of another kind.
    pub point_index: usize,
    /// The metric.
    pub metric: Metric,
    /// Change in % for a speedup of 1.
    pub slope: f64,
    /// Lower end of its 95 % interval; `None` where nothing was repeated, so that no scatter is
    /// known.
    pub ci_low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub ci_high: Option<f64>,
    /// Share of the sum of squares about zero that the line explains; where there are many
    /// experiments, of the means of some of them each.
    pub r2: f64,
    /// Standard error of the slope; `None` where nothing was repeated.
    #[serde(skip)]
    pub std_error: Option<f64>,
    /// Two-sided p-value of no impact.
    pub p_value: f64,
    /// Number of experiments.
    pub n: usize,
}

impl Impact {
    /// The impact as the classic API tells it, in fractions instead of %. `None` without an
    /// interval.
    pub fn to_regression(&self) -> Option<Regression> {
        Some(Regression {
            slope: self.slope / 100.0,
            intercept: 0.0,
            r_squared: self.r2.max(0.0),
            slope_std_error: self.std_error? / 100.0,
            slope_ci_lower: self.ci_low? / 100.0,
            slope_ci_upper: self.ci_high? / 100.0,
            p_value: self.p_value,
            n: self.n,
        })
    }
}

impl TargetSummary {
    /// Whether a run means this target.
    pub fn is(&self, record: &TargetRecord) -> bool {
        self.identity() == record.identity()
    }

    pub(crate) fn identity(&self) -> Identity<'_, TargetKind> {
        (self.kind, &self.name, self.file.as_deref(), self.line)
    }

    /// The effect that it is ranked and judged by: that on the [metric](TargetSummary::ranked_by)
    /// of the first point that has it, at the largest speedup that was tested.
    pub fn ranking_effect(&self) -> Option<&Effect> {
        let on = self.effects.iter().filter(|effect| effect.metric == self.ranked_by);
        let point_index = on.map(|effect| effect.point_index).min()?;
        self.effect_on(Ranking { point_index, metric: self.ranked_by })
    }

    /// The effect on this metric of this point, at the largest speedup that was tested.
    pub fn effect_on(&self, by: Ranking) -> Option<&Effect> {
        self.effects
            .iter()
            .filter(|effect| effect.point_index == by.point_index && effect.metric == by.metric)
            .max_by(|a, b| a.speedup.total_cmp(&b.speedup))
    }

    /// The effect on a metric of the point with this index at this speedup.
    pub fn effect_at(&self, point_index: usize, metric: Metric, speedup: f64) -> Option<&Effect> {
        self.effects.iter().find(|effect| {
            (effect.point_index, effect.metric, effect.speedup) == (point_index, metric, speedup)
        })
    }

    /// The effects on a metric of the first point of this name, by rising speedup.
    pub fn effects_on<'a>(
        &'a self,
        point: &'a str,
        metric: Metric,
    ) -> impl DoubleEndedIterator<Item = &'a Effect> {
        let named = move |e: &&'a Effect| e.point == point && e.metric == metric;
        let first = self.effects.iter().filter(named).map(|e| e.point_index).min();
        self.effects.iter().filter(named).filter(move |e| Some(e.point_index) == first)
    }

    /// Half the width of the interval of the ranking effect, in points; infinite without one.
    pub fn half_width(&self) -> f64 {
        self.ranking_effect().map_or(f64::INFINITY, Effect::half_width)
    }
}

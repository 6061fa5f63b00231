//! Judging targets by their effects.

use crate::estimate::forecast;
use crate::estimate::summary::{Effect, TargetSummary};
use crate::estimate::verdict::{Verdict, is_nothing, is_something};

/// The surest gain, by which targets are ranked: the lower end of the interval of the effect,
/// turned so that more is better. A target without one is the last.
pub(crate) fn rank_key(effect: Option<&Effect>) -> f64 {
    effect.and_then(Effect::gain).map_or(f64::NEG_INFINITY, |(low, _)| low)
}

/// The verdict on a target by one of its effects, given whether that is a discovery.
pub(crate) fn verdict_of(target: &TargetSummary, effect: &Effect, discovered: bool) -> Verdict {
    let Some((low, high)) = effect.gain() else {
        return Verdict::Inconclusive { more_seconds: None };
    };
    let sign = if effect.metric.less_is_better() { -1.0 } else { 1.0 };
    let gain = sign * effect.effect_pct;
    if effect.n > 1 && effect.repeats.is_some_and(|[low, high]| is_nothing(low, high)) {
        return Verdict::Nothing;
    }
    if effect.n > 1 && is_something(low, high) && discovered {
        return if gain > 0.0 { Verdict::Matters } else { Verdict::Hurts };
    }
    let more_seconds = (effect.runs == 1).then(|| more_seconds(target, effect)).flatten();
    Verdict::Inconclusive { more_seconds }
}

/// About how many more seconds of experiments would tell.
fn more_seconds(target: &TargetSummary, effect: &Effect) -> Option<f64> {
    let judged = forecast::Judged {
        effect: effect.effect_pct,
        half: effect.half_width(),
        df: effect.df,
        n: effect.n,
    };
    let experiments = forecast::experiments(judged)?;
    let same = |it: &&Effect| it.metric == effect.metric && it.point_index == effect.point_index;
    let all = || target.effects.iter().filter(same);
    let held: f64 = all().map(|it| it.n as f64).sum();
    // The largest speedup gets two turns for each one of another.
    let will_be = experiments * (1.0 + (all().count() as f64 - 1.0) / 2.0);
    let more = (will_be - held).max(experiments - effect.n as f64);
    Some(more * target.seconds / held)
}

//! Advice on queues that grow.

use super::{Advice, Pattern, called, change};
use crate::Run;
use crate::estimate::backlog::{Growth, growing_point};
use crate::estimate::{Analysis, Effect, Metric, Ranking, TargetSummary};
use crate::report::words::{digits, time};

/// A target brings throughput if one as good by chance is rarer than this among those tested.
const BY_CHANCE: f64 = 0.05;

/// The target that surely brings the most throughput at a point. Where a queue grows the program is
/// what holds it up; and latency tells of what was before.
fn keeps_up(analysis: &Analysis, point: usize) -> Option<(&TargetSummary, &Effect)> {
    let tested = analysis.targets.len() as f64;
    let by = Ranking::new(point, Metric::Throughput);
    let effects = analysis.targets.iter().filter_map(|it| Some((it, it.effect_on(by)?)));
    let low = |effect: &Effect| effect.ci_low.unwrap_or(f64::NEG_INFINITY);
    effects
        .filter(|(_, effect)| low(effect) > 0.0 && effect.p_value * tested <= BY_CHANCE)
        .max_by(|(_, a), (_, b)| low(a).total_cmp(&low(b)))
}

/// A queue that grows, and the target that would let the program keep up.
pub(super) fn growing(runs: &[Run], analysis: &Analysis) -> Option<Advice> {
    let Growth { point, index, from, to } = growing_point(runs, &analysis.points)?;
    let (target, effect) = keeps_up(analysis, index)?;
    let text = format!(
        "Ever more of it is open, {} at first and {} at last, and its latency has risen from {} to \
         {}, while {} a second end: more comes than is done, and a queue takes it all. {:.0} % faster \
         `{}` brings {}: make it faster, or let several tasks do it. Bound the queue, so that who \
         sends waits before memory ends.",
        digits(from.open()),
        digits(to.open()),
        time(from.latency_ns),
        time(to.latency_ns),
        digits(to.per_second),
        100.0 * effect.speedup,
        called(target),
        change(effect),
    );
    let target = format!("point:{}", point.name);
    Some(Advice { pattern: Pattern::UnboundedBacklog, target, text })
}

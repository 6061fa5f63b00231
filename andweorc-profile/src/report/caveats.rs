//! Sentences on what makes a report less sure, for reports in words and for machines.

use crate::estimate::Analysis;

/// From this share of the stretches on, what was left out is told first.
const NOISY: f64 = 0.1;

/// Other processes are told of from so many cores on that they use.
const OTHERS: f64 = 0.1;

/// Experiments are said to cost something from so many per cent of CPU time a hit on.
const COSTLY: f64 = 1.0;

/// The sentence on a machine that was busy with something else; `None` where little was left out.
pub fn busy(analysis: &Analysis) -> Option<String> {
    let (discarded, stretches) = (analysis.discarded, analysis.stretches);
    let share = discarded as f64 / stretches.max(1) as f64;
    (share >= NOISY).then(|| {
        format!(
            "The machine was busy with something else, stood still, or met a limit: {:.0} % of \
             stretches ({discarded} of {stretches}) left out.",
            share * 100.0
        )
    })
}

/// That other processes used processors: `other processes used 0.4 cores`. `None` where they used
/// next to none, or the system does not tell.
pub fn others(analysis: &Analysis) -> Option<String> {
    let others = analysis.cores_used_by_others.filter(|&others| others >= OTHERS)?;
    Some(format!("other processes used {others:.1} cores"))
}

/// The sentence on the CPU time that experiments cost the program for each hit; `None` where that
/// is little.
pub fn cost(analysis: &Analysis) -> Option<String> {
    let judged = analysis.targets.iter().filter_map(|target| target.ranking_effect());
    let most = judged.filter_map(|effect| effect.overhead_pct).fold(0.0, f64::max);
    (most >= COSTLY).then(|| {
        let added = 100.0 * analysis.shortage;
        if added < 1.0 {
            return format!(
                "Experiments cost up to {most:.0} % more CPU a hit: so much better an effect may \
                 be, as far as processors are what lacks."
            );
        }
        format!(
            "Experiments cost up to {most:.0} % more CPU a hit. Effects have {added:.0} % of that \
             added, since processors are short, and intervals hold none to all of it."
        )
    })
}

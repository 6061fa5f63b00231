//! What is known of the targets, in rows.

use andweorc_core::estimate::{Analysis, Verdict};
use andweorc_core::plain;
use andweorc_core::report::change;

/// A target at its largest speedup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) target: String,
    /// `50 %`
    pub(crate) speedup: String,
    /// `+25.1 % [24.0, 26.2]`, the interval narrowing as experiments come in.
    pub(crate) change: String,
    /// What it comes to so far.
    pub(crate) verdict: &'static str,
}

/// The targets in the order of the ranking.
pub(crate) fn rows(analysis: &Analysis) -> Vec<Row> {
    let Some(point) = analysis.ranking_point() else { return Vec::new() };
    let row = |target: &andweorc_core::estimate::TargetSummary| {
        let effect = target.effects_on(&point.name, analysis.ranked_by.metric).next_back()?;
        Some(Row {
            target: plain::name(&target.name).into_owned(),
            speedup: format!("{:.0} %", effect.speedup * 100.0),
            change: change(effect),
            verdict: match target.verdict {
                Verdict::Matters => "matters",
                Verdict::Hurts => "slows down",
                Verdict::Nothing => "changes nothing",
                Verdict::Inconclusive { .. } => "not known yet",
            },
        })
    };
    analysis.targets.iter().filter_map(row).collect()
}

//! Rows of the table of targets: what is known of each so far.

use andweorc_profile::estimate::{Analysis, TargetSummary, Verdict};
use andweorc_profile::report::{change, label, value};

/// A target at its largest speedup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) target: String,
    /// `50 %`
    pub(crate) speedup: String,
    /// `+25.1 % [24.0, 26.2]`, the interval narrowing as experiments come in.
    pub(crate) change: String,
    /// `865/s`, what the metric would be.
    pub(crate) then: String,
    /// Verdict on the target so far.
    pub(crate) verdict: &'static str,
}

/// The targets in the order of the ranking.
pub(crate) fn rows(analysis: &Analysis) -> Vec<Row> {
    let row = |target: &TargetSummary| {
        let effect = target.ranking_effect()?;
        Some(Row {
            target: label(target),
            speedup: format!("{:.0} %", effect.speedup * 100.0),
            change: change(effect),
            then: effect.value.map_or(String::new(), |then| value(effect.metric, then)),
            verdict: match target.verdict {
                Verdict::Matters => "matters",
                Verdict::Hurts => "slows down",
                Verdict::Nothing => "changes nothing",
                _ => "not known yet",
            },
        })
    };
    analysis.targets.iter().filter_map(row).collect()
}

//! The report for machines.

use crate::estimate::{
    AllocationLine, AllocationSummary, Analysis, Edge, EventSummary, JointSummary, Load, LongPolls,
    PointSummary, PollSummary, Probes, Ranking, TargetSummary, WaitSummary,
};
use crate::plain;
use crate::report::requests::{RequestSummary, summaries};
use crate::report::{Advice, Next, advice, next, notes, real_ns};
use crate::{Run, VERSION};
use serde::Serialize;

/// The version of the JSON report.
///
/// **Bump it whenever a key goes, or changes its meaning, unit or type**; a new key needs no bump.
/// `docs/book/src/reference/report-json.md` says what each key means.
pub const REPORT_VERSION: u32 = 4;

/// The report as JSON: `{"schema", "program", .., "points": [..], "targets": [{.., "effects": [..],
/// "impacts": [..]}]}`, targets in the order of the ranking. `schema` is that of the profile. Names
/// are whole, and what is not seen in them stands as `\u202e`. Intervals that are not known are
/// `null`. `docs/book/src/reference/report-json.md` has it all.
pub fn json(runs: &[Run], analysis: &Analysis) -> String {
    #[derive(Serialize)]
    struct Report<'a> {
        schema: u32,
        report_version: u32,
        program: Option<&'a str>,
        host: Option<&'a str>,
        start_unix_ms: Option<u64>,
        runs: usize,
        seconds: f64,
        cores: Option<usize>,
        cores_used: Option<f64>,
        cores_used_by_others: Option<f64>,
        shortage: f64,
        joint: Option<&'a JointSummary>,
        points: &'a [PointSummary],
        targets: &'a [TargetSummary],
        waits: &'a [WaitSummary],
        polls: &'a [PollSummary],
        long_polls: Option<&'a LongPolls>,
        edges: &'a [Edge],
        allocations: &'a [AllocationSummary],
        allocation_lines: &'a [AllocationLine],
        events: Option<&'a EventSummary>,
        requests: Vec<RequestSummary<'a>>,
        load: Option<Load>,
        probes: Option<Probes>,
        ranked_by: Ranking,
        experiments: usize,
        baselines: usize,
        stretches: usize,
        #[serde(rename = "spoiled")]
        discarded: usize,
        advice: Vec<Advice>,
        notes: Vec<String>,
        next: Next,
    }
    let header = runs.first().map(|run| &run.header);
    let report = Report {
        schema: VERSION,
        report_version: REPORT_VERSION,
        program: header.map(|header| &*header.program),
        host: header.map(|header| &*header.host),
        start_unix_ms: header.map(|header| header.start_unix_ms),
        runs: runs.len(),
        seconds: runs.iter().map(real_ns).sum::<u64>() as f64 / 1e9,
        cores: header.map(|header| header.cores),
        cores_used: analysis.cores_used,
        cores_used_by_others: analysis.cores_used_by_others,
        shortage: analysis.shortage,
        joint: analysis.joint.as_ref(),
        points: &analysis.points,
        targets: &analysis.targets,
        waits: &analysis.waits,
        polls: &analysis.polls,
        long_polls: analysis.long_polls.as_ref(),
        edges: &analysis.edges,
        allocations: &analysis.allocations,
        allocation_lines: &analysis.allocation_lines,
        events: analysis.events.as_ref(),
        requests: summaries(runs),
        load: analysis.load,
        probes: analysis.probes,
        ranked_by: analysis.ranked_by,
        experiments: analysis.experiments,
        baselines: analysis.baselines,
        stretches: analysis.stretches,
        discarded: analysis.discarded,
        advice: advice(runs, analysis),
        notes: notes(runs),
        next: next(runs, analysis),
    };
    let json = serde_json::to_string_pretty(&report);
    plain::json(json.expect("names are strings and numbers are numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{analyse, tests::measured};

    #[test]
    fn has_what_the_contract_names() {
        let runs = [measured(3)];
        let value: serde_json::Value = serde_json::from_str(&json(&runs, &analyse(&runs))).unwrap();
        assert_eq!(value["schema"], VERSION);
        assert_eq!(value["points"][0]["name"], "request");
        assert_eq!(value["points"][0]["kind"], "latency");
        let target = &value["targets"][0];
        assert_eq!((&target["kind"], &target["name"]), (&"span".into(), &"hot".into()));
        assert_eq!((&target["file"], &target["line"]), (&"src/shop.rs".into(), &10.into()));
        assert_eq!((&target["share"], &target["wall_share"]), (&0.2.into(), &0.1.into()));
        assert_eq!(target["fills_time"], false);
        assert_eq!(
            (&target["verdict"], &value["targets"][1]["verdict"]),
            (&"matters".into(), &"nothing".into())
        );
        assert_eq!(
            value["ranked_by"],
            serde_json::json!({"point_index": 0, "metric": "throughput"})
        );
        let metrics: Vec<_> =
            target["impacts"].as_array().unwrap().iter().map(|impact| &impact["metric"]).collect();
        assert_eq!(metrics, ["throughput", "mean", "p50", "p90", "p99"]);
        assert_eq!((&value["program"], &value["cores_used"]), (&"shop".into(), &0.5.into()));
        assert!(value["points"][0]["now"]["throughput"].as_f64().unwrap() > 9_900.0);
        for key in ["point", "metric", "speedup", "effect_pct", "value", "ci_low", "ci_high", "n"] {
            assert!(!target["effects"][0][key].is_null(), "{key}");
        }
        for key in ["point", "metric", "slope", "ci_low", "ci_high"] {
            assert!(!target["impacts"][0][key].is_null(), "{key}");
        }
    }
}

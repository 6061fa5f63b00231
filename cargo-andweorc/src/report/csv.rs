//! The effects as a table of comma-separated values, one row for each target, point, metric and
//! speedup.
//!
//! A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` for a formula, which may start
//! programs. Such a name has an apostrophe before it, as OWASP advises. Numbers are written by the
//! table itself, and stay numbers.

use andweorc_profile::estimate::{self, Metric};
use andweorc_profile::plain;
use andweorc_profile::{Run, TargetKind};
use csv::Writer;
use serde::Serialize;
use std::borrow::Cow;

/// A row. Cells that are not known are empty.
#[derive(Debug, Serialize)]
struct Row<'a> {
    rank: usize,
    kind: TargetKind,
    name: Cow<'a, str>,
    file: Option<Cow<'a, str>>,
    line: Option<u32>,
    share: Option<f64>,
    wall_share: Option<f64>,
    verdict: String,
    point: Cow<'a, str>,
    metric: Metric,
    speedup: f64,
    effect_pct: f64,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    n: usize,
    point_index: usize,
    now: Option<f64>,
    value: Option<f64>,
}

/// The names of the cells; the first line, even of a table without rows.
const HEAD: [&str; 18] = [
    "rank",
    "kind",
    "name",
    "file",
    "line",
    "share",
    "wall_share",
    "verdict",
    "point",
    "metric",
    "speedup",
    "effect_pct",
    "ci_low",
    "ci_high",
    "n",
    "point_index",
    "now",
    "value",
];

/// The table, in the order of the ranking.
pub(super) fn csv(runs: &[Run]) -> String {
    let analysis = estimate::analyse(runs);
    let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    table.write_record(HEAD).expect(IN_MEMORY);
    for (i, target) in analysis.targets.iter().enumerate() {
        for effect in &target.effects {
            let row = Row {
                rank: i + 1,
                kind: target.kind,
                name: cell(&target.name),
                file: target.file.as_deref().map(cell),
                line: target.line,
                share: target.share,
                wall_share: target.wall_share,
                verdict: target.verdict.to_string(),
                point: cell(&effect.point),
                metric: effect.metric,
                speedup: effect.speedup,
                effect_pct: effect.effect_pct,
                ci_low: effect.ci_low,
                ci_high: effect.ci_high,
                n: effect.n,
                point_index: effect.point_index,
                now: analysis.points[effect.point_index].now.get(effect.metric),
                value: effect.value,
            };
            table.serialize(row).expect(IN_MEMORY);
        }
    }
    finish(table)
}

/// A name that no spreadsheet takes for a formula. Tabs and line's ends, which also can begin one,
/// are escaped.
fn cell(name: &str) -> Cow<'_, str> {
    let name = plain::name(name);
    // The wide forms are those of east Asian keyboards.
    if name.starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']) {
        format!("'{name}").into()
    } else {
        name
    }
}

const IN_MEMORY: &str = "memory to write to, and a row of plain cells";

fn finish(table: Writer<Vec<u8>>) -> String {
    String::from_utf8(table.into_inner().expect(IN_MEMORY)).expect("cells are text")
}

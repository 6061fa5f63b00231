//! The comparison for machines.

use crate::sides::Side;
use andweorc_profile::compare::Comparison;
use andweorc_profile::plain;
use serde::Serialize;

/// The version of this form. Bump it whenever a field changes its meaning, its unit or its name.
const VERSION: u32 = 2;

/// Verdict that `ci` adds to the comparison.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict<'a> {
    /// `ok`, `regression` or `inconclusive`.
    pub(crate) result: &'a str,
    /// The exit code.
    pub(crate) exit_code: u8,
}

/// `{"schema", "a", "b", "outcomes", "targets", "load", "ranked_by", "notes"}`, and with a verdict
/// `"result", "exit_code"`. See `docs/book/src/reference/comparisons.md`.
pub(crate) fn json(
    sides: &[Side; 2],
    comparison: &Comparison,
    verdict: Option<Verdict<'_>>,
) -> String {
    #[derive(Serialize)]
    struct Form<'a> {
        schema: u32,
        #[serde(flatten)]
        verdict: Option<Verdict<'a>>,
        a: Named<'a>,
        b: Named<'a>,
        #[serde(flatten)]
        comparison: &'a Comparison,
    }
    let [a, b] = sides;
    let form = Form { schema: VERSION, verdict, a: named(a), b: named(b), comparison };
    let json = serde_json::to_string_pretty(&form);
    plain::json(json.expect("names are strings and numbers are numbers")) + "\n"
}

/// A side, by the header of its first run.
#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    program: &'a str,
    host: &'a str,
    build_id: Option<&'a str>,
    start_unix_ms: u64,
    runs: usize,
}

fn named(side: &Side) -> Named<'_> {
    let header = &side.runs[0].header;
    Named {
        name: &side.name,
        program: &header.program,
        host: &header.host,
        build_id: header.build_id.as_deref(),
        start_unix_ms: header.start_unix_ms,
        runs: side.runs.len(),
    }
}

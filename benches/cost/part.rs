//! Results of a part of the bench: its share of the closing line, and its table. `--json` writes
//! both, and docs/results/tables makes the tables of the book from them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A part of the bench that has been measured.
#[derive(Debug)]
pub(crate) struct Part {
    /// Name of its table.
    pub(crate) name: &'static str,
    /// Words `name=figure` of the closing line.
    pub(crate) line: String,
    /// Its table.
    pub(crate) rows: Vec<Row>,
}

/// A row of a table: an interval, in the unit of its table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    /// Name of what was measured.
    pub(crate) of: String,
    /// Cost of it without andweorc, where the figure is what andweorc adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) without: Option<f64>,
    /// Requests a second of the service itself, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<f64>,
    /// Middle of the interval.
    pub(crate) figure: f64,
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
}

/// All parts in the form that docs/results/tables reads: the figures of the closing line by their
/// names, and the rows of each part by its name.
pub(crate) fn json(parts: &[Part]) -> Value {
    let named = parts.iter().flat_map(|part| part.line.split_whitespace());
    let figures: Map<String, Value> = named
        .filter_map(|word| word.split_once('='))
        .filter_map(|(name, figure)| Some((name.to_owned(), figure.parse::<f64>().ok()?.into())))
        .collect();
    let tables = parts.iter().map(|part| (part.name.to_owned(), json!(part.rows)));
    tables.chain([("figures".to_owned(), Value::Object(figures))]).collect()
}

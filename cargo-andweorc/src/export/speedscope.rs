//! The format of speedscope, by its `file-format-spec`: a sampled profile for each quantity.
//!
//! Frames are all that it has, so that the state of wall time is the innermost frame, as in folded
//! stacks.

use super::stacks::{Frame, Measured, Quantity, Stacks, Unit};
use super::table::Table;
use andweorc_profile::plain;
use serde::Serialize;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The names of the fields are those of the format.
#[derive(Debug, Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: &'a str,
    exporter: String,
    shared: Shared,
    profiles: Vec<Profile>,
}

#[derive(Debug, Serialize)]
struct Shared {
    frames: Vec<SharedFrame>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct SharedFrame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    r#type: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Indices of frames, the outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// The file of these stacks.
pub(super) fn speedscope(stacks: &Stacks) -> String {
    // Each keeps its number, the states come after them.
    let mut frames = Table::of([]);
    let places: Vec<usize> = stacks.frames.iter().map(|it| frames.index(&shared(it))).collect();
    let columns = stacks.measured.iter().flat_map(|of| of.columns().map(move |it| (of, it)));
    let profile = |(of, column)| profile(of, column, &places, &mut frames);
    let profiles: Vec<Profile> = columns.map(profile).collect();
    let file = File {
        schema: SCHEMA,
        name: &stacks.program,
        exporter: format!("cargo-andweorc@{}", env!("CARGO_PKG_VERSION")),
        shared: Shared { frames: frames.into_items() },
        profiles,
    };
    let json = serde_json::to_string(&file).expect("names are strings and numbers are numbers");
    plain::json(json) + "\n"
}

fn shared(frame: &Frame) -> SharedFrame {
    SharedFrame { name: frame.name.clone(), file: frame.file.clone(), line: frame.line }
}

fn profile(
    measured: &Measured,
    (at, quantity): (usize, &'static Quantity),
    places: &[usize],
    frames: &mut Table<SharedFrame>,
) -> Profile {
    let mut state = |name: String| frames.index(&SharedFrame { name, file: None, line: None });
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for sample in &measured.samples {
        let stack = sample.stack.iter().map(|frame| places[*frame]);
        samples.push(stack.chain(sample.state_frame().map(&mut state)).collect());
        weights.push(sample.values[at]);
    }
    Profile {
        r#type: "sampled",
        name: quantity.title,
        unit: match quantity.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Count => "none",
        },
        start_value: 0,
        end_value: weights.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
        samples,
        weights,
    }
}

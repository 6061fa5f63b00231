//! The format of pprof: `profile.proto`, compressed by gzip.
//!
//! Each sample has a value for every quantity, 0 where its source does not measure it. Labels tell
//! the `state` of wall time, who ended a wait (`woken_by`), and the kind of `task` of a stack that
//! is outside of all spans.

mod proto;

use self::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use super::stacks::Stacks;
use super::table::Table;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::io::{self, Write};

/// The id of the program, the only mapping.
const PROGRAM: u64 = 1;

/// The file of these stacks.
///
/// # Errors
///
/// When it can't be compressed, which takes memory alone.
pub(super) fn pprof(stacks: &Stacks) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&profile(stacks).encode_to_vec())?;
    encoder.finish()
}

fn profile(stacks: &Stacks) -> Profile {
    let mut strings = Strings(Table::of_strings());
    let quantities = stacks.measured.iter().flat_map(|measured| measured.quantities);
    let sample_type: Vec<ValueType> = quantities
        .map(|of| ValueType { r#type: strings.at(of.name), unit: strings.at(of.unit.name()) })
        .collect();
    let losses = stacks.measured.iter().flat_map(|measured| &measured.losses);
    let mut profile = Profile {
        sample: samples(stacks, sample_type.len(), &mut strings),
        mapping: vec![Mapping {
            id: PROGRAM,
            filename: strings.at(&stacks.program),
            build_id: strings.at(stacks.build_id.as_deref().unwrap_or_default()),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
        }],
        time_nanos: signed(stacks.start_unix_ms.saturating_mul(1_000_000)),
        duration_nanos: stacks.measured.first().map_or(0, |of| signed(of.real_ns)),
        default_sample_type: sample_type.first().map_or(0, |first| first.r#type),
        comment: losses.map(|loss| strings.at(loss)).collect(),
        sample_type,
        ..Profile::default()
    };
    for (id, frame) in (1..).zip(&stacks.frames) {
        let line = frame.line.map_or(0, i64::from);
        let lines = vec![Line { function_id: id, line }];
        profile.location.push(Location { id, mapping_id: PROGRAM, line: lines });
        profile.function.push(Function {
            id,
            name: strings.at(&frame.name),
            filename: strings.at(frame.file.as_deref().unwrap_or_default()),
            start_line: line,
        });
    }
    profile.string_table = strings.0.into_items();
    profile
}

/// The samples of all sources, each with so many values.
fn samples(stacks: &Stacks, values: usize, strings: &mut Strings) -> Vec<Sample> {
    let (mut samples, mut first) = (Vec::new(), 0);
    for measured in &stacks.measured {
        for of in &measured.samples {
            let mut value = vec![0; values];
            for (value, of) in value[first..].iter_mut().zip(&of.values) {
                *value = signed(*of);
            }
            samples.push(Sample {
                // An id is one more than the index, and the innermost is first.
                location_id: of.stack.iter().rev().map(|frame| *frame as u64 + 1).collect(),
                value,
                label: stacks.labels(of).into_iter().map(|it| strings.label(it)).collect(),
            });
        }
        first += measured.quantities.len();
    }
    samples
}

/// The string table.
struct Strings(Table<String>);

impl Strings {
    fn at(&mut self, text: &str) -> i64 {
        i64::from(self.0.text(text))
    }

    fn label(&mut self, (key, text): (&str, &str)) -> Label {
        Label { key: self.at(key), str: self.at(text) }
    }
}

/// A value as the format has it.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::stacks::tests::made_up;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn every_number_of_the_file_leads_somewhere() {
        let mut bytes = Vec::new();
        GzDecoder::new(&pprof(&made_up()).unwrap()[..]).read_to_end(&mut bytes).unwrap();
        let read = Profile::decode(&bytes[..]).unwrap();
        assert_eq!(read.string_table[0], "");
        let text = |index: i64| read.string_table[usize::try_from(index).unwrap()].as_str();
        let types: Vec<_> =
            read.sample_type.iter().map(|of| (text(of.r#type), text(of.unit))).collect();
        let expected =
            [("wall", "nanoseconds"), ("alloc_objects", "count"), ("alloc_space", "bytes")];
        assert_eq!(types, expected);
        assert_eq!(text(read.default_sample_type), "wall");
        assert_eq!(read.comment.iter().map(|it| text(*it)).collect::<Vec<_>>(), ["One is lost."]);
        let stack = |of: &Sample| -> Vec<&str> {
            let function = |id: &u64| {
                let location = read.location.iter().find(|it| it.id == *id).unwrap();
                let id = location.line[0].function_id;
                text(read.function.iter().find(|it| it.id == id).unwrap().name)
            };
            of.location_id.iter().map(function).collect()
        };
        let labels = |of: &Sample| -> Vec<String> {
            of.label.iter().map(|it| format!("{}={}", text(it.key), text(it.str))).collect()
        };
        let [running, waiting, allocating] = &read.sample[..] else { panic!("{read:?}") };
        assert_eq!((stack(running), &running.value[..]), (vec!["stock", "shop"], &[5, 0, 0][..]));
        assert_eq!(labels(running), ["state=running"]);
        assert_eq!(labels(waiting), ["state=other task", "woken_by=shop", "task=audit"]);
        assert_eq!(allocating.value, [0, 2, 64]);
        assert_eq!(read.function[1].start_line, 12);
    }
}

//! OTLP profiles: a `ProfilesData` message, which is also the body of a request to a collector.
//!
//! There is a profile for each quantity. Attributes of samples are pprof's labels under names of
//! andweorc's own: `andweorc.state`, `andweorc.woken_by` and `andweorc.task`. A profile has what
//! was not recorded as `andweorc.loss`.

use super::stacks::{self, Measured, Quantity, Stacks};
use super::table::Table;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile, ProfilesData,
    ProfilesDictionary, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// The number of the program in the table of mappings.
const PROGRAM: i32 = 1;

/// The file of these stacks.
pub(super) fn otlp(stacks: &Stacks) -> Vec<u8> {
    data(stacks).encode_to_vec()
}

fn data(stacks: &Stacks) -> ProfilesData {
    let mut dictionary = Dictionary::new();
    let columns = stacks.measured.iter().flat_map(|of| of.columns().map(move |it| (of, it)));
    let profiles = columns.map(|(of, column)| dictionary.profile(stacks, of, column)).collect();
    let service = KeyValue {
        key: "service.name".into(),
        value: Some(string(&stacks.program)),
        ..KeyValue::default()
    };
    let scope = InstrumentationScope {
        name: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    };
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource { attributes: vec![service], ..Resource::default() }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(scope),
                profiles,
                ..ScopeProfiles::default()
            }],
            ..ResourceProfiles::default()
        }],
        dictionary: Some(dictionary.finish(stacks)),
    }
}

/// The tables of the message. The first of each stands for nothing.
struct Dictionary {
    strings: Table<String>,
    /// The number of the key, and the value.
    attributes: Table<(i32, String)>,
    stacks: Table<Stack>,
}

impl Dictionary {
    fn new() -> Dictionary {
        Dictionary {
            strings: Table::of_strings(),
            attributes: Table::of([(0, String::new())]),
            stacks: Table::of([Stack::default()]),
        }
    }

    fn profile(
        &mut self,
        stacks: &Stacks,
        measured: &Measured,
        (at, quantity): (usize, &Quantity),
    ) -> Profile {
        let sample = |of: &stacks::Sample| {
            // The first location stands for nothing, and the innermost is first.
            let location_indices = of.stack.iter().rev().map(|frame| index(frame + 1)).collect();
            Sample {
                stack_index: index(self.stacks.index(&Stack { location_indices })),
                attribute_indices: self.attributes(stacks.labels(of)),
                values: vec![i64::try_from(of.values[at]).unwrap_or(i64::MAX)],
                ..Sample::default()
            }
        };
        let samples = measured.samples.iter().map(sample).collect();
        let losses = measured.losses.join(" ");
        let loss = (!losses.is_empty()).then_some(("loss", losses.as_str()));
        Profile {
            samples,
            sample_type: Some(ValueType {
                type_strindex: self.strings.text(quantity.name),
                unit_strindex: self.strings.text(quantity.unit.name()),
            }),
            time_unix_nano: stacks.start_unix_ms.saturating_mul(1_000_000),
            duration_nano: measured.real_ns,
            attribute_indices: self.attributes(loss),
            ..Profile::default()
        }
    }

    /// The numbers of these attributes.
    fn attributes<'a>(&mut self, all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<i32> {
        let attribute = |(key, text): (&str, &str)| {
            let key = self.strings.text(&format!("andweorc.{key}"));
            index(self.attributes.index(&(key, text.to_owned())))
        };
        all.into_iter().map(attribute).collect()
    }

    fn finish(mut self, stacks: &Stacks) -> ProfilesDictionary {
        let program =
            Mapping { filename_strindex: self.strings.text(&stacks.program), ..Mapping::default() };
        let mut locations = vec![Location::default()];
        let mut functions = vec![Function::default()];
        for frame in &stacks.frames {
            let line = frame.line.map_or(0, i64::from);
            let function_index = index(functions.len());
            locations.push(Location {
                mapping_index: PROGRAM,
                lines: vec![Line { function_index, line, ..Line::default() }],
                ..Location::default()
            });
            functions.push(Function {
                name_strindex: self.strings.text(&frame.name),
                filename_strindex: self.strings.text(frame.file.as_deref().unwrap_or_default()),
                start_line: line,
                ..Function::default()
            });
        }
        ProfilesDictionary {
            mapping_table: vec![Mapping::default(), program],
            location_table: locations,
            function_table: functions,
            // Of the lengths that readers want who check them.
            link_table: vec![Link { trace_id: vec![0; 16], span_id: vec![0; 8] }],
            string_table: self.strings.into_items(),
            attribute_table: self.attributes.into_items().into_iter().map(attribute).collect(),
            stack_table: self.stacks.into_items(),
        }
    }
}

fn attribute((key_strindex, text): (i32, String)) -> KeyValueAndUnit {
    let value = (key_strindex > 0).then(|| string(&text));
    KeyValueAndUnit { key_strindex, value, ..KeyValueAndUnit::default() }
}

fn string(text: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(text.to_owned())) }
}

fn index(at: usize) -> i32 {
    i32::try_from(at).expect("fewer entries than memory has room for")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::stacks::tests::made_up;

    #[test]
    fn every_number_of_the_file_leads_somewhere() {
        let read = ProfilesData::decode(&otlp(&made_up())[..]).unwrap();
        let tables = read.dictionary.unwrap();
        let text = |index: i32| tables.string_table[usize::try_from(index).unwrap()].as_str();
        // The first of each table stands for nothing.
        assert_eq!((text(0), &tables.stack_table[0]), ("", &Stack::default()));
        assert_eq!(tables.location_table[0], Location::default());
        assert_eq!(tables.attribute_table[0], KeyValueAndUnit::default());
        let profiles = &read.resource_profiles[0].scope_profiles[0].profiles;
        let types: Vec<_> = profiles
            .iter()
            .map(|it| it.sample_type.unwrap())
            .map(|of| (text(of.type_strindex), text(of.unit_strindex)))
            .collect();
        let expected =
            [("wall", "nanoseconds"), ("alloc_objects", "count"), ("alloc_space", "bytes")];
        assert_eq!(types, expected);
        let attributes = |indices: &[i32]| -> Vec<String> {
            let attribute = |index: &i32| {
                let of = &tables.attribute_table[*index as usize];
                let value = of.value.as_ref().unwrap().value.as_ref().unwrap();
                let Value::StringValue(value) = value else { panic!("{value:?}") };
                format!("{}={value}", text(of.key_strindex))
            };
            indices.iter().map(attribute).collect()
        };
        let stack = |of: &Sample| -> Vec<&str> {
            let function = |index: &i32| {
                let location = &tables.location_table[*index as usize];
                let function = &tables.function_table[location.lines[0].function_index as usize];
                text(function.name_strindex)
            };
            let stack = &tables.stack_table[of.stack_index as usize];
            stack.location_indices.iter().map(function).collect()
        };
        let [wall, counts, bytes] = &profiles[..] else { panic!("{profiles:?}") };
        assert_eq!(attributes(&wall.attribute_indices), ["andweorc.loss=One is lost."]);
        assert_eq!(
            (stack(&wall.samples[0]), &wall.samples[0].values),
            (vec!["stock", "shop"], &vec![5])
        );
        let waiting = attributes(&wall.samples[1].attribute_indices);
        let expected =
            ["andweorc.state=other task", "andweorc.woken_by=shop", "andweorc.task=audit"];
        assert_eq!(waiting, expected);
        assert_eq!((&counts.samples[0].values, &bytes.samples[0].values), (&vec![2], &vec![64]));
    }
}

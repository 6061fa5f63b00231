//! The reader of profiles, on a corpus of whole, torn and damaged ones and on mutations of them:
//! whatever it is given it does not panic, and what it says of a damaged file holds. The fuzz
//! target in `../fuzz` asks the same of what it makes up.

#[path = "reader/check.rs"]
mod check;

use check::{read, report};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Name and content of each file.
static CORPUS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
});

#[test]
fn the_corpus_reads_as_its_names_say() {
    assert!(CORPUS.len() >= 15);
    for (name, bytes) in CORPUS.iter() {
        let expected = name.strip_prefix("damaged_line_").map(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            digits.parse().unwrap()
        });
        assert_eq!(read(bytes), expected, "{name}");
        assert_eq!(report(bytes), expected.is_none(), "{name}");
    }
}

/// A change to a file, at a place that is an index into it.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Cut(Index, Index),
    /// A stretch of another file.
    Splice(Index, Index, Index, Index),
    SwapLines(Index, Index),
    RepeatLine(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let telling = prop_oneof![
        vec(any::<u8>(), 0..6),
        prop_oneof![
            Just("\n"),
            Just("\"record\":"),
            Just("null"),
            Just("-1"),
            Just("1e400"),
            Just("{"),
            Just("[["),
            Just("18446744073709551616"),
            Just("\\ud800"),
            Just("NaN"),
        ]
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(i, byte)| Mutation::Flip(i, byte)),
        (at(), telling).prop_map(|(i, bytes)| Mutation::Insert(i, bytes)),
        (at(), at()).prop_map(|(i, j)| Mutation::Cut(i, j)),
        (at(), at(), at(), at()).prop_map(|(i, f, j, k)| Mutation::Splice(i, f, j, k)),
        (at(), at()).prop_map(|(i, j)| Mutation::SwapLines(i, j)),
        at().prop_map(Mutation::RepeatLine),
    ]
}

fn ordered(i: Index, j: Index, length: usize) -> (usize, usize) {
    let (i, j) = (i.index(length + 1), j.index(length + 1));
    (i.min(j), i.max(j))
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        match self {
            _ if bytes.is_empty() => {}
            Mutation::Flip(i, byte) => {
                let i = i.index(bytes.len());
                bytes[i] ^= byte;
            }
            Mutation::Insert(i, new) => {
                let i = i.index(bytes.len() + 1);
                bytes.splice(i..i, new.iter().copied());
            }
            Mutation::Cut(i, j) => {
                let (i, j) = ordered(*i, *j, bytes.len());
                bytes.drain(i..j.min(i + 200));
            }
            Mutation::Splice(i, file, j, k) => {
                let (_, from) = &CORPUS[file.index(CORPUS.len())];
                let (j, k) = ordered(*j, *k, from.len());
                let i = i.index(bytes.len() + 1);
                bytes.splice(i..i, from[j..k].iter().copied());
            }
            Mutation::SwapLines(i, j) => {
                let mut lines = lines(bytes);
                let (i, j) = (i.index(lines.len()), j.index(lines.len()));
                lines.swap(i, j);
                *bytes = lines.concat();
            }
            Mutation::RepeatLine(i) => {
                let mut lines = lines(bytes);
                let i = i.index(lines.len());
                lines.insert(i, lines[i].clone());
                *bytes = lines.concat();
            }
        }
    }
}

/// A file of the corpus, with these changes.
fn mutated(file: Index, mutations: &[Mutation]) -> Vec<u8> {
    let mut bytes = CORPUS[file.index(CORPUS.len())].1.clone();
    for mutation in mutations {
        mutation.apply(&mut bytes);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_mutation_makes_the_reader_panic_or_name_a_wrong_line(
        file in any::<Index>(),
        mutations in vec(mutation(), 1..8),
    ) {
        read(&mutated(file, &mutations));
    }
}

proptest! {
    // Fewer: a report takes a while.
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn of_what_can_be_read_there_is_a_report(
        file in any::<Index>(),
        mutations in vec(mutation(), 1..4),
    ) {
        report(&mutated(file, &mutations));
    }
}

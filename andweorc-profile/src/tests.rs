use super::*;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use proptest::prelude::*;
use std::cell::Cell;
use std::fs;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

fn header() -> Header {
    Header {
        schema: VERSION,
        program: "shop".into(),
        build_id: None,
        host: "here".into(),
        cores: 2,
        andweorc: "0.1.0".into(),
        tokio: None,
        tokio_unstable: None,
        sampling: None,
        duration_ns: 1,
        speedups: vec![0.25],
        targets: vec![],
        points: vec![],
        start_unix_ms: 1,
    }
}

fn records() -> Vec<Record> {
    let point = |id, rank| {
        let name = format!("p{id}");
        Record::Point(PointRecord {
            id,
            kind: PointKind::Latency,
            name,
            file: None,
            line: None,
            rank,
        })
    };
    vec![
        Record::Header(header()),
        Record::Target(TargetRecord {
            id: 7,
            kind: TargetKind::Span,
            name: "stock".into(),
            file: Some("a.rs".into()),
            line: Some(3),
        }),
        point(2, 1),
        point(1, 0),
        Record::Experiment(ExperimentRecord {
            seq: 0,
            target: Some(7),
            speedup: 0.25,
            start_ns: 5,
            real_ns: 100,
            delay_ns: 10,
            cpu_ns: None,
            sampled: Vec::new(),
            joint: None,
            points: vec![PointCount { point: 1, count: 2, latency: vec![(10, 1), (20, 1)] }],
            discarded: None,
        }),
        Record::Note(NoteRecord { at_ns: 1, text: "a\nb".into() }),
    ]
}

fn lines(records: &[Record]) -> Vec<u8> {
    let lines = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n");
    lines.collect::<String>().into_bytes()
}

#[test]
fn records_written_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/x.jsonl");
    let mut writer = Writer::create(&path).unwrap();
    for record in records() {
        writer.write(&record);
        // Flushed a record at a time: the file is whole at any moment.
        assert!(fs::read(&path).unwrap().ends_with(b"}\n"));
    }
    assert_eq!(writer.lost_records(), 0);
    let profile = Profile::read(&path).unwrap();
    let run = &profile.runs[0];
    assert_eq!((profile.runs.len(), run.torn), (1, false));
    assert_eq!(run.points.iter().map(|point| point.id).collect::<Vec<_>>(), [1, 2], "by rank");
    assert_eq!(Record::Experiment(run.experiments[0].clone()), records()[4]);
    assert_eq!(run.end, None);
}

/// A file in memory that must not grow.
fn full() -> (OwnedFd, PathBuf) {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = memfd_create(c"full", flags).unwrap();
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_GROW)).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    (file, path)
}

#[test]
fn records_that_cannot_be_written_are_counted() {
    let (_file, path) = full();
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&records()[0]);
    writer.write(&records()[1]);
    assert_eq!(writer.lost_records(), 2);
    assert!(writer.first_error().is_some());
}

/// Why nothing can be written there, by either way to open it.
fn refusals(path: &Path) -> [Option<String>; 2] {
    [Writer::create, Writer::create_at_default]
        .map(|create| create(path).err().map(|error| error.to_string()))
}

#[test]
fn only_a_plain_file_is_opened_and_what_else_is_there_is_named_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let [pipe, socket] = ["pipe", "socket"].map(|name| folder.path().join(name));
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(&socket).unwrap();
    let cases: [(&Path, &str); 5] = [
        (&pipe, "named pipe"),
        (&socket, "socket"),
        (folder.path(), "directory"),
        (Path::new("/dev/null"), "device"),
        (Path::new("/dev/full"), "device"),
    ];
    for (path, what) in cases {
        for refusal in refusals(path) {
            let refusal = refusal.unwrap_or_else(|| panic!("{path:?} was opened"));
            assert!(refusal.contains(what) && refusal.contains("no plain file"), "{refusal}");
        }
    }
}

#[test]
fn a_link_is_followed_where_the_user_named_it_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let [kept, link, dangling] = ["kept", "link", "dangling"].map(|name| folder.path().join(name));
    fs::write(&kept, "precious").unwrap();
    symlink(&kept, &link).unwrap();
    symlink(folder.path().join("new"), &dangling).unwrap();
    for link in [&link, &dangling] {
        let refusal = Writer::create_at_default(link).unwrap_err().to_string();
        assert!(refusal.contains("symbolic link"), "{refusal}");
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), "precious");
    assert!(!folder.path().join("new").exists());
    Writer::create(&link).unwrap().write(&records()[0]);
    assert_eq!(fs::read(&kept).unwrap(), lines(&records()[..1]));
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let error = Writer::create(std::path::Path::new("/proc/no/x.jsonl")).unwrap_err().to_string();
    assert!(error.contains("/proc/no/x.jsonl") && error.contains("ANDWEORC_OUT"), "{error}");
}

#[test]
fn a_torn_last_line_is_left_out_wherever_it_was_torn() {
    let whole = lines(&records());
    let last = lines(&records()[..5]).len();
    for cut in last + 1..whole.len() - 1 {
        let run = &Profile::parse(&whole[..cut]).unwrap().runs[0];
        assert!(run.torn && run.notes.is_empty() && run.experiments.len() == 1, "cut at {cut}");
    }
}

#[test]
fn runs_are_merged_by_concatenation() {
    let twice = [lines(&records()), lines(&records())].concat();
    let profile = Profile::parse(&twice).unwrap();
    assert_eq!(profile.runs.len(), 2);
    assert_eq!(profile.runs[0], profile.runs[1]);
}

#[test]
fn parse_error_names_the_damaged_line() {
    let message = |bytes: &[u8]| Profile::parse(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("is empty"));
    assert!(message(b"hello\n").contains("not a profile"));
    assert!(message(b"{\"a\":1}\n").contains("not a profile"));
    let other =
        String::from_utf8(lines(&records()[..1])).unwrap().replace("\"schema\":1", "\"schema\":9");
    assert!(message(other.as_bytes()).contains("version 9"));
    let mut middle = lines(&records()[..2]);
    middle.extend(b"garbage\n");
    middle.extend(lines(&records()[2..]));
    assert!(message(&middle).contains("line 3"));
    let unknown = [&records()[..1], &records()[4..5]].concat();
    assert!(message(&lines(&unknown)).contains("line 2: it names target 7"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(at in 0..900usize, with in proptest::collection::vec(any::<u8>(), 0..20)) {
        let mut bytes = lines(&records());
        let at = at.min(bytes.len());
        bytes.splice(at..(at + with.len() / 2).min(bytes.len()), with);
        drop(Profile::parse(&bytes));
    }
}

#[test]
fn a_kind_is_called_alike_in_profiles_and_in_settings() {
    use TargetKind::{Function, FunctionSelf, Line, Probe, Span, Task, Wait};
    for kind in [Task, Span, Function, FunctionSelf, Line, Wait, Probe] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.to_string());
    }
    assert_eq!(FunctionSelf.to_string(), "function-self");
}

/// Bytes without end, and how many of them were read.
struct Endless<'a> {
    read: &'a Cell<usize>,
    with: u8,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(self.with);
        self.read.set(self.read.get() + buffer.len());
        Ok(buffer.len())
    }
}

#[test]
fn of_a_line_without_end_no_more_is_read_than_a_record_may_have() {
    let header = lines(&[Record::Header(header())]);
    for (begin, with) in [(&b""[..], 0), (&header, b'x'), (&header, 0)] {
        let read = Cell::new(0);
        let from = BufReader::new(begin.chain(Endless { read: &read, with }));
        let error = Profile::read_from(from).unwrap_err();
        match begin.is_empty() {
            true => assert!(matches!(error, ReadErrorKind::NotAProfile), "{error}"),
            false => assert!(matches!(error, ReadErrorKind::LongLine { line: 2 }), "{error}"),
        }
        assert!(read.get() < LONGEST_LINE + (1 << 20), "{} bytes", read.get());
    }
}

#[test]
fn the_longest_line_is_read_and_one_byte_more_is_not() {
    let note = |length| {
        let text = |text| Record::Note(NoteRecord { at_ns: 1, text });
        let around = serde_json::to_string(&text(String::new())).unwrap().len();
        lines(&[Record::Header(header()), text("a".repeat(length - around))])
    };
    let profile = Profile::parse(&note(LONGEST_LINE)).unwrap();
    assert!(profile.runs[0].notes[0].text.len() > LONGEST_LINE - 100);
    let error = Profile::parse(&note(LONGEST_LINE + 1)).unwrap_err();
    assert!(error.to_string().contains("line 2: it is longer than 64 MiB"), "{error}");
}

#[test]
fn record_too_long_for_readers_is_counted_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.jsonl");
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&Record::Header(header()));
    writer.write(&Record::Note(NoteRecord { at_ns: 1, text: "a".repeat(LONGEST_LINE) }));
    assert_eq!(writer.lost_records(), 1);
    assert!(writer.first_error().unwrap().to_string().contains("no reader takes"));
    assert!(Profile::read(&path).unwrap().runs[0].notes.is_empty());
}

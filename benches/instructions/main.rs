//! How many instructions andweorc adds to what a program does: counted by valgrind's callgrind,
//! which is the same from run to run, and compared with what is written down.
//!
//! ```sh
//! cargo bench --bench instructions              # compares with benches/instructions/expected.txt
//! cargo bench --bench instructions -- --bless   # writes it anew
//! ```
//!
//! Each case runs in a process of its own under callgrind, which counts in [`measured_loop`] alone.
//! What the same case costs without andweorc is taken off. Of the clock only what is inlined
//! counts, and not what is called where the processor's counter can't be used, as at times under
//! valgrind, and each millisecond: how often that is depends on the machine. More than
//! [`TOLERANCE`] above what is written down is a failure; less is told. The counts are those of one
//! compiler: with another the comparison is skipped, and without valgrind all is.

mod cases;

use cases::{CASES, Case, OPERATIONS};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

/// Names the case that this process is to run.
const CASE: &str = "INSTRUCTIONS_CASE";

const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/expected.txt");

/// How far above what is written down a count may be.
const TOLERANCE: f64 = 0.10;

/// Instructions that are too few to be compared by a share.
const SLACK: f64 = 4.0;

/// Callgrind counts in here.
#[inline(never)]
fn measured_loop(operation: &mut dyn FnMut()) {
    for _ in 0..OPERATIONS {
        operation();
    }
    // So that nothing is left to do in the caller's name.
    black_box(());
}

/// Instructions of one operation of a case.
fn count(case: &str) -> Result<f64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--collect-atstart=no", "--toggle-collect=*measured_loop*"])
        .arg("--toggle-collect=*clock::ticks::anchored*")
        .arg(env::current_exe()?)
        .env(CASE, case)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    match collected.and_then(|(_, number)| number.trim().parse::<f64>().ok()) {
        Some(all) if output.status.success() => Ok(all / f64::from(OPERATIONS)),
        _ => Err(format!("{case} under valgrind: {}: {said}", output.status).into()),
    }
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version = output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
    version.unwrap_or_else(|error| format!("unknown ({error})"))
}

/// Reads what is written down: the compiler, and the counts by name.
fn expected() -> Result<(String, BTreeMap<String, f64>), Box<dyn Error>> {
    let text = fs::read_to_string(EXPECTED).map_err(|error| format!("{EXPECTED}: {error}"))?;
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let compiler = lines.next().ok_or("no compiler is named")?.to_owned();
    let mut counts = BTreeMap::new();
    for line in lines {
        let (name, count) = line.split_once(' ').ok_or_else(|| format!("no count in `{line}`"))?;
        counts.insert(name.to_owned(), count.parse()?);
    }
    Ok((compiler, counts))
}

fn write(counts: &[(&str, f64)]) -> Result<(), Box<dyn Error>> {
    let mut text = String::from(
        "# Instructions that andweorc adds to an operation (cargo bench --bench instructions -- --bless).\n",
    );
    writeln!(text, "{}", compiler())?;
    for (name, count) in counts {
        writeln!(text, "{name} {count:.0}")?;
    }
    fs::write(Path::new(EXPECTED), text)?;
    Ok(())
}

/// Whether no count is above what is written down.
fn compare(counts: &[(&str, f64)]) -> Result<bool, Box<dyn Error>> {
    let (written_by, expected) = expected()?;
    if written_by != compiler() {
        println!("skipped: the counts are those of {written_by}, and this is {}", compiler());
        return Ok(true);
    }
    let mut well = true;
    for (name, count) in counts {
        let Some(&expected) = expected.get(*name) else {
            println!("{name}: nothing is written down");
            well = false;
            continue;
        };
        let most = expected * (1.0 + TOLERANCE) + SLACK;
        if *count > most {
            println!("{name}: {count:.0} instructions, and not {expected:.0} as written down");
            well = false;
        } else if *count < expected * (1.0 - TOLERANCE) - SLACK {
            println!(
                "{name}: only {count:.0} of {expected:.0} instructions: write it down (--bless)"
            );
        }
    }
    Ok(well)
}

fn run() -> Result<bool, Box<dyn Error>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: no valgrind (Debian: apt-get install valgrind)");
        return Ok(true);
    }
    let mut counts = Vec::new();
    for case in CASES {
        let with = count(case.name)?;
        let without = case.without.map_or(Ok(0.0), count)?;
        counts.push((case.name, with - without));
    }
    let line: Vec<_> = counts.iter().map(|(name, count)| format!("{name}={count:.0}")).collect();
    println!("INSTRUCTIONS {}", line.join(" "));
    if env::args().any(|argument| argument == "--bless") {
        write(&counts)?;
        return Ok(true);
    }
    compare(&counts)
}

fn main() -> ExitCode {
    if let Ok(name) = env::var(CASE) {
        let operation = CASES.iter().find(|case| case.name == name).map(|case: &Case| case.run);
        operation.or_else(|| cases::without(&name)).expect("the case is known")();
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::from(2)
        }
    }
}

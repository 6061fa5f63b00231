//! Whether the first report can be trusted: the verdicts that `cargo andweorc run` gives by its
//! defaults, against what happens when a part of the service is really made cheaper.

mod load;
mod services;
mod truth;
mod verdicts;

use crate::services::{Clients, SERVICES, Service};
use crate::truth::Truth;
use crate::verdicts::{Answer, Report, Score};
use lexopt::prelude::*;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HELP: &str = "\
Whether the verdicts of `cargo andweorc run` are right, on small services.

cargo bench --bench trust [-- OPTIONS]

  --only NAME        only the services whose name contains NAME (may be repeated)
  --duration TIME    for how long each is profiled at most (default 30s)
  --no-truth         only print the verdicts
  --list             list the services

Each service is profiled by the command with its defaults. Then each of its parts is really made
50 % cheaper, in turns with the service as it is, and the change is compared with the verdict. A part
that the report leaves out is undecided. Nothing else should run meanwhile.";

/// The work that the arguments ask for.
enum Mode {
    /// Be this service.
    Service(String),
    /// Be its clients.
    Load(usize, u32),
    List,
    Bench(Options),
}

struct Options {
    services: Vec<&'static Service>,
    duration: String,
    truth: bool,
}

fn mode() -> Result<Mode, lexopt::Error> {
    let mut only: Vec<String> = Vec::new();
    let (mut duration, mut truth) = ("30s".to_owned(), true);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Value(word) if word == "service" => {
                return Ok(Mode::Service(arguments.value()?.string()?));
            }
            Value(word) if word == "load" => {
                return Ok(Mode::Load(arguments.value()?.parse()?, arguments.value()?.parse()?));
            }
            Long("only") => only.push(arguments.value()?.string()?),
            Long("duration") => duration = arguments.value()?.string()?,
            Long("no-truth") => truth = false,
            Long("list") => return Ok(Mode::List),
            Long("help") => {
                println!("{HELP}");
                std::process::exit(0);
            }
            // Cargo's own.
            Long("bench") => {}
            other => return Err(other.unexpected()),
        }
    }
    let wanted =
        |service: &&Service| only.is_empty() || only.iter().any(|name| service.name.contains(name));
    Ok(Mode::Bench(Options { services: SERVICES.iter().filter(wanted).collect(), duration, truth }))
}

fn main() -> Result<(), Box<dyn Error>> {
    match mode()? {
        Mode::Service(name) => services::run(&name),
        Mode::Load(waiting, paced) => load::run(waiting, paced),
        Mode::List => SERVICES.iter().for_each(|service| println!("{}", service.name)),
        Mode::Bench(options) => bench(&options)?,
    }
    Ok(())
}

fn bench(options: &Options) -> Result<(), Box<dyn Error>> {
    let command = command()?;
    let mut score = Score::default();
    for service in &options.services {
        let report = profile(&command, service, &options.duration)?;
        println!("\n{}: {}", service.name, report.head());
        for part in service.parts {
            let verdict = report.verdict(part);
            let truth = options.truth.then(|| Truth::of(service, part)).transpose()?;
            let answer = truth.as_ref().map(|truth| Answer::of(&verdict, truth, &report));
            if let Some(answer) = answer {
                score.count(answer);
            }
            let truth = truth
                .map_or(String::new(), |truth| format!(" truth {}", report.of_truth(&truth).0));
            let answer = answer.map_or("", Answer::word);
            println!("  {:<28} {verdict:<44}{truth}  {answer}", part.title());
        }
        report.others(service).for_each(|other| println!("  {other}"));
        score.settled(report.seconds());
    }
    if options.truth {
        println!("\n{score}");
    }
    Ok(())
}

/// Builds the command, in release mode, and returns where it is.
fn command() -> Result<PathBuf, Box<dyn Error>> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--quiet", "--package", "cargo-andweorc"]);
    if !build.status()?.success() {
        return Err("the command could not be built".into());
    }
    // Beside the folder of this bench: target/release/deps/trust-0123456789abcdef
    let bench = std::env::current_exe()?;
    let release = bench.ancestors().nth(2).ok_or("the bench is in a target folder")?;
    Ok(release.join("cargo-andweorc"))
}

/// Profiles a service as a user does, and reads the report.
fn profile(command: &Path, service: &Service, duration: &str) -> Result<Report, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("trust.jsonl");
    let mut run = Command::new(command);
    run.args(["run", "--bench", "trust", "--duration", duration, "--out"]).arg(&out);
    if let Some(load) = load_of(service)? {
        let words: Vec<_> = load.iter().map(|word| word.to_string_lossy()).collect();
        run.args(["--ready-port", &services::PORT.to_string(), "--load", &words.join(" ")]);
    }
    let ran = run.args(["--", "service", service.name]).stdin(Stdio::null()).output()?;
    if !ran.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&ran.stderr));
        return Err(format!("{} could not be profiled: {}", service.name, ran.status).into());
    }
    let report = Command::new(command).args(["report", "--format", "json"]).arg(&out).output()?;
    Ok(Report::read(&report.stdout, &out)?)
}

/// The command that puts load on a service, if it does not do so itself.
fn load_of(service: &Service) -> Result<Option<Vec<OsString>>, Box<dyn Error>> {
    let Clients::Http { waiting, paced } = service.clients else { return Ok(None) };
    let bench = std::env::current_exe()?.into_os_string();
    let words = ["load".into(), waiting.to_string().into(), paced.to_string().into()];
    Ok(Some([bench].into_iter().chain(words).collect()))
}

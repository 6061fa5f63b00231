//! `run --with`: two programs profiled as one, and what happens when one of them or the coordinator
//! is killed.

use crate::Shop;
use crate::common::stderr;
use andweorc_profile::{Profile, Run, TargetKind};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The one run of a profile, as far as it is written.
pub(crate) fn run_of(profile: &Path) -> Option<Run> {
    Profile::read(profile).ok()?.runs.pop()
}

/// Waits until the run is like this.
pub(crate) fn await_run(profile: &Path, is: impl Fn(&Run) -> bool) -> Run {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(run) = run_of(profile).filter(&is) {
            return run;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("{}: {:?}", profile.display(), run_of(profile));
}

/// Options of a run of `shop` with another one beside it, as `stock`, which writes its process id
/// to a file; and the port of that one. Each has load.
pub(crate) fn options(shop: &Shop, seconds: &str) -> (Vec<String>, u16) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, other) = (shop.port, free.local_addr().unwrap().port());
    let program = "target/andweorc/build/debug/shop";
    let settings = "export ANDWEORC_TARGETS=stock ANDWEORC_POINTS=sold";
    let with = format!("stock={settings}; echo $$ > stock.pid; exec {program} serve {other}");
    let load = format!("{program} load {other} & {program} load {port}");
    let all = ["run", "--dev", "--duration", seconds, "--speedups", "0.5", "--with", &with];
    let more = ["--targets", "price", "--points", "sold", "--load", &load, "--", "serve"];
    let all = all.iter().chain(&more).map(|&it| it.to_owned()).chain([port.to_string()]);
    (all.collect(), other)
}

pub(crate) fn arguments(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

/// Kinds of the targets of all experiments, by their numbers in the run of both.
fn kinds(run: &Run) -> BTreeMap<u32, Option<TargetKind>> {
    let kind = |id| run.targets.iter().find(|target| target.id == id).map(|target| target.kind);
    let all = run.experiments.iter();
    all.map(|it| (it.joint.expect("it has a number"), it.target.and_then(kind))).collect()
}

/// Programs of a shop that are left when their command was killed; killed when dropped.
pub(crate) struct Leftovers<'a>(pub(crate) &'a Shop);

impl Drop for Leftovers<'_> {
    fn drop(&mut self) {
        for process in procfs::process::all_processes().unwrap().flatten() {
            // The folder is this test's own, and so is what was started there.
            if process.exe().is_ok_and(|it| it.starts_with(&self.0.folder)) {
                kill(Pid::from_raw(process.pid), Signal::SIGKILL).unwrap_or_default();
            }
        }
    }
}

#[test]
fn two_programs_are_profiled_as_one_also_when_one_of_them_or_the_coordinator_is_killed() {
    let shop = Shop::new("commands");
    let _leftovers = Leftovers(&shop);
    two_programs_hold_the_same_experiments_and_each_writes_its_profile(&shop);
    a_killed_program_discards_the_experiment_and_a_killed_coordinator_ends_all(&shop);
}

fn two_programs_hold_the_same_experiments_and_each_writes_its_profile(shop: &Shop) {
    let output = shop.ok(&arguments(&options(shop, "30s").0));
    let said = stderr(&output);
    assert!(said.contains("shop.stock.jsonl"), "{said}");
    let [main, other] = ["shop.jsonl", "shop.stock.jsonl"]
        .map(|name| run_of(&shop.profiles().join(name)).expect("it has one run"));
    let run_id = |run: &Run| run.joint.as_ref().map(|joint| joint.run.clone());
    assert!(run_id(&main).is_some() && run_id(&main) == run_id(&other));
    let [of_main, of_other] = [&main, &other].map(kinds);
    let both: BTreeSet<_> = of_main.keys().filter(|it| of_other.contains_key(it)).collect();
    assert!(both.len() >= 3, "{of_main:?} {of_other:?}");
    for number in both {
        let expected = match of_main[number] {
            Some(TargetKind::Remote) => Some(TargetKind::Span),
            Some(TargetKind::Span) => Some(TargetKind::Remote),
            other => other,
        };
        assert_eq!(of_other[number], expected, "{number}: {of_main:?} {of_other:?}");
    }
    let names = |run: &Run| -> Vec<String> {
        let remote = run.targets.iter().filter(|it| it.kind == TargetKind::Remote);
        remote.map(|it| it.name.clone()).collect()
    };
    assert_eq!(
        (names(&main), names(&other)),
        (vec!["stock/stock".into()], vec!["shop/price".into()])
    );
    // An experiment that one of them discards is used by none.
    for it in &main.experiments {
        let same = other.experiments.iter().find(|other| other.joint == it.joint);
        if let Some(same) = same {
            assert_eq!(it.discarded.is_some(), same.discarded.is_some(), "{it:?} {same:?}");
        }
    }
}

fn a_killed_program_discards_the_experiment_and_a_killed_coordinator_ends_all(shop: &Shop) {
    fs::remove_file(shop.profiles().join("shop.jsonl")).unwrap();
    let (options, _) = options(shop, "60s");
    let mut command = shop.command(&arguments(&options));
    let log = fs::File::create(shop.folder.join("together.log")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let mut coordinator = command.spawn().unwrap();
    let profile = shop.profiles().join("shop.jsonl");
    await_run(&profile, |run| run.experiments.len() >= 3);
    let pid = fs::read_to_string(shop.folder.join("stock.pid")).unwrap();
    kill(Pid::from_raw(pid.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
    let was_lost = |run: &Run| {
        let reasons = run.experiments.iter().filter_map(|it| it.discarded.as_deref());
        reasons.filter(|it| it.contains("`stock` was lost")).count() > 0
    };
    let after = run_of(&profile).unwrap().experiments.len();
    // It may be killed between two experiments; then none is discarded, and all go on.
    await_run(&profile, |run| was_lost(run) || run.experiments.len() > after + 4);
    kill(Pid::from_raw(coordinator.id().cast_signed()), Signal::SIGKILL).unwrap();
    coordinator.wait().unwrap();
    let run = await_run(&profile, |run| run.end.is_some());
    assert!(run.end.unwrap().reason.contains("the coordinator"));
}

use super::*;
use crate::estimate::tests::{PROBE, push, run_with_probe};
use crate::estimate::{LatencySplit, Split, Verdict};
use crate::report::{self, Looks};
use crate::{NoteRecord, Record, TargetKind, TargetRecord, WallRecord, WallStack, WallWaker};

/// Ids of targets that a run of [`service`] has beside those of `run_with_probe`.
const OWN: u32 = 5;
const LOOKUP: u32 = 6;
const CHARGE: u32 = 7;

fn span(id: u32, name: &str) -> Record {
    let mut record = TargetRecord::new(id, TargetKind::Span, name);
    (record.file, record.line) = (Some(format!("src/{name}.rs")), Some(id));
    Record::Target(record)
}

fn remote(id: u32, name: &str) -> Record {
    let mut record = TargetRecord::new(id, TargetKind::Remote, name);
    let own = name.split_once('/').unwrap().1;
    (record.file, record.line) = (Some(format!("src/{own}.rs")), Some(id));
    Record::Target(record)
}

/// A service in the joint run `id`, whose requests are spans `request`, each with so many ns of
/// work, run queue and waits.
fn service(name: &str, id: &str, [work, queue, wait]: [u64; 3]) -> Run {
    let mut run = run_with_probe();
    run.header.program = format!("{name}-server");
    let entry = Some("gateway".to_owned());
    run.push(Record::Joint(JointRun { run: id.into(), service: name.into(), entry }));
    run.push(Record::Target(TargetRecord::new(OWN, TargetKind::Span, "request")));
    let mut request = WallStack { target: Some(OWN), count: 100, ..WallStack::default() };
    request.running_ns = 100 * work;
    let mut inner =
        WallStack { parent: Some(0), target: Some(1), count: 100, ..WallStack::default() };
    (inner.queue_ns, inner.outside_ns) = (100 * queue, 100 * wait / 2);
    inner.tasks = vec![WallWaker { by: None, ns: 100 * wait / 2 }];
    let stacks = vec![request, inner];
    run.push(Record::Wall(WallRecord { real_ns: 1_000, stacks, ..WallRecord::default() }));
    run
}

/// Holds the same experiments in a service: `hot` of its own, of the gateway's, of the inventory's
/// and of the payments'. That of the inventory lets `hits` of all rise by a fifth.
fn hold(run: &mut Run, ids: [u32; 3], hits: u64) {
    let mut joint = 0;
    let mut one = |run: &mut Run, target: Option<u32>, speedup: f64, hits: u64| {
        push(run, target, speedup, hits, 1_000 * 10_000 / hits);
        run.experiments.last_mut().unwrap().joint = Some(joint);
        joint += 1;
    };
    for round in 0..2 {
        one(run, None, 0.0, hits);
        one(run, Some(PROBE), 0.2, hits + round);
    }
    for round in 0..4 {
        for (target, gain) in ids.into_iter().zip([0, hits / 5, 0]) {
            // Rounds have more hits in every service alike, so that their ratio stays.
            let more = 2 * round * hits / 10_000;
            one(run, None, 0.0, hits + more);
            one(run, Some(target), 0.5, hits + gain + more);
        }
    }
    one(run, None, 0.0, hits);
}

fn gateway(id: &str) -> Run {
    let mut run = service("gateway", id, [1_000, 200, 6_000]);
    run.push(remote(LOOKUP, "inventory/lookup"));
    run.push(remote(CHARGE, "payments/charge"));
    hold(&mut run, [1, LOOKUP, CHARGE], 10_000);
    run
}

fn inventory(id: &str) -> Run {
    let mut run = service("inventory", id, [1_500, 100, 400]);
    run.push(span(LOOKUP, "lookup"));
    run.push(remote(2, "gateway/hot"));
    run.push(remote(CHARGE, "payments/charge"));
    run.samples[0].targets[0].target = LOOKUP;
    hold(&mut run, [2, LOOKUP, CHARGE], 10_000);
    run
}

fn payments(id: &str) -> Run {
    let mut run = service("payments", id, [900, 0, 100]);
    run.push(span(CHARGE, "charge"));
    run.push(remote(LOOKUP, "inventory/lookup"));
    hold(&mut run, [1, LOOKUP, CHARGE], 5_000);
    run
}

fn all(id: &str) -> Vec<Run> {
    vec![gateway(id), inventory(id), payments(id)]
}

/// The split, or why there is none.
fn told(runs: Vec<Run>) -> Result<LatencySplit, String> {
    let analysis = unite(runs, None).unwrap().analyse();
    match analysis.joint.unwrap().split {
        Split::Told(split) => Ok(split),
        Split::Untold { why } => Err(why),
    }
}

fn message(runs: Vec<Run>, entry: Option<&str>) -> String {
    unite(runs, entry).unwrap_err().to_string()
}

#[test]
fn profiles_of_one_run_are_a_report_of_the_entry_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let runs = all("r1");
        let united = unite(order.map(|at| runs[at].clone()).to_vec(), None).unwrap();
        assert_eq!((united.entry(), united.runs.len()), (Some("gateway"), 1));
        let analysis = united.analyse();
        let names: Vec<_> = analysis.targets.iter().map(|target| &*target.name).collect();
        assert_eq!(names[0], "inventory/lookup");
        assert_eq!(analysis.targets[0].verdict, Verdict::Matters);
        assert_eq!(analysis.targets[0].share, Some(0.2), "of the CPU time of its own service");
        let joint = analysis.joint.unwrap();
        assert_eq!((&*joint.entry, &joint.runs[..]), ("gateway", &["r1".to_owned()][..]));
        let services: Vec<_> = joint
            .services
            .iter()
            .map(|it| (&*it.service, it.program.as_deref().unwrap(), it.targets.len()))
            .collect();
        assert_eq!(
            services,
            [
                ("gateway", "gateway-server", 1),
                ("inventory", "inventory-server", 1),
                ("payments", "payments-server", 1)
            ]
        );
        assert_eq!(joint.services[1].targets, [0]);
    }
}

#[test]
fn another_entry_can_be_chosen() {
    let united = unite(all("r1"), Some("payments")).unwrap();
    assert_eq!(united.entry(), Some("payments"));
    assert_eq!(united.runs[0].header.program, "payments-server");
    let joint = united.analyse().joint.unwrap();
    assert_eq!(joint.services[0].service, "payments");
}

#[test]
fn several_joint_runs_are_as_many_runs() {
    let runs = [all("r1"), all("r2")].concat();
    let united = unite(runs, None).unwrap();
    assert_eq!(united.runs.len(), 2);
    let analysis = united.analyse();
    assert_eq!(analysis.targets[0].effects[0].runs, 2);
    let joint = analysis.joint.unwrap();
    assert_eq!(joint.runs, ["r1", "r2"]);
    assert_eq!(joint.services[1].runs, 2);
    assert_eq!(joint.services[1].absent, 0, "what another run held is no loss");
}

#[test]
fn experiment_that_one_service_discarded_is_discarded() {
    let mut runs = all("r1");
    let held = runs[0].experiments.len();
    runs[1].experiments[5].discarded = Some("steal 7 %".into());
    runs[1].experiments.truncate(held - 2);
    runs[0].experiments[7].discarded = Some("`payments` was lost".into());
    let analysis = unite(runs, None).unwrap().analyse();
    assert_eq!(analysis.discarded, 2);
    let joint = analysis.joint.unwrap();
    let reasons = |at: usize| -> Vec<(String, usize)> {
        let all = joint.services[at].discarded.iter();
        all.map(|it| (it.reason.clone(), it.count)).collect()
    };
    let from_inventory = ("`inventory`: steal 7 %".to_owned(), 1);
    assert_eq!(reasons(0), [from_inventory, ("`payments` was lost".to_owned(), 1)]);
    assert_eq!(reasons(1), [("steal 7 %".to_owned(), 1)]);
    assert_eq!((joint.services[0].absent, joint.services[1].absent), (0, 2));
}

#[test]
fn latency_of_a_request_is_split_by_service() {
    let split = told(vec![gateway("r1"), inventory("r1")]).unwrap();
    assert_eq!((&*split.point, split.requests, split.latency_ns), ("request", 100, 7_200.0));
    let entry = split.entry;
    assert_eq!((entry.work_ns, entry.queue_ns, entry.wait_ns), (1_000.0, 200.0, 6_000.0));
    let part = &split.services[0];
    assert_eq!((&*part.service, part.calls, part.parts.total_ns()), ("inventory", 1.0, 2_000.0));
    assert_eq!((part.parts.work_ns, part.parts.wait_ns), (1_500.0, 400.0));
    assert_eq!(split.between_ns, [4_000.0, 4_000.0]);
    assert_eq!(
        split.caveats,
        ["the time of `payments` is not told apart: its profile is not among these"]
    );
}

#[test]
fn services_that_may_overlap_leave_a_range_between_them() {
    let split = told(all("r1")).unwrap();
    let calls: Vec<f64> = split.services.iter().map(|part| part.calls).collect();
    assert_eq!(calls, [1.0, 0.5]);
    assert_eq!(split.services[1].parts.total_ns(), 500.0);
    assert_eq!(split.between_ns, [3_500.0, 4_000.0]);
    assert_eq!(split.caveats, ["whether requests of different services overlap is not recorded"]);
}

#[test]
fn what_the_records_do_not_tell_is_said() {
    let mut silent = all("r1");
    silent[0].wall.clear();
    assert!(told(silent).unwrap_err().starts_with("no wall time of a point"));
    let mut blind = all("r1");
    blind[1].wall.clear();
    let split = told(blind).unwrap();
    assert_eq!(split.services.len(), 1);
    assert!(split.caveats[0].contains("`inventory` is not told apart: it recorded no wall time"));
    let mut busy = all("r1");
    for one in &mut busy[1].experiments {
        one.points[0].count *= 4;
    }
    let split = told(busy).unwrap();
    assert!(split.caveats[0].starts_with("a request makes 4.0 of `inventory`"));
    assert!(split.caveats[1].contains("take longer than the entry waits"), "{:?}", split.caveats);
    assert_eq!(split.between_ns, [0.0, 5_500.0]);
}

#[test]
fn runs_that_have_nothing_to_do_with_each_other_stay_as_they_are() {
    let alone = |seed| crate::estimate::tests::measured(seed);
    let runs = vec![alone(2), alone(3)];
    let united = unite(runs.clone(), None).unwrap();
    assert_eq!((united.entry(), &united.runs), (None, &runs));
    assert_eq!(united.analyse(), analyse(&runs));
    // One service of a joint run, and runs of a program that was profiled by itself.
    let runs = vec![gateway("r1"), gateway("r2"), alone(2)];
    let united = unite(runs.clone(), Some("gateway")).unwrap();
    assert_eq!((united.entry(), &united.runs), (None, &runs));
}

#[test]
fn bad_mixes_are_refused_with_what_to_do() {
    let differ = message(vec![gateway("r1"), inventory("r2")], None);
    assert!(differ.starts_with("`inventory` was profiled in another run (r2) than `gateway`"));
    assert!(differ.contains("leave this one out"), "{differ}");
    let missing = message(vec![inventory("r1"), payments("r1")], None);
    assert!(missing.contains("the one of `gateway`, by whose points"), "{missing}");
    assert!(missing.contains("name it too"), "{missing}");
    let mut two = all("r1");
    two[1].joint.as_mut().unwrap().entry = Some("inventory".into());
    let two = message(two, None);
    assert!(two.contains("different entries, `gateway`, `inventory`"), "{two}");
    assert!(two.contains("--entry NAME"), "{two}");
    let mut old = all("r1");
    old.iter_mut().for_each(|run| run.joint.as_mut().unwrap().entry = None);
    let unknown = message(old, None);
    assert!(unknown.contains("`--entry NAME` (one of `gateway`, `inventory`, `payments`)"));
    let strange = message(all("r1"), Some("shop"));
    assert!(strange.starts_with("there is no profile of a service `shop` here"), "{strange}");
    let alone = message(vec![crate::estimate::tests::measured(2)], Some("shop"));
    assert!(alone.contains("were not: leave it out"), "{alone}");
    let mixed = message(vec![gateway("r1"), inventory("r1"), run_with_probe()], None);
    assert!(mixed.contains("program `shop` is of no run of several services"), "{mixed}");
}

#[test]
fn text_and_json_list_services_and_the_split() {
    let mut runs = all("r1");
    runs.pop();
    runs[1].push(Record::Note(NoteRecord::new(0, "a lock was held")));
    runs[1].experiments[5].discarded = Some("steal 7 %".into());
    let united = unite(runs, None).unwrap();
    let analysis = united.analyse();
    let text = report::text(&united.runs, &analysis, Looks::default());
    for wanted in [
        "MAKE FASTER",
        "  inventory/lookup lookup.rs:6",
        "SERVICES",
        "  inventory  lookup +20",
        "  payments   charge ",
        "payments took part, and its profile is not among these",
        "Left out in inventory: steal 7 % (1).",
        "A REQUEST OF request  7.20 us",
        "  gateway             1.20 us  17 %  work 1.00 us, queue 0.20 us",
        "  inventory x1.00     2.00 us  28 %  work 1.50 us, waits 0.40 us",
        "  between them        4.00 us  56 %  network, queues, other waits",
        "  - inventory: a lock was held",
        "of two folders, once inventory/lookup is faster",
    ] {
        assert!(text.contains(wanted), "{wanted}\nis not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&report::json(&united.runs, &analysis)).unwrap();
    let joint = &json["joint"];
    assert_eq!((&joint["entry"], &joint["runs"][0]), (&"gateway".into(), &"r1".into()));
    assert_eq!(joint["services"][2]["program"], serde_json::Value::Null);
    assert_eq!(joint["services"][1]["discarded"][0]["reason"], "steal 7 %");
    assert_eq!(joint["split"]["services"][0]["work_ns"], 1_500.0);
    assert_eq!(joint["split"]["between_ns"][0], 4_000.0);
    let apart = United::apart(united.runs.clone());
    let json: serde_json::Value =
        serde_json::from_str(&report::json(&apart.runs, &apart.analyse())).unwrap();
    assert!(json["joint"].is_null());
}

//! Facts on each service: its program, experiments that were lost in it, and its targets.

use super::split::split;
use super::{Services, is_together};
use crate::coordination::name_elsewhere;
use crate::estimate::{Analysis, Discarded, JointSummary, ServiceSummary, TargetSummary, seen};
use crate::report::notes;
use crate::{JointRun, Run, TargetKind, plain};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Gives the targets of other services the shares that they have of the time of their own service.
pub(super) fn add_shares(analysis: &mut Analysis, others: &Services) {
    for (service, runs) in others {
        for own in seen::targets(runs) {
            let name = remote_name(service, own.kind, &own.name);
            let is_same = |target: &&mut TargetSummary| {
                target.kind == TargetKind::Remote
                    && target.name == name
                    && (&target.file, target.line) == (&own.file, own.line)
            };
            if let Some(target) = analysis.targets.iter_mut().find(is_same) {
                (target.share, target.wall_share) = (own.share, own.wall_share);
            }
        }
    }
}

/// How the entry's profile names a target of another service.
fn remote_name(service: &str, kind: TargetKind, name: &str) -> String {
    plain::cut_name(&name_elsewhere(service, kind, &plain::cut_name(name))).into_owned()
}

/// All services, by the runs of the entry and those of the others.
pub(super) fn summary(
    entry: &str,
    runs: &[Run],
    others: &Services,
    analysis: &Analysis,
) -> JointSummary {
    let is_target_of = |target: &TargetSummary, service: &str| {
        service_of(target, others).map_or(service == entry, |of| service == of)
    };
    let targets = |service: &str| -> Vec<usize> {
        let indexed = analysis.targets.iter().enumerate();
        indexed.filter(|(_, target)| is_target_of(target, service)).map(|(at, _)| at).collect()
    };
    let all: Vec<&Run> = runs.iter().chain(others.values().flatten()).collect();
    let of_entry = of_service(entry, runs, &all);
    let mut services =
        vec![ServiceSummary { targets: targets(entry), notes: Vec::new(), ..of_entry }];
    let tested = analysis.targets.iter().filter_map(|target| service_of(target, others));
    let named: BTreeSet<&str> = tested.chain(others.keys().map(|name| &**name)).collect();
    services.extend(named.into_iter().map(|service| {
        let runs = others.get(service).map(Vec::as_slice).unwrap_or_default();
        ServiceSummary { targets: targets(service), ..of_service(service, runs, &all) }
    }));
    let split = split(runs, others, &services, analysis);
    let mut ids: Vec<String> = Vec::new();
    for JointRun { run, .. } in runs.iter().filter_map(|run| run.joint.as_ref()) {
        if !ids.contains(run) {
            ids.push(run.clone());
        }
    }
    JointSummary { entry: entry.to_owned(), runs: ids, services, split }
}

/// The other service that a target is of; `None` of one of the entry. A service of which there is
/// no profile has no `/` in its name.
fn service_of<'a>(target: &'a TargetSummary, others: &'a Services) -> Option<&'a str> {
    if target.kind != TargetKind::Remote {
        return None;
    }
    let has = |service: &&String| {
        target.name.strip_prefix(service.as_str()).is_some_and(|rest| rest.starts_with('/'))
    };
    let known = others.keys().filter(has).max_by_key(|service| service.len());
    known.map(|service| &**service).or_else(|| target.name.split('/').next())
}

/// Facts that the runs of one service tell, of `all` runs of all.
fn of_service(service: &str, runs: &[Run], all: &[&Run]) -> ServiceSummary {
    let header = runs.first().map(|run| &run.header);
    let held = |run: &Run| -> BTreeSet<u32> {
        run.experiments.iter().filter_map(|one| one.joint).collect()
    };
    let absent = |run: &Run| {
        let others = all.iter().filter(|other| is_together(run, other));
        let of_all: BTreeSet<u32> = others.flat_map(|other| held(other)).collect();
        of_all.difference(&held(run)).count()
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let stretches = || runs.iter().flat_map(|run| &run.experiments);
    for reason in stretches().filter_map(|one| one.discarded.as_deref()) {
        *reasons.entry(reason).or_default() += 1;
    }
    let mut discarded: Vec<Discarded> =
        reasons.into_iter().map(|(reason, count)| Discarded::new(reason, count)).collect();
    discarded.sort_by_key(|one| Reverse(one.count));
    ServiceSummary {
        service: service.to_owned(),
        program: header.map(|header| header.program.clone()),
        host: header.map(|header| header.host.clone()),
        cores: header.map(|header| header.cores),
        cores_used: seen::cores_used(runs),
        runs: runs.len(),
        stretches: stretches().count(),
        absent: runs.iter().map(absent).sum(),
        discarded,
        notes: notes(runs),
        targets: Vec::new(),
    }
}

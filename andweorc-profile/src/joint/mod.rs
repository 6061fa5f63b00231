//! One report over the profiles of several services that were profiled together.
//!
//! All services of a joint run hold the same experiments, and a target of any of them is tested in
//! all. So the profile of one service, the **entry**, tells what the targets of all do for its
//! points; the other profiles tell how the services spent their time, and what was lost in each.
//!
//! - **Together** are profiles that name the same joint run. Several joint runs of the same
//!   services are as many runs of the report.
//! - **The entry** is the service that the coordinator built and started itself, as the profiles
//!   name it, unless the user names another.
//! - **An experiment that any service discarded** is discarded in the report.
//!
//! | module | job |
//! |---|---|
//! | `summary` | what is known of each service |
//! | `split` | where the latency of the entry's point goes, by service |

mod split;
mod summary;
#[cfg(test)]
pub(crate) mod tests;

use crate::estimate::{Analysis, analyse};
use crate::{JointRun, Run, plain};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::{error, fmt};

/// Runs that make one report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct United {
    /// The runs that are estimated from: those of the entry alone, where several services were
    /// profiled together.
    pub runs: Vec<Run>,
    /// The other services, where there are any.
    others: Option<Others>,
}

/// The services of joint runs beside their entry.
#[derive(Clone, Debug)]
struct Others {
    entry: String,
    services: Services,
}

/// Runs by the name of their service.
type Services = BTreeMap<String, Vec<Run>>;

impl United {
    /// Runs of one service, or of services that have nothing to do with each other.
    pub fn apart(runs: Vec<Run>) -> United {
        United { runs, others: None }
    }

    /// Name of the entry service, where several were profiled together.
    pub fn entry(&self) -> Option<&str> {
        self.others.as_ref().map(|others| &*others.entry)
    }

    /// Analyses all metrics of all points. Targets of other services get the shares that they have
    /// of the time of their own.
    pub fn analyse(&self) -> Analysis {
        let mut analysis = analyse(&self.runs);
        if let Some(others) = &self.others {
            summary::add_shares(&mut analysis, &others.services);
            let Others { entry, services } = others;
            analysis.joint = Some(summary::summary(entry, &self.runs, services, &analysis));
        }
        analysis
    }
}

/// Takes runs together. Where they are of several services of joint runs, the report is about the
/// points of the entry: of the service named `entry`, or else of the one that the profiles name.
/// All other runs stay as they are.
///
/// # Errors
///
/// When runs of several services do not belong together, or it is not known which is the entry.
pub fn unite(runs: Vec<Run>, entry: Option<&str>) -> Result<United, MixError> {
    let joints = runs.iter().filter_map(|run| run.joint.as_ref());
    let services: BTreeSet<String> = joints.clone().map(|joint| joint.service.clone()).collect();
    if services.len() < 2 {
        return match entry {
            Some(entry) if !services.contains(entry) => {
                let entry = entry.to_owned();
                Err(MixError::NoSuchService { entry, services: services.into_iter().collect() })
            }
            _ => Ok(United::apart(runs)),
        };
    }
    if let Some(alone) = runs.iter().find(|run| run.joint.is_none()) {
        return Err(MixError::Alone { program: alone.header.program.clone() });
    }
    let named: BTreeSet<String> = joints.clone().filter_map(|joint| joint.entry.clone()).collect();
    let entry = entry_of(entry, services, named)?;
    let has_entry: BTreeSet<&str> =
        joints.clone().filter(|joint| joint.service == entry).map(|joint| &*joint.run).collect();
    if let Some(strange) = joints.clone().find(|joint| !has_entry.contains(&*joint.run)) {
        let JointRun { run, service, .. } = strange.clone();
        return Err(MixError::OtherRun { service, run, entry });
    }
    let mut services = Services::new();
    for run in runs {
        let service = run.joint.as_ref().map(|joint| joint.service.clone());
        services.entry(service.unwrap_or_default()).or_default().push(run);
    }
    let mut runs = services.remove(&entry).unwrap_or_default();
    for run in &mut runs {
        services.values().flatten().for_each(|other| discard_with(run, other));
    }
    Ok(United { runs, others: Some(Others { entry, services }) })
}

/// The entry: the one that is asked for, or else the one that the profiles name.
fn entry_of(
    asked: Option<&str>,
    services: BTreeSet<String>,
    named: BTreeSet<String>,
) -> Result<String, MixError> {
    let list = |services: BTreeSet<String>| services.into_iter().collect();
    if let Some(entry) = asked {
        return match services.contains(entry) {
            true => Ok(entry.to_owned()),
            false => {
                let (entry, services) = (entry.to_owned(), list(services));
                Err(MixError::NoSuchService { entry, services })
            }
        };
    }
    let mut all = named.iter();
    match (all.next(), all.next()) {
        (Some(entry), None) if services.contains(entry) => Ok(entry.clone()),
        (Some(entry), None) => {
            let (entry, services) = (entry.clone(), list(services));
            Err(MixError::NoEntry { entry, services })
        }
        (Some(_), Some(_)) => Err(MixError::TwoEntries { entries: list(named) }),
        (None, _) => Err(MixError::UnknownEntry { services: list(services) }),
    }
}

/// Discards the experiments of a run that another service discarded, if the two were profiled
/// together.
fn discard_with(run: &mut Run, other: &Run) {
    let Some(JointRun { service, .. }) = other.joint.as_ref().filter(|_| is_together(run, other))
    else {
        return;
    };
    let discarded: HashMap<u32, &str> = other
        .experiments
        .iter()
        .filter_map(|one| Some((one.joint?, one.discarded.as_deref()?)))
        .collect();
    for one in &mut run.experiments {
        if let Some(reason) = one.joint.and_then(|number| discarded.get(&number)) {
            one.discarded.get_or_insert_with(|| format!("`{service}`: {reason}"));
        }
    }
}

/// Whether two runs are parts of one joint run.
fn is_together(one: &Run, other: &Run) -> bool {
    one.joint.as_ref().zip(other.joint.as_ref()).is_some_and(|(one, other)| one.run == other.run)
}

/// Why runs can't make one report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MixError {
    /// A run is of no joint run, while others are.
    Alone {
        /// Its program.
        program: String,
    },
    /// A service is of a joint run that the entry is not of.
    OtherRun {
        /// The service.
        service: String,
        /// Id of its joint run.
        run: String,
        /// The entry.
        entry: String,
    },
    /// The profiles name an entry whose own profile is not among them.
    NoEntry {
        /// The entry.
        entry: String,
        /// Services whose profiles are there.
        services: Vec<String>,
    },
    /// The profiles do not say which service is the entry.
    UnknownEntry {
        /// Services whose profiles are there.
        services: Vec<String>,
    },
    /// The profiles name several entries.
    TwoEntries {
        /// These.
        entries: Vec<String>,
    },
    /// The entry that was asked for is none of the services.
    NoSuchService {
        /// The name that was asked for.
        entry: String,
        /// Services whose profiles are there; empty where none was profiled with others.
        services: Vec<String>,
    },
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |names: &[String]| {
            let quoted = names.iter().map(|it| format!("`{}`", plain::name(it)));
            quoted.collect::<Vec<_>>().join(", ")
        };
        let shown = plain::name;
        match self {
            MixError::Alone { program } => write!(
                f,
                "the profile of the program `{}` is of no run of several services, and the others are: it was profiled by itself, \
                 or held no experiment with them; leave it out",
                shown(program)
            ),
            MixError::OtherRun { service, run, entry } => write!(
                f,
                "`{}` was profiled in another run ({}) than `{}`: name the profile that `{entry}` wrote in that run too, or leave \
                 this one out",
                shown(service),
                shown(run),
                shown(entry),
                entry = shown(entry)
            ),
            MixError::NoEntry { entry, services } => write!(
                f,
                "these are profiles of {}, and the one of `{}`, by whose points they are ranked, is not among them: name it too, \
                 or choose another of them with `--entry NAME`",
                named(services),
                shown(entry)
            ),
            MixError::UnknownEntry { services } => write!(
                f,
                "these profiles do not say by the points of which service to rank: choose one with `--entry NAME` (one of {})",
                named(services)
            ),
            MixError::TwoEntries { entries } => write!(
                f,
                "these profiles are of runs with different entries, {}: name those of one of them, or choose with `--entry NAME`",
                named(entries)
            ),
            MixError::NoSuchService { entry, services } if services.is_empty() => write!(
                f,
                "`--entry {}` is for profiles of services that were profiled together, and these were not: leave it out",
                shown(entry)
            ),
            MixError::NoSuchService { entry, services } => write!(
                f,
                "there is no profile of a service `{}` here, but of {}: name its profile too, or another service",
                shown(entry),
                named(services)
            ),
        }
    }
}

impl error::Error for MixError {}

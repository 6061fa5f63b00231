//! Services that were profiled together, as the page shows them.

use andweorc_profile::estimate::{Analysis, LatencySplit, Split};
use andweorc_profile::plain;
use serde::Serialize;

/// The services, and where the latency of the entry's point goes.
#[derive(Debug, Serialize)]
pub(super) struct Joint {
    entry: String,
    services: Vec<Service>,
    split: Option<LatencySplit>,
    /// Why there is no split, if there is none.
    untold: Option<String>,
}

/// A service.
#[derive(Debug, Serialize)]
struct Service {
    name: String,
    /// Whether its profile is there.
    is_there: bool,
    cores: Option<usize>,
    cores_used: Option<f64>,
    stretches: usize,
    absent: usize,
    /// Reasons why stretches were left out, and how many had each.
    discarded: Vec<(String, usize)>,
    /// Indices of its targets, the surest gain first.
    targets: Vec<usize>,
}

/// The services of this analysis, if there are several.
pub(super) fn joint(analysis: &Analysis) -> Option<Joint> {
    let summary = analysis.joint.as_ref()?;
    let name = |name: &str| plain::name(name).into_owned();
    let services = summary.services.iter().map(|one| Service {
        name: name(&one.service),
        is_there: one.program.is_some(),
        cores: one.cores,
        cores_used: one.cores_used,
        stretches: one.stretches,
        absent: one.absent,
        discarded: one
            .discarded
            .iter()
            .map(|it| (plain::sentence(&it.reason).into_owned(), it.count))
            .collect(),
        targets: one.targets.clone(),
    });
    let (split, untold) = match &summary.split {
        Split::Told(split) => (Some(shown(split)), None),
        Split::Untold { why } => (None, Some(why.clone())),
        _ => (None, None),
    };
    Some(Joint { entry: name(&summary.entry), services: services.collect(), split, untold })
}

/// A split whose names are fit to be shown.
fn shown(split: &LatencySplit) -> LatencySplit {
    let mut split = split.clone();
    split.point = plain::name(&split.point).into_owned();
    for part in &mut split.services {
        part.service = plain::name(&part.service).into_owned();
    }
    for caveat in &mut split.caveats {
        *caveat = plain::sentence(caveat).into_owned();
    }
    split
}

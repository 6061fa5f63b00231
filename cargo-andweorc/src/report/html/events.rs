//! Events of the processor, as the page shows them.

use super::data::shown_place;
use crate::web::Sources;
use andweorc_profile::estimate::{Analysis, TargetEventSummary};
use andweorc_profile::plain;
use andweorc_profile::report::{event_label, event_losses};
use serde::Serialize;

/// So many targets are shown: those after them have few events.
const MOST: usize = 20;

/// Events of the processor by target.
#[derive(Debug, Serialize)]
pub(super) struct Events {
    seconds: f64,
    events: Vec<Event>,
    targets: Vec<Target>,
    /// Sentences on what was lost.
    losses: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Event {
    name: String,
    per_s: f64,
}

#[derive(Debug, Serialize)]
struct Target {
    label: String,
    place: Option<String>,
    /// The address of its place in the editor.
    editor: Option<String>,
    ipc: Option<f64>,
    /// Its part of each event, 0 to 1.
    shares: Vec<Option<f64>>,
}

/// The events of the runs; `None` where none were counted.
pub(super) fn events(analysis: &Analysis, sources: &Sources) -> Option<Events> {
    let summary = analysis.events.as_ref()?;
    let event = |name: &str, per_s| Event { name: plain::name(name).into_owned(), per_s };
    let target = |of: &TargetEventSummary| {
        let at = of.file.as_deref().zip(of.line);
        Target {
            label: event_label(of),
            place: shown_place(&of.name, of.file.as_deref(), of.line),
            editor: at.and_then(|(file, line)| sources.address(file, line)),
            ipc: of.ipc,
            shares: of.events.iter().map(|it| it.share).collect(),
        }
    };
    Some(Events {
        seconds: summary.seconds,
        events: summary.events.iter().map(|it| event(&it.name, it.per_s)).collect(),
        targets: summary.targets.iter().take(MOST).map(target).collect(),
        losses: event_losses(summary),
    })
}

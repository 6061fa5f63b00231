//! Notes on the runs for the user.

use crate::Run;
use crate::estimate::Analysis;

/// The reason why no point was measured, and a remedy.
pub fn why_nothing(runs: &[Run]) -> &'static str {
    if runs.iter().any(|run| !run.notes.is_empty()) {
        "Nothing could be measured; the notes say why."
    } else {
        "No progress point was hit, so there is nothing to rank by. Mark a unit of work with \
         `andweorc::progress!(\"name\")`, or give requests a tracing span, with \
         `andweorc::subscriber()`, or `andweorc::layer()` added to the program's own; then put \
         load on the program."
    }
}

/// How long a run was in real ns, as far as its profile tells.
pub fn real_ns(run: &Run) -> u64 {
    let last = || run.experiments.last().map_or(0, |e| e.start_ns.saturating_add(e.real_ns));
    run.end.as_ref().map_or_else(last, |end| end.real_ns)
}

/// Notes on the runs of other services that were profiled together with these, each with the
/// service's name.
pub fn service_notes(analysis: &Analysis) -> Vec<String> {
    let services = analysis.joint.iter().flat_map(|joint| &joint.services);
    let notes =
        services.flat_map(|it| it.notes.iter().map(|note| format!("{}: {note}", it.service)));
    notes.collect()
}

/// All that the user should know: the notes of the runs, and what was lost.
pub fn notes(runs: &[Run]) -> Vec<String> {
    let mut notes = Vec::new();
    for run in runs {
        notes.extend(run.notes.iter().map(|note| note.text.clone()));
        if run.torn {
            notes.push(
                "the last line of the profile was torn off: the program was killed".to_owned(),
            );
        } else if run.end.is_none() {
            notes.push("the profile has no end: the program was killed, or still runs".to_owned());
        }
        if let Some(end) = &run.end {
            if end.lost_records > 0 {
                notes.push(format!("{} records could not be written", end.lost_records));
            }
            if end.lost_samples > 0 {
                notes.push(format!("{} samples were lost", end.lost_samples));
            }
        }
    }
    notes.dedup();
    notes
}

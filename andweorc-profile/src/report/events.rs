//! Events of the processor in words.

use crate::estimate::{EventSummary, TargetEventSummary};
use crate::plain;
use crate::report::sections::named;

/// Overflows that were lost are told from this part of them on.
const LOST: f64 = 0.05;

/// An event that was not counted all the time is told from this part of it on.
const UNCOUNTED: f64 = 0.02;

/// The name in reports of a target of events.
pub fn event_label(of: &TargetEventSummary) -> String {
    of.kind.map_or_else(|| plain::name(&of.name).into_owned(), |kind| named(kind, &of.name))
}

/// Sentences on events that are not in the table, or not sure.
pub fn event_losses(summary: &EventSummary) -> Vec<String> {
    let mut losses = Vec::new();
    for event in &summary.events {
        let name = plain::name(&event.name);
        let lost = event.lost as f64 / (event.overflows + event.lost).max(1) as f64;
        if event.overflows == 0 {
            losses.push(format!("of {name} none was seen in the time"));
        } else if lost >= LOST {
            losses.push(format!(
                "{:.0} % of the overflows of {name} were not seen, and are taken to be like the others",
                100.0 * lost
            ));
        }
        if event.overflows > 0 && event.counted < 1.0 - UNCOUNTED {
            losses.push(format!(
                "the processor counted {name} for {:.0} % of the time, since it counts only some events at a time",
                100.0 * event.counted
            ));
        }
    }
    if summary.threads_left_out > 0 {
        losses.push(format!(
            "of {} threads nothing was counted: they block SIGURG, ended too soon, or needed more files than andweorc opens",
            summary.threads_left_out
        ));
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{analyse, events::tests::counting};

    #[test]
    fn losses_are_told_and_small_ones_are_not() {
        let mut summary = analyse(&[counting(3)]).events.unwrap();
        let losses = event_losses(&summary);
        assert_eq!(losses.len(), 3, "{losses:?}");
        assert!(losses[0].starts_with("20 % of the overflows of cycles"), "{losses:?}");
        assert!(losses[1].contains("counted instructions for 50 % of the time"), "{losses:?}");
        assert!(losses[2].starts_with("of 1 threads"), "{losses:?}");
        (summary.events[0].lost, summary.events[1].counted) = (1, 0.99);
        summary.threads_left_out = 0;
        assert_eq!(event_losses(&summary), Vec::<String>::new());
        summary.events[0].overflows = 0;
        assert_eq!(event_losses(&summary), ["of cycles none was seen in the time"]);
    }
}

//! The load in words.

use crate::estimate::{Analysis, Load, Probes};

/// `closed load`
pub fn load_name(load: Option<Load>) -> &'static str {
    match load {
        Some(Load::Closed) => "closed load",
        Some(Load::Open) => "open load",
        Some(Load::Mixed) => "mixed load",
        None => "load not known",
    }
}

/// The warning for a load that is not known to wait for the program: its throughput does not tell
/// then. `None` where it waits. One line, however long.
pub fn load_warning(analysis: &Analysis) -> Option<String> {
    let by_latency = analysis.ranked_by.metric.less_is_better();
    let what = match (analysis.load, analysis.probes) {
        (Some(Load::Closed), _) => return None,
        (Some(Load::Open), _) if by_latency => {
            return Some(
                "The load comes at its own pace, and the program keeps up: its throughput can't \
                 rise, so targets are ranked by mean latency."
                    .to_owned(),
            );
        }
        (Some(Load::Open), _) => {
            return Some(
                "The load comes at its own pace, and the program keeps up: its throughput can't \
                 rise, and nothing is said of it. Give it a latency point (a span per request), \
                 or a load that waits for answers."
                    .to_owned(),
            );
        }
        (_, None) if analysis.targets.is_empty() => return None,
        (Some(Load::Mixed), probes) => format!(
            "Part of the load waits for the program and part does not, or the program only just \
             keeps up{}.",
            probes
                .map_or(String::new(), |it| format!(": delayed, it made up for {}", made_up(&it)))
        ),
        (None, None) => {
            "Whether the load waits for the program is not known: it was not probed.".to_owned()
        }
        (None, Some(probes)) if probes.n < 2 => {
            "Whether the load waits for the program is not known: only one probe could be used."
                .to_owned()
        }
        (None, Some(probes)) if !probes.agree => format!(
            "Whether the load waits for the program is not known: its {} probes differ by more \
             than chance, as under a load that changes.",
            probes.n
        ),
        (None, Some(probes)) if !probes.are_possible() => format!(
            "Whether the load waits for the program is not known: delayed, it made up for {}, \
             which no load does. Part of it is delayed twice, or not at all, as with sockets in \
             tasks that nobody wrapped.",
            made_up(&probes)
        ),
        (None, Some(probes)) => format!(
            "Whether the load waits for the program is not known: delayed, it made up for {}; a \
             load that waits makes it 0 %, one at its own pace 100 %.",
            made_up(&probes)
        ),
    };
    Some(if by_latency {
        format!(
            "{what} So targets are ranked by mean latency, which means the same under any load."
        )
    } else {
        format!(
            "{what} So nothing is said of throughput; run longer, or give it a latency point (a \
             span per request)."
        )
    })
}

/// `21 % [10, 32] of the delay`
fn made_up(probes: &Probes) -> String {
    let share = |share: f64| (share * 100.0).round() + 0.0;
    let interval = match (probes.ci_low, probes.ci_high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", share(low), share(high)),
        _ => String::new(),
    };
    format!("{} %{interval} of the delay", share(probes.share))
}

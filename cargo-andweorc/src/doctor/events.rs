//! The events that a run can count by target on this machine (`--events`).

use crate::doctor::Check;
use andweorc_profile::settings::CountedEvent;
use andweorc_sampling::perf::{NotCounted, probe_counter};

/// Asks the kernel for each of these events, as a run that counts them does.
pub(super) fn check(wanted: &[CountedEvent]) -> Check {
    let (mut counted, mut refused) = (Vec::new(), Vec::new());
    for &event in wanted {
        match probe_counter(event) {
            Ok(()) => counted.push(event),
            Err(why) => refused.push(why),
        }
    }
    told(&counted, &NotCounted::by_reason(&refused))
}

fn told(counted: &[CountedEvent], refused: &[(String, Vec<CountedEvent>)]) -> Check {
    let can = match counted {
        [] => "none can be counted".to_owned(),
        _ => format!("{} can be counted", names(counted)),
    };
    if refused.is_empty() {
        return Check::good("events", can);
    }
    let cannot: Vec<CountedEvent> = refused.iter().flat_map(|(_, events)| events.clone()).collect();
    let seen = format!("{can}; {} cannot", names(&cannot));
    let reason = |(why, events): &(String, Vec<CountedEvent>)| match refused.len() {
        1 => why.clone(),
        _ => format!("{}: {why}", names(events)),
    };
    let reasons: Vec<String> = refused.iter().map(reason).collect();
    Check::doubt("events", seen, reasons.join("; "))
}

fn names(events: &[CountedEvent]) -> String {
    events.iter().map(|event| event.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use andweorc_sampling::perf;

    const CYCLES: CountedEvent = CountedEvent::Cycles;
    const FAULTS: CountedEvent = CountedEvent::PageFaults;

    #[test]
    fn events_that_cannot_be_counted_are_named_with_the_reason() {
        let check = told(&[FAULTS], &[("none here".to_owned(), vec![CYCLES])]);
        assert_eq!(
            check,
            Check::doubt("events", "page-faults can be counted; cycles cannot", "none here")
        );
        let refused = [("none here".to_owned(), vec![CYCLES]), ("no".to_owned(), vec![FAULTS])];
        let seen = "none can be counted; cycles, page-faults cannot";
        let why = "cycles: none here; page-faults: no";
        assert_eq!(told(&[], &refused), Check::doubt("events", seen, why));
        assert_eq!(told(&[CYCLES], &[]), Check::good("events", "cycles can be counted"));
    }

    #[test]
    fn events_of_the_kernel_are_counted_where_perf_events_are_allowed() {
        let check = check(&[FAULTS, CountedEvent::CpuClock]);
        let counts =
            check.level == Level::Good && check.seen == "page-faults, cpu-clock can be counted";
        assert_eq!(counts, perf::probe().is_ok(), "{check:?}");
    }

    #[test]
    fn each_event_is_on_the_side_on_which_a_run_finds_it() {
        let check = check(&CountedEvent::ALL);
        let mut can =
            check.seen.split("; ").next().unwrap().trim_end_matches(" can be counted").split(", ");
        for event in CountedEvent::ALL {
            let counted = probe_counter(event);
            assert_eq!(can.clone().any(|name| name == event.name()), counted.is_ok(), "{check:?}");
            if let Err(why) = counted {
                assert!(check.advice.contains(&why.to_string()), "{check:?}");
            }
        }
        assert!(can.next().is_some());
    }
}

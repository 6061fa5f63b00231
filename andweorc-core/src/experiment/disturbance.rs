//! Disturbances of an experiment: other things that the machine did meanwhile.

use crate::experiment::noise::Noise;
use crate::experiment::throttle::Throttled;
use crate::time::Nanos;
use std::collections::VecDeque;

/// By how much the share of stolen time may exceed what is stolen otherwise: above that the truth
/// itself was another one meanwhile. A machine from which always a tenth is stolen is a slower
/// machine, and experiments on it are compared with baselines on it.
const MAX_STOLEN: f64 = 0.05;

/// By how much the share that other processes used may exceed what they use otherwise: a load
/// generator on this machine is always there, a compiler that starts is not. The kernel counts in
/// ticks of some ms, so that the share of a short experiment is known to a few hundredths only.
const MAX_FOREIGN: f64 = 0.10;

/// By how much longer than otherwise the machine may stand still.
const MAX_STALLED: Nanos = Nanos::from_millis(2);

/// From so many experiments it is known what others use otherwise.
const MIN_KNOWN: usize = 3;

/// So many experiments back count for it.
const MAX_REMEMBERED: usize = 15;

/// Tells which experiments are discarded.
#[derive(Debug, Default)]
pub(crate) struct Disturbances {
    /// Shares of all processors that other processes used.
    foreign: Usual,
    /// Shares of them that were stolen.
    stolen: Usual,
    /// Seconds for which the machine [stood still](crate::stall).
    stalled: Usual,
}

/// Values of something in the last experiments.
#[derive(Debug, Default)]
struct Usual(VecDeque<f64>);

impl Usual {
    /// The median of those before, once there are enough, and takes in one more.
    fn next(&mut self, one: f64) -> Option<f64> {
        let usual = (self.0.len() >= MIN_KNOWN).then(|| median(self.0.iter().copied()));
        if self.0.len() == MAX_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(one);
        usual
    }
}

impl Disturbances {
    /// Why what happened between two readings must not be used, if so.
    pub(crate) fn reason_to_discard(&mut self, before: &Noise, after: &Noise) -> Option<String> {
        let limited = Throttled::reason_to_discard(before.throttled, after.throttled);
        let stalled = self.stalled(after.stalled - before.stalled);
        limited.or_else(|| self.disturbed(before, after)).or(stalled)
    }

    /// Why, if the machine stood still for so long.
    fn stalled(&mut self, stalled: Nanos) -> Option<String> {
        let usually = self.stalled.next(stalled.as_secs_f64()).unwrap_or(0.0);
        let is_more = stalled.as_secs_f64() - usually > MAX_STALLED.as_secs_f64();
        is_more
            .then(|| format!("the machine stood still for {:.0} ms", stalled.as_secs_f64() * 1e3))
    }

    /// Why, if the machine did something else.
    fn disturbed(&mut self, before: &Noise, after: &Noise) -> Option<String> {
        if before.ticks_per_second == 0.0 {
            // There was nothing to read.
            return None;
        }
        let all = after.all.checked_sub(before.all).filter(|&all| all > 0)? as f64;
        let share = |before: u64, after: u64| after.saturating_sub(before) as f64 / all;
        let stolen = share(before.stolen, after.stolen);
        let own = (after.own - before.own).as_secs_f64() * after.ticks_per_second / all;
        let foreign = (share(before.busy, after.busy) - own).max(0.0);

        let usual = self.foreign.next(foreign);
        let usually_stolen = self.stolen.next(stolen).unwrap_or(0.0);

        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        if stolen - usually_stolen > MAX_STOLEN {
            return Some(format!("the machine stole {} of the time", percent(stolen)));
        }
        let usual = usual.filter(|usual| foreign - usual > MAX_FOREIGN)?;
        Some(format!(
            "other processes used {} of the machine, {} otherwise",
            percent(foreign),
            percent(usual)
        ))
    }
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = of.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_long_the_machine_stood_still() {
        let mut disturbances = Disturbances::default();
        let before = Noise::at(100, 20, 0, 10);
        let stalled = |ms| {
            let mut noise = before;
            noise.stalled = Nanos::from_millis(ms);
            noise
        };
        let mut discarded = |ms| disturbances.reason_to_discard(&before, &stalled(ms));
        assert_eq!(discarded(15).unwrap(), "the machine stood still for 15 ms");
        assert_eq!(discarded(2), None);
        // A disturbance that goes on for long is how the machine is.
        for _ in 0..MAX_REMEMBERED {
            discarded(40);
        }
        assert_eq!(discarded(41), None);
        assert_eq!(discarded(45).unwrap(), "the machine stood still for 45 ms");
    }

    #[test]
    fn knows_nothing_without_a_first_reading() {
        let after = Noise::at(200, 60, 100, 50);
        assert_eq!(Disturbances::default().reason_to_discard(&Noise::default(), &after), None);
    }

    #[test]
    fn says_how_much_was_stolen() {
        let mut disturbances = Disturbances::default();
        let (before, after) = (Noise::at(100, 20, 0, 10), Noise::at(200, 60, 10, 50));
        assert_eq!(
            disturbances.reason_to_discard(&before, &after).unwrap(),
            "the machine stole 10 % of the time"
        );
        assert_eq!(disturbances.reason_to_discard(&before, &before), None);
        // A disturbance that goes on for long is how the machine is.
        for _ in 0..MIN_KNOWN {
            disturbances.reason_to_discard(&before, &after);
        }
        assert_eq!(disturbances.reason_to_discard(&before, &after), None);
        let more = Noise::at(200, 60, 20, 40);
        assert_eq!(
            disturbances.reason_to_discard(&before, &more).unwrap(),
            "the machine stole 20 % of the time"
        );
    }

    #[test]
    fn says_when_others_use_more_than_otherwise() {
        let mut disturbances = Disturbances::default();
        let start = Noise::at(0, 0, 0, 0);
        // The load generator always uses a fifth.
        for _ in 0..MIN_KNOWN {
            assert_eq!(disturbances.reason_to_discard(&start, &Noise::at(100, 70, 0, 50)), None);
        }
        assert_eq!(disturbances.reason_to_discard(&start, &Noise::at(100, 75, 0, 48)), None);
        assert_eq!(
            disturbances.reason_to_discard(&start, &Noise::at(100, 80, 0, 40)).unwrap(),
            "other processes used 40 % of the machine, 20 % otherwise"
        );
        // A disturbance that goes on for long is how the machine is.
        for _ in 0..MAX_REMEMBERED {
            disturbances.reason_to_discard(&start, &Noise::at(100, 80, 0, 40));
        }
        assert_eq!(disturbances.reason_to_discard(&start, &Noise::at(100, 80, 0, 40)), None);
    }
}

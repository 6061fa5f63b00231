//! What else the machine did during an experiment.

use std::fs;

/// Above this share of stolen time an experiment is spoiled: the truth itself was another one meanwhile.
const MOST_STOLEN: f64 = 0.05;

/// Ticks of all processors since boot, as /proc/stat counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    all: u64,
    stolen: u64,
}

impl Noise {
    /// Reads the counters; zeros where there are none, so that nothing is ever called spoiled.
    pub(crate) fn read() -> Noise {
        fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| Noise::parse(&text))
            .unwrap_or_default()
    }

    /// Parses the first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`.
    fn parse(text: &str) -> Option<Noise> {
        let mut fields = text.lines().next()?.split_ascii_whitespace();
        if fields.next()? != "cpu" {
            return None;
        }
        // Guest time is contained in user time already.
        let ticks: Vec<u64> = fields.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Noise { all: ticks.iter().sum(), stolen: ticks.get(7).copied()? })
    }

    /// Why what happened since `before` must not be used, if so.
    pub(crate) fn spoiled_since(&self, before: &Noise) -> Option<String> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        let share = self.stolen.saturating_sub(before.stolen) as f64 / all as f64;
        (share > MOST_STOLEN)
            .then(|| format!("the machine stole {:.0} % of the time", share * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_machine() {
        assert!(Noise::read().all > 0);
    }

    #[test]
    fn says_how_much_was_stolen() {
        let before = Noise::parse("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 ..").unwrap();
        let after = Noise::parse("cpu  50 0 20 120 0 0 0 10 40 0\n").unwrap();
        assert_eq!(after.spoiled_since(&before).unwrap(), "the machine stole 10 % of the time");
        assert_eq!(before.spoiled_since(&before), None);
        assert_eq!(Noise::parse("intr 1 2"), None);
        assert_eq!(Noise::parse("cpu 1 x"), None);
    }
}

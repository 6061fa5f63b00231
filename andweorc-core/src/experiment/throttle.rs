//! A limit on processor time, as container runtimes set it (cgroups of both versions): how often it
//! stopped the program.
//!
//! While it is stopped for its limit nothing is credited. But a program at its limit also gets
//! processor time back while it pauses, as it would not if a part of it were really faster: what an
//! experiment predicts there is worth nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// Above this share of periods in which the limit was reached an experiment is discarded.
const MAX_REACHED: f64 = 0.02;

/// Where the trees of cgroups are.
const ROOT: &str = "/sys/fs/cgroup";

/// Counts of the kernel, of the cgroup that the program is in and of those around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttled {
    /// Periods in which the program ran, in the cgroup that has most.
    periods: u64,
    /// In how many a limit was reached, in all of them.
    reached: u64,
}

impl Throttled {
    /// Reads the counts; zeros where nothing is limited, or nothing can be read.
    pub(crate) fn read() -> Throttled {
        let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        files(&cgroups)
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok())
            .filter_map(|text| Throttled::parse(&text))
            .fold(Throttled::default(), |all, one| Throttled {
                periods: all.periods.max(one.periods),
                reached: all.reached + one.reached,
            })
    }

    /// Parses a cgroup's `cpu.stat`. `None` where it has no limit to count by.
    fn parse(text: &str) -> Option<Throttled> {
        let number = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
        };
        Some(Throttled { periods: number("nr_periods")?, reached: number("nr_throttled")? })
    }

    /// Whether there is a limit, of the cgroup that the program is in or of one around it.
    pub(crate) fn is_limited(self) -> bool {
        self.periods > 0
    }

    /// Why what happened between two readings must not be used, if so.
    pub(crate) fn reason_to_discard(before: Throttled, after: Throttled) -> Option<String> {
        let reached = after.reached.saturating_sub(before.reached);
        let periods = after.periods.saturating_sub(before.periods).max(reached);
        (reached as f64 > MAX_REACHED * periods as f64).then(|| {
            format!(
                "a limit on processor time stopped the program in {reached} of {periods} periods: raise it (cgroup cpu.max, the \
                 container's CPU limit), or lower the load"
            )
        })
    }
}

/// The `cpu.stat` of the cgroups that `/proc/self/cgroup` names, and of those around them. In a
/// container they may be named as its host sees them: then the root, which is the container's own,
/// is there, and the others are not.
fn files(cgroups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            // Version 2.
            "" => Path::new(ROOT).to_owned(),
            _ if controllers.split(',').any(|one| one == "cpu") => Path::new(ROOT).join("cpu"),
            _ => continue,
        };
        let around = Path::new(path.trim_start_matches('/')).ancestors();
        files.extend(around.map(|folder| root.join(folder).join("cpu.stat")));
    }
    files
}

#[cfg(test)]
impl Throttled {
    /// A reading.
    pub(crate) fn at(periods: u64, reached: u64) -> Throttled {
        Throttled { periods, reached }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroups_of_both_versions_and_those_around_them_are_read() {
        let text = "4:memory:/a\n1:cpu,cpuacct:/pod/one\n0::/user/service\nwhat else\n";
        let paths = [
            "cpu/pod/one/cpu.stat",
            "cpu/pod/cpu.stat",
            "cpu/cpu.stat",
            "user/service/cpu.stat",
            "user/cpu.stat",
            "cpu.stat",
        ];
        assert_eq!(files(text), paths.map(|path| Path::new(ROOT).join(path)));
        assert_eq!(files("0::/"), [Path::new(ROOT).join("cpu.stat")]);
        assert!(files("").is_empty());
    }

    #[test]
    fn parses_what_the_kernel_writes() {
        let first = "nr_periods 20\nnr_throttled 7\nthrottled_time 123456\n";
        assert_eq!(Throttled::parse(first), Some(Throttled { periods: 20, reached: 7 }));
        let second = "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\n";
        assert_eq!(Throttled::parse(second), Some(Throttled::default()));
        assert_eq!(Throttled::parse("usage_usec 5\n"), None, "the root of version 2");
        let limited = [first, second].map(|text| Throttled::parse(text).unwrap().is_limited());
        assert_eq!(limited, [true, false]);
        assert_eq!(Throttled::parse("nr_periods x\nnr_throttled 1\n"), None);
    }

    #[test]
    fn experiment_at_the_limit_is_discarded() {
        let at = Throttled::at;
        assert_eq!(Throttled::reason_to_discard(at(10, 3), at(60, 3)), None);
        assert_eq!(Throttled::reason_to_discard(at(0, 0), at(100, 2)), None, "one in fifty");
        let why = Throttled::reason_to_discard(at(10, 3), at(15, 7)).unwrap();
        assert!(why.starts_with("a limit on processor time stopped the program in 4 of 5 periods"));
        // It was put into another cgroup.
        assert_eq!(Throttled::reason_to_discard(at(100, 30), at(0, 0)), None);
    }
}

//! Targets whose allocations stand out: enough of them to cost the program time.

use crate::estimate::{AllocationLine, AllocationSummary, Analysis};
use crate::plain;
use crate::report::words::{bytes, digits};

/// Time that allocating a small block and freeing it takes in a usual allocator, s.
const COST_S: f64 = 50e-9;

/// Allocations stand out from this part of the program's CPU time on, at that cost.
const PART: f64 = 0.01;

/// Or from so many bytes per second on, which have to be written before they are of use.
const BYTES_PER_S: f64 = 100e6;

/// So many targets are told at most, and so many lines.
const MOST: usize = 5;

/// A line is told from this part of the bytes on, and from so many samples on.
const LINE_PART: f64 = 0.05;
const LINE_SAMPLES: u64 = 5;

/// The allocations of a target in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Allocations<'a> {
    pub(super) summary: &'a AllocationSummary,
    pub(super) bytes: String,
    pub(super) count: String,
    /// Part that was freed at once.
    pub(super) churn: String,
    pub(super) held: String,
}

/// The allocations of a line in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AllocatingLine<'a> {
    pub(super) summary: &'a AllocationLine,
    pub(super) bytes: String,
    pub(super) count: String,
    /// Part of all bytes.
    pub(super) part: String,
}

/// The targets whose allocations stand out, the most bytes first, and the name of the point for
/// each hit of which they are told; `None` where they are told per second.
pub(super) fn allocations(analysis: &Analysis) -> (Option<String>, Vec<Allocations<'_>>) {
    let cores = analysis.cores_used.unwrap_or(1.0);
    let stands_out = |of: &&AllocationSummary| {
        of.count_per_s * COST_S >= PART * cores || of.bytes_per_s >= BYTES_PER_S
    };
    let point = analysis.ranking_point();
    let rate = point.and_then(|point| point.now.throughput).filter(|rate| *rate > 0.0);
    let words = |of| words(of, rate.unwrap_or(1.0));
    let shown = analysis.allocations.iter().filter(stands_out).take(MOST).map(words).collect();
    let name = point.filter(|_| rate.is_some()).map(|point| plain::name(&point.name).into_owned());
    (name, shown)
}

/// The lines that allocate the most, where targets stand out that do: most bytes first, per unit of
/// work or per second as these are.
pub(super) fn lines(analysis: &Analysis) -> Vec<AllocatingLine<'_>> {
    let (point, shown) = allocations(analysis);
    let rate = point.and_then(|_| analysis.ranking_point()?.now.throughput).unwrap_or(1.0);
    if shown.is_empty() {
        return Vec::new();
    }
    let is_told = |line: &&AllocationLine| line.part >= LINE_PART && line.samples >= LINE_SAMPLES;
    let words = |line| AllocatingLine {
        summary: line,
        bytes: bytes(line.bytes_per_s / rate),
        count: digits(line.count_per_s / rate),
        part: format!("{:.0} %", 100.0 * line.part),
    };
    analysis.allocation_lines.iter().filter(is_told).take(MOST).map(words).collect()
}

/// Of so many units of work per second, what one takes.
fn words(of: &AllocationSummary, rate: f64) -> Allocations<'_> {
    Allocations {
        summary: of,
        bytes: bytes(of.bytes_per_s / rate),
        count: digits(of.count_per_s / rate),
        churn: of.churn.map_or(String::new(), |part| format!("{:.0} %", 100.0 * part)),
        held: bytes(of.live_bytes as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::analyse;
    use crate::estimate::tests::measured;

    fn summary(bytes_per_s: f64, count_per_s: f64) -> AllocationSummary {
        AllocationSummary {
            kind: None,
            name: "outside".into(),
            file: None,
            line: None,
            bytes: 1,
            count: 1,
            bytes_per_s,
            count_per_s,
            churn: Some(0.5),
            live_bytes: 3 << 20,
            live_count: 1,
            peak_bytes: 3 << 20,
            threads: Vec::new(),
        }
    }

    #[test]
    fn few_and_small_allocations_are_not_told() {
        let mut analysis = analyse(&[measured(3)]);
        // Half a core is used, of which 1 % are 100,000 allocations a second.
        analysis.allocations =
            vec![summary(9e7, 9e4), summary(1e8, 1.0), summary(1.0, 1.1e5), summary(1.0, 1.0)];
        let (_, told) = allocations(&analysis);
        let told: Vec<_> = told.iter().map(|it| it.summary).collect();
        assert_eq!(told, [&analysis.allocations[1], &analysis.allocations[2]]);
        analysis.allocations = vec![summary(1e9, 1.0); 9];
        assert_eq!(allocations(&analysis).1.len(), MOST);
    }

    #[test]
    fn allocations_are_told_for_each_hit_of_the_point_where_it_is_hit() {
        let mut analysis = analyse(&[measured(3)]);
        analysis.points[0].now.throughput = Some(10_000.0);
        analysis.allocations = vec![summary(20_480_000.0, 1e6)];
        let told = allocations(&analysis);
        assert_eq!(told.0.as_deref(), Some("request"));
        assert_eq!((&*told.1[0].bytes, &*told.1[0].count), ("2.00 KiB", "100"));
        assert_eq!((&*told.1[0].churn, &*told.1[0].held), ("50 %", "3.00 MiB"));
        analysis.points[0].now.throughput = None;
        let (name, told) = allocations(&analysis);
        assert_eq!((name, &*told[0].bytes), (None, "19.5 MiB"));
    }
}

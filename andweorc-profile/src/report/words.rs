//! Numbers with their units, and what metrics are called.

use crate::estimate::{Effect, Metric};
use std::time::{Duration, UNIX_EPOCH};
use textwrap::core::display_width;

/// `1 experiment`, `2 experiments`
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The name of a metric: `mean` alone would say nothing.
pub fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::Mean => "mean latency",
        Metric::P50 => "p50 latency",
        Metric::P90 => "p90 latency",
        Metric::P99 => "p99 latency",
    }
}

/// The value of a metric, per second or in ns: `1350/s`, `12.1 ms`.
pub fn value(metric: Metric, value: f64) -> String {
    if metric == Metric::Throughput { format!("{}/s", digits(value)) } else { time(value) }
}

/// A time in ns: `12.1 ms`.
pub(super) fn time(ns: f64) -> String {
    match ns {
        1e9.. => format!("{} s", digits(ns / 1e9)),
        1e6.. => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} us", digits(ns / 1e3)),
    }
}

/// Bytes: `12.1 KiB`.
pub(super) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 { format!("{value:.0}") } else { digits(value) };
    format!("{digits} {}", UNITS[unit])
}

/// With three digits or more: `12.1`.
pub(super) fn digits(value: f64) -> String {
    let behind = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.behind$}")
}

/// The metrics that a point's first line has.
pub const MAIN_METRICS: [Metric; 4] = [Metric::Throughput, Metric::Mean, Metric::P50, Metric::P99];

/// The figures of a point, or as they would be, by these metrics: `654/s, p50 12.1 ms, p99 14.8
/// ms`. Those that are not known are left out.
pub fn values(metrics: &[Metric], of: impl Fn(Metric) -> Option<f64>) -> String {
    let shown = metrics.iter().filter_map(|&metric| {
        let value = value(metric, of(metric)?);
        Some(if metric == Metric::Throughput { value } else { format!("{metric} {value}") })
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// An effect in words: `+15.1 % [14.0, 16.2]`, or `not known` where the interval says nothing.
pub fn change(effect: &Effect) -> String {
    let pct = tenths(effect.effect_pct);
    match (effect.ci_low, effect.ci_high) {
        _ if effect.says_nothing() => wide(effect),
        (Some(low), Some(high)) => format!("{pct:+.1} % [{:.1}, {:.1}]", tenths(low), tenths(high)),
        _ => format!("{pct:+.1} % [one experiment]"),
    }
}

/// An effect whose interval is so wide that it says nothing but its sign, if that.
pub(super) fn wide(effect: &Effect) -> String {
    match (effect.ci_low, effect.ci_high) {
        (Some(low), _) if low.round() > 0.0 => format!("at least {low:+.0} %"),
        (_, Some(high)) if high.round() < 0.0 => format!("at most {high:+.0} %"),
        _ => "not known".to_owned(),
    }
}

/// Rounded to tenths, so that nothing is printed as `-0.0`.
pub fn tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0 + 0.0
}

/// How long: `45 s`, `12 min`.
pub(super) fn seconds(s: f64) -> String {
    if s >= 120.0 { format!("{:.0} min", s / 60.0) } else { format!("{s:.0} s") }
}

/// A time since the Unix epoch in ms, in UTC: `2026-11-21 07:57`; `None` beyond the year 9999.
pub fn date(unix_ms: u64) -> Option<String> {
    use std::fmt::Write;
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(unix_ms))?;
    let mut text = String::new();
    write!(text, "{}", humantime::format_rfc3339_seconds(time)).ok()?;
    Some(text.get(..16)?.replace('T', " "))
}

/// The text in so many columns, with an ellipsis in its middle where it has more.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if display_width(text) <= most {
        return text.to_owned();
    }
    let left = most.saturating_sub(1);
    let head = prefix(text.chars(), left.div_ceil(2));
    let tail = prefix(text.chars().rev(), left - left.div_ceil(2));
    let tail: String = tail.chars().rev().collect();
    // A mark would fall on the ellipsis.
    let tail = tail.trim_start_matches(|c: char| width(c) == 0);
    format!("{head}…{tail}")
}

/// The first of these characters, in so many columns.
fn prefix(chars: impl Iterator<Item = char>, most: usize) -> String {
    let mut left = most;
    chars.take_while(|&c| left.checked_sub(width(c)).map(|rest| left = rest).is_some()).collect()
}

fn width(c: char) -> usize {
    display_width(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("update_stock", 12), "update_stock");
        assert_eq!(shortened("update_stock_of_shop", 12), "update…_shop");
        assert_eq!(shortened("日本語の名前です", 9), "日本…です");
    }

    #[test]
    fn values_have_their_units() {
        assert_eq!(value(Metric::Throughput, 1350.4), "1350/s");
        assert_eq!(value(Metric::Throughput, 3.456), "3.46/s");
        assert_eq!(value(Metric::P99, 12_340_000.0), "12.3 ms");
        assert_eq!(value(Metric::P99, 2_000_000_000.0), "2.00 s");
        assert_eq!(value(Metric::P99, 900.0), "0.90 us");
    }

    #[test]
    fn bytes_have_the_unit_in_which_they_are_few() {
        let shown = [0.0, 100.4, 2_048.0, 1_288_490_188.8, 1e18].map(bytes);
        assert_eq!(shown, ["0 B", "100 B", "2.00 KiB", "1.20 GiB", "909495 TiB"]);
    }

    #[test]
    fn of_a_wide_interval_only_its_sure_end_is_told() {
        let analysis = crate::estimate::analyse(&[crate::estimate::tests::measured(2)]);
        let mut effect = analysis.targets[0].effects[0].clone();
        let mut shown = |low, high| {
            (effect.ci_low, effect.ci_high) = (Some(low), Some(high));
            change(&effect)
        };
        assert_eq!(shown(601.2, 812.0), "at least +601 %");
        assert_eq!(shown(-160.0, -20.4), "at most -20 %");
        assert_eq!(shown(-99.8, 17_208.7), "not known");
        assert!(shown(9.0, 11.0).ends_with(" % [9.0, 11.0]"));
    }

    #[test]
    fn nothing_has_no_minus_sign() {
        let shown = [-0.04, 0.04, -0.06, 1.25].map(|x| format!("{:+.1}", tenths(x)));
        assert_eq!(shown, ["+0.0", "+0.0", "-0.1", "+1.3"]);
    }

    #[test]
    fn dates_are_short() {
        assert_eq!(date(1_795_247_852_000).as_deref(), Some("2026-11-21 07:57"));
        assert_eq!(date(u64::MAX), None);
    }
}

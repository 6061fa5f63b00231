//! Notes that a run makes soon after its begin when nothing can be measured, so that nobody waits
//! for its end in vain.

use crate::experiment::choose::names;
use crate::settings::distance;
use std::time::Duration;

/// So long a run waits for a first hit, and from there on for what was named, before it says that
/// there is none.
pub(crate) const SOON: Duration = Duration::from_secs(3);

/// The first hit of a point, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Early {
    /// When one was seen first, since the begin of the run.
    hit: Option<Duration>,
    told: bool,
}

impl Early {
    /// Takes note of whether a point has been hit by `now`, since the begin of the run. True once:
    /// when it is to be said that none was.
    pub(crate) fn is_idle(&mut self, hit: bool, now: Duration) -> bool {
        if hit {
            self.hit.get_or_insert(now);
        }
        self.hit.is_none() && now >= SOON && !std::mem::replace(&mut self.told, true)
    }

    /// Whether what was not seen by `now` may be taken for what is not there: the program has had
    /// work for some time.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.hit.is_some_and(|hit| now >= hit + SOON)
    }
}

/// The note on a program of which no point was hit.
pub(crate) fn nothing_hit<'a>(points: impl Iterator<Item = &'a str>) -> String {
    format!(
        "no request seen in the first {} s (points known: {}): put load on the program, by `--load CMD` or by hand; the run waits for it until \
         its time is up",
        SOON.as_secs(),
        names(points)
    )
}

/// The note on names that nothing has: ``no target is named `stok`, did you mean `stock`? (targets
/// seen: `stock`): check --targets``.
pub(crate) fn unknown(what: &str, wanted: &[&str], known: &[&str], setting: &str) -> String {
    let named = names(wanted.iter().copied());
    let meant: Vec<&str> = wanted.iter().filter_map(|wanted| nearest(wanted, known)).collect();
    let meant = match meant.is_empty() {
        true => String::new(),
        false => format!(", did you mean {}?", names(meant.into_iter())),
    };
    let seen = names(known.iter().copied());
    format!("no {what} is named {named}{meant} ({what}s seen: {seen}): check {setting}")
}

/// The known name that differs from this one, without its kind, by a third of its letters at most,
/// and least.
fn nearest<'a>(wanted: &str, known: &[&'a str]) -> Option<&'a str> {
    // A path has two colons.
    let without_kind = wanted.split_once(':').filter(|(_, name)| !name.starts_with(':'));
    let wanted = without_kind.map_or(wanted, |(_, name)| name);
    let most = wanted.len().div_ceil(3);
    let near = known.iter().map(|known| (distance(known, wanted), *known));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_is_told_once_and_not_after_a_hit() {
        let second = Duration::from_secs;
        let mut early = Early::default();
        assert!(!early.is_idle(false, second(1)) && early.is_idle(false, second(3)));
        assert!(!early.is_idle(false, second(4)) && !early.is_over(second(9)));
        assert!(!early.is_idle(true, second(10)) && !early.is_over(second(12)));
        assert!(early.is_over(second(13)));
        let mut early = Early::default();
        assert!(!early.is_idle(true, second(2)) && !early.is_idle(true, second(5)));
    }

    #[test]
    fn a_misspelt_name_comes_with_what_may_be_meant() {
        let known = ["stock", "span", "stocktaking"];
        assert_eq!(
            unknown("target", &["stok"], &known, "--targets"),
            "no target is named `stok`, did you mean `stock`? (targets seen: `stock`, `span`, `stocktaking`): check --targets"
        );
        let text = unknown("point", &["nonsense"], &known, "ANDWEORC_POINTS");
        assert!(text.starts_with("no point is named `nonsense` (points seen: `stock`, "), "{text}");
        assert_eq!(nearest("render", &known), None);
        assert_eq!(nearest("span:stok", &known), Some("stock"));
        assert_eq!(nearest("shop::stok", &["shop::stock"]), Some("shop::stock"));
        assert_eq!(nearest("", &known), None);
    }
}

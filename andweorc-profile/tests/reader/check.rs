//! Checks that hold of any bytes that are read as a profile.

use andweorc_profile::estimate;
use andweorc_profile::report::{self, Looks};
use andweorc_profile::{Profile, ReadErrorKind};

/// Reads `bytes`, and checks what is said of them if they are damaged. Returns the damaged line.
pub(crate) fn read(bytes: &[u8]) -> Option<usize> {
    let kind = match Profile::parse(bytes) {
        Ok(profile) => {
            assert!(!profile.runs.is_empty());
            return None;
        }
        Err(kind) => kind,
    };
    let (ReadErrorKind::Damaged { line, .. } | ReadErrorKind::Schema { line, .. }) = &kind else {
        return None;
    };
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    assert!((1..=lines.len()).contains(line), "{kind}");
    assert!(kind.to_string().contains(&format!("line {line}")), "{kind}");
    let before = Profile::parse(&lines[..line - 1].concat());
    assert!(*line == 1 || before.is_ok(), "{kind}, but before that: {before:?}");
    Some(*line)
}

/// If `bytes` are a profile, there is a report of it. Says whether they are.
pub(crate) fn report(bytes: &[u8]) -> bool {
    let Ok(profile) = Profile::parse(bytes) else { return false };
    let analysis = estimate::analyse(&profile.runs);
    assert!(!report::text(&profile.runs, &analysis, Looks::default()).is_empty());
    assert!(report::json(&profile.runs, &analysis).starts_with('{'));
    true
}

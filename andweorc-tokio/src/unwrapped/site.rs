//! Targets of a task that nobody wrapped: it is counted by its name or its spawn site.

use crate::profiled::Kind;
use andweorc_core::hooks::target::{TaskTargets, target};
use andweorc_core::hooks::unwrapped::Spawned;
use andweorc_profile::TargetKind;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

/// By line; few files have a spawn site at the same one.
type Known = HashMap<u32, Vec<(String, &'static TaskTargets)>>;

static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);

/// The targets of this task: by its name, or by `file:line` of its spawn site.
pub(super) fn targets(spawned: &Spawned<'_>) -> &'static TaskTargets {
    if !spawned.name.is_empty() {
        return Kind::Name(Cow::Owned(spawned.name.to_owned())).targets();
    }
    let &Spawned { file, line, .. } = spawned;
    if let Some(known) = known(file, line) {
        return known;
    }
    let name = format!("{}:{line}", short(file));
    let new = |kind| target(kind, &name, Some(short(file)), Some(line));
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let at_line = known.entry(line).or_default();
    if let Some((_, targets)) = at_line.iter().find(|(at, _)| at == file) {
        return targets;
    }
    let targets = TaskTargets::new(new(TargetKind::Task), new(TargetKind::Wait));
    // As the targets themselves: there are as many as the program has kinds of tasks.
    let targets = Box::leak(Box::new(targets));
    at_line.push((file.to_owned(), targets));
    targets
}

fn known(file: &str, line: u32) -> Option<&'static TaskTargets> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.get(&line)?.iter().find(|(at, _)| at == file).map(|&(_, targets)| targets)
}

/// The file without the folder of cargo's registry: `hyper-1.8.1/src/rt.rs`.
fn short(file: &str) -> &str {
    file.split_once("/registry/src/")
        .and_then(|(_, of_registry)| of_registry.split_once('/'))
        .map_or(file, |(_, of_crate)| of_crate)
}

/// Whether this is where tokio starts its own workers, which it does on the blocking pool.
pub(super) fn is_worker(file: &str) -> bool {
    file.ends_with("src/runtime/scheduler/multi_thread/worker.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_libraries_are_called_by_their_library() {
        let cargo = "/home/a/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        assert_eq!(short(&format!("{cargo}/hyper-1.8.1/src/rt.rs")), "hyper-1.8.1/src/rt.rs");
        assert_eq!(short("src/main.rs"), "src/main.rs");
        assert!(is_worker(&format!(
            "{cargo}/tokio-1.54.1/src/runtime/scheduler/multi_thread/worker.rs"
        )));
        assert!(!is_worker("src/worker.rs"));
    }
}

//! The first place to mark in a program that has no points: where it is busy.

use crate::experiment::choose::names;
use crate::target::{Target, targets};
use andweorc_profile::TargetKind;
use std::cmp::Reverse;

/// So many functions, and tasks, are named.
const MAX_NAMED: usize = 3;

/// In which functions and tasks the program was busiest, and which function to give a span first.
/// `None` where it was busy in none.
pub(super) fn first_to_mark() -> Option<String> {
    let functions = busiest(TargetKind::Function, is_a_part);
    let tasks: Vec<_> = busiest(TargetKind::Task, |_| true).iter().map(|it| it.name()).collect();
    let first = functions.first()?;
    let place = first.file().zip(first.line()).map(|(file, line)| format!("{file}:{line}"));
    let functions: Vec<_> = functions.iter().map(|it| it.name()).collect();
    explain(&functions, place.as_deref(), &tasks)
}

/// The busiest targets of a kind.
fn busiest(kind: TargetKind, is_meant: fn(&str) -> bool) -> Vec<&'static Target> {
    let is_busy = |it: &&Target| it.kind() == kind && it.busy_ns() > 0 && is_meant(it.name());
    let mut all: Vec<_> = targets().into_iter().filter(is_busy).collect();
    all.sort_by_key(|it| Reverse(it.busy_ns()));
    all.truncate(MAX_NAMED);
    all
}

/// Whether a function may be a unit of work: `main` is the whole program, and a closure has no
/// place for an attribute.
fn is_a_part(function: &str) -> bool {
    !function.contains('{') && function.rsplit("::").next() != Some("main")
}

/// `place` is where the first of the functions is.
fn explain(functions: &[&str], place: Option<&str>, tasks: &[&str]) -> Option<String> {
    let by_task = match tasks {
        [] => String::new(),
        tasks => format!("; its busiest tasks are {}", names(tasks.iter().copied())),
    };
    let (first, all) = (functions.first()?, names(functions.iter().copied()));
    let at = place.map(|place| format!(" at {place}")).unwrap_or_default();
    Some(format!(
        "the program was busiest in {all}: add `#[tracing::instrument]` to `{first}`{at} first, or \
         to the function that handles a request{by_task}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_function_that_can_have_a_span_is_named() {
        let tasks = ["src/main.rs:4"];
        assert_eq!(explain(&[], None, &tasks), None);
        let said = explain(&["shop::handle", "shop::price"], Some("src/shop.rs:40"), &tasks);
        let said = said.unwrap();
        let add = "`#[tracing::instrument]` to `shop::handle` at src/shop.rs:40 first";
        assert!(said.contains(add), "{said}");
        assert!(said.ends_with("its busiest tasks are `src/main.rs:4`"), "{said}");
        assert!(is_a_part("shop::handle"));
        assert!(!is_a_part("shop::main") && !is_a_part("shop::handle::{closure#0}"));
    }
}

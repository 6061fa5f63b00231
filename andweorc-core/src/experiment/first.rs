//! The first place to mark in a program that has no points: where it is busy.

use crate::experiment::choose::names;
use crate::profile::TargetKind;
use crate::target::{Target, targets};
use std::cmp::Reverse;

/// So many functions, and tasks, are named.
const NAMED: usize = 3;

/// In which functions and tasks the program was busiest, and which function to give a span first.
/// `None` where it was busy in none.
pub(super) fn first_to_mark() -> Option<String> {
    explain(&busiest(TargetKind::Function, is_a_part), &busiest(TargetKind::Task, |_| true))
}

/// The names of the busiest targets of a kind.
fn busiest(kind: TargetKind, is_meant: fn(&str) -> bool) -> Vec<&'static str> {
    let is_busy = |it: &&Target| it.kind() == kind && it.busy_ns() > 0 && is_meant(it.name());
    let mut all: Vec<_> = targets().into_iter().filter(is_busy).collect();
    all.sort_by_key(|it| Reverse(it.busy_ns()));
    all.iter().take(NAMED).map(|it| it.name()).collect()
}

/// Whether a function may be a unit of work: `main` is the whole program, and a closure has no place
/// for an attribute.
fn is_a_part(function: &str) -> bool {
    !function.contains('{') && function.rsplit("::").next() != Some("main")
}

fn explain(functions: &[&str], tasks: &[&str]) -> Option<String> {
    let by_task = match tasks {
        [] => String::new(),
        tasks => format!("; its busiest tasks are {}", names(tasks.iter().copied())),
    };
    let (first, all) = (functions.first()?, names(functions.iter().copied()));
    Some(format!(
        "the program was busiest in {all}: add `#[tracing::instrument]` to `{first}` first, or to \
         the function that handles a request{by_task}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_function_that_can_have_a_span_is_named() {
        assert_eq!(explain(&[], &["src/main.rs:4"]), None);
        let said = explain(&["shop::handle", "shop::price"], &["src/main.rs:4"]).unwrap();
        assert!(said.contains("`#[tracing::instrument]` to `shop::handle` first"), "{said}");
        assert!(said.ends_with("its busiest tasks are `src/main.rs:4`"), "{said}");
        assert!(is_a_part("shop::handle"));
        assert!(!is_a_part("shop::main") && !is_a_part("shop::handle::{closure#0}"));
    }
}

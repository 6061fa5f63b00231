//! The primitive and the line of a wait, by the chains in which wakers were cloned.

use crate::symbols::NamedFrame;
use andweorc_profile::settings::{crate_of, is_std};
use andweorc_profile::{WaitSite, plain};

/// Code between a primitive and the waker that it clones, besides std's and andweorc's.
const ON_THE_WAY: [&str; 9] = [
    "tokio::loom",
    "tokio::sync::task",
    "tokio::util",
    "atomic_waker",
    "event_listener",
    "futures_core",
    "futures_task",
    "futures_util::task",
    "pin_project",
];

/// Code that waits for no other task: for a timer, for a socket, or for its turn.
const NO_TASKS: [&str; 7] = [
    "tokio::time",
    "tokio::runtime::time",
    "tokio::runtime::io",
    "tokio::runtime::scheduler",
    "tokio::runtime::context",
    "tokio::task::coop",
    "async_io",
];

/// The site of a wait for another task, of which the frames of each chain are these, the innermost
/// first. Without a name where none is found, or more than one.
pub(super) fn site(chains: &[Vec<NamedFrame>]) -> WaitSite {
    let mut sites: Vec<WaitSite> = chains.iter().filter_map(|frames| of_chain(frames)).collect();
    sites.dedup();
    match &sites[..] {
        [site] => site.clone(),
        _ => WaitSite::default(),
    }
}

/// The innermost frame in scope, and the outermost function of the primitive that it called. `None`
/// where no task is waited for.
fn of_chain(frames: &[NamedFrame]) -> Option<WaitSite> {
    let innermost = frames.iter().position(|frame| !is_on_the_way(&frame.function))?;
    let frames = &frames[innermost..];
    if starts_with_one_of(&frames[0].function, &NO_TASKS) || is_keeping(&frames[0].function) {
        return None;
    }
    let own = frames.iter().position(|frame| frame.is_in_scope);
    let family = family(&frames[0].function);
    let is_same = |frame: &&NamedFrame| self::family(&frame.function) == family;
    let primitive = frames[..own.unwrap_or(frames.len())]
        .iter()
        .take_while(|frame| is_same(frame) || is_on_the_way(&frame.function))
        .filter(is_same)
        .last();
    let cut = |name: &String| plain::cut_name(name).into_owned();
    let own = own.map(|own| &frames[own]);
    Some(WaitSite {
        call: primitive.map(|frame| cut(&frame.function)),
        function: own.map(|frame| cut(&frame.function)),
        file: own.and_then(|frame| frame.file.as_ref()).map(cut),
        line: own.and_then(|frame| frame.line),
        ..WaitSite::default()
    })
}

fn is_on_the_way(function: &str) -> bool {
    let of = crate_of(function);
    // `__rust_try` and the like have no path.
    of.is_none_or(|of| is_std(of) || of == "andweorc" || of.starts_with("andweorc_"))
        && !is_keeping(function)
        || starts_with_one_of(function, &ON_THE_WAY)
}

/// Whether a profiled future keeps the waker of the one around it, which is no wait.
fn is_keeping(function: &str) -> bool {
    function == "andweorc_tokio::wake::keep"
}

fn starts_with_one_of(function: &str, paths: &[&str]) -> bool {
    paths.iter().any(|path| {
        function.strip_prefix(path).is_some_and(|rest| rest.starts_with("::") || rest.is_empty())
    })
}

/// The part of a name that a primitive has in common with its own parts: the crate, and of tokio
/// the module too.
fn family(function: &str) -> &str {
    let parts = if crate_of(function) == Some("tokio") { 2 } else { 1 };
    let end = function.match_indices("::").nth(parts - 1);
    end.map_or(function, |(end, _)| &function[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(functions: &[&str]) -> Vec<NamedFrame> {
        let frame = |function: &&str| NamedFrame {
            function: (*function).to_owned(),
            file: Some("src/shop.rs".to_owned()),
            line: Some(40),
            is_in_scope: function.starts_with("shop::"),
        };
        functions.iter().map(frame).collect()
    }

    const CLONE: [&str; 4] = [
        "andweorc_sampling::own_chain::own_chain",
        "andweorc_core::wall::here::waker_cloned",
        "andweorc_tokio::wake::clone",
        "core::task::wake::Waker::clone",
    ];

    const LOCK: [&str; 4] = [
        "tokio::sync::batch_semaphore::Semaphore::poll_acquire",
        "tokio::sync::batch_semaphore::Acquire::poll",
        "tokio::sync::mutex::Mutex::acquire",
        "tokio::sync::mutex::Mutex::lock",
    ];

    const SLEEP: [&str; 5] = [
        "__rust_try",
        "tokio::sync::task::atomic_waker::AtomicWaker::register_by_ref",
        "tokio::runtime::time::entry::TimerEntry::poll_elapsed",
        "tokio::time::sleep::Sleep::poll",
        "shop::handle",
    ];

    fn named(chains: &[&[&str]]) -> (Option<String>, Option<String>) {
        let chains: Vec<_> =
            chains.iter().map(|chain| frames(&[&CLONE[..], chain].concat())).collect();
        let site = site(&chains);
        assert_eq!(site.line.is_some(), site.function.is_some());
        (site.call, site.function)
    }

    fn some(call: &str, function: &str) -> (Option<String>, Option<String>) {
        (Some(call.to_owned()), Some(function.to_owned()))
    }

    #[test]
    fn primitive_is_its_outermost_function_below_the_line_that_waits() {
        let lock = [&LOCK[..], &["tokio::time::timeout::Timeout::poll", "shop::handle"]].concat();
        let locked = some("tokio::sync::mutex::Mutex::lock", "shop::handle");
        assert_eq!(named(&[&lock]), locked);
        let receive = [
            "tokio::sync::task::atomic_waker::AtomicWaker::register",
            "tokio::sync::mpsc::chan::Rx::recv",
            "tokio::loom::std::unsafe_cell::UnsafeCell::with_mut",
            "tokio::sync::mpsc::bounded::Receiver::recv",
            "core::future::poll_fn::PollFn::poll",
            "shop::serve",
            "tokio::sync::mutex::Mutex::lock",
        ];
        let received = some("tokio::sync::mpsc::bounded::Receiver::recv", "shop::serve");
        assert_eq!(named(&[&receive]), received);
        let next = [
            "futures_core::task::AtomicWaker::register",
            "futures_channel::mpsc::Receiver::poll_next",
            "futures_util::stream::stream::next::Next::poll",
            "shop::serve",
        ];
        let next_one = some("futures_channel::mpsc::Receiver::poll_next", "shop::serve");
        assert_eq!(named(&[&next]), next_one);
        // A primitive of the program itself.
        assert_eq!(named(&[&["shop::Gate::poll"]]), (None, Some("shop::Gate::poll".to_owned())));
    }

    #[test]
    fn timer_beside_a_lock_is_not_what_a_task_ended() {
        let lock = [&LOCK[..], &["shop::handle"]].concat();
        let locked = some("tokio::sync::mutex::Mutex::lock", "shop::handle");
        assert_eq!(named(&[&lock, &SLEEP]), locked);
        assert_eq!(named(&[&lock, &lock]), locked, "one site twice");
        assert_eq!(named(&[&SLEEP]), (None, None));
        let other = [&LOCK[..], &["shop::audit"]].concat();
        assert_eq!(named(&[&lock, &other]), (None, None), "it may be either");
    }

    #[test]
    fn waker_that_a_future_inside_keeps_is_no_wait() {
        let kept = ["andweorc_tokio::wake::keep", "andweorc_tokio::profiled::poll", "shop::handle"];
        assert_eq!(named(&[&kept]), (None, None));
        assert_eq!(named(&[&[]]), (None, None));
    }
}

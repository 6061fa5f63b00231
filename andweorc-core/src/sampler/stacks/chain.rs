//! A call chain as a person reads it: without what starts threads and polls tasks.

use andweorc_profile::settings::{crate_of, is_std};

/// Part that a function has in a chain, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Code that does something.
    Code,
    /// Code of std, tokio, tracing or andweorc, which outside of all other code only carries it.
    Carrier,
    /// Of these, what polls a task.
    Poll,
    /// Of these, what a thread of Rust calls first of what is compiled with the program. What std
    /// calls before that has a frame pointer in any build, and is found even where a chain has lost
    /// all that is between.
    Start,
    /// Of these, what does nothing but poll or call what is inside of it.
    Passing,
}

/// How a chain ends at its outer end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the start of a thread, or where a runtime polls a task.
    Whole,
    /// Before that, since no more frames are kept.
    CutOff,
    /// Before that, since a function on the way has no frame pointer.
    Early,
}

impl Part {
    /// The part of the function of this name.
    pub(crate) fn of(name: &str) -> Part {
        let last = name.rsplit("::").next().unwrap_or(name);
        let Some(package) = crate_of(name) else {
            let carries = ["_start", "start_thread", "clone", "clone3", "main", "__rust_try"]
                .contains(&name)
                || name.starts_with("__libc_start_");
            return if carries { Part::Carrier } else { Part::Code };
        };
        let is_andweorc = package == "andweorc" || package.starts_with("andweorc_");
        let polls = match package {
            "tokio" => {
                let polls = ["poll", "poll_inner", "poll_future", "run", "run_task", "block_on"];
                name.starts_with("tokio::runtime::") && polls.contains(&last)
            }
            _ => is_andweorc && last == "poll",
        };
        let starts = package == "std" && last == "__rust_begin_short_backtrace";
        let is_carrier =
            is_std(package) || is_andweorc || package == "tokio" || package.starts_with("tracing");
        let passes = matches!(
            last,
            "poll" | "call_once" | "call_mut" | "call" | "catch_unwind" | "do_call" | "try"
        );
        match () {
            () if polls => Part::Poll,
            () if starts => Part::Start,
            () if !is_carrier => Part::Code,
            () if passes && package != "tokio" => Part::Passing,
            () => Part::Carrier,
        }
    }
}

/// Takes from a chain, the outermost frame first, what a person does not look for: all that
/// carries its first code, what only passes on polls and calls, and repetitions of a function that
/// calls itself, or whose closures are called inside of it. `in_task` says that the thread polled a
/// task, and `is_full` that the chain may have had more frames than are kept. Returns how it ends.
pub(crate) fn fold(
    chain: &mut Vec<u32>,
    in_task: bool,
    is_full: bool,
    part: impl Fn(u32) -> Part,
) -> End {
    let carriers = chain.iter().take_while(|&&frame| part(frame) != Part::Code).count();
    let carries = |frame: &u32| match part(*frame) {
        Part::Poll => true,
        Part::Start => !in_task,
        _ => false,
    };
    let last = chain[..carriers].iter().rposition(carries);
    // Without code, as of a worker without work, the rest of what carries it is what runs.
    let left_out = if carriers < chain.len() { carriers } else { last.map_or(0, |at| at + 1) };
    chain.drain(..left_out.min(chain.len().saturating_sub(1)));
    if let Some(innermost) = chain.pop() {
        chain.retain(|&frame| part(frame) != Part::Passing);
        chain.push(innermost);
    }
    chain.dedup();
    match (last.is_some(), is_full) {
        (true, _) => End::Whole,
        (false, true) => End::CutOff,
        (false, false) => End::Early,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that are left of a chain, and how it ends.
    fn folded(chain: &[&'static str], is_full: bool) -> (Vec<&'static str>, End) {
        folded_in(chain, true, is_full)
    }

    fn folded_in(chain: &[&'static str], in_task: bool, is_full: bool) -> (Vec<&'static str>, End) {
        let mut frames: Vec<u32> = chain
            .iter()
            .map(|name| chain.iter().position(|it| it == name).unwrap() as u32)
            .collect();
        let end = fold(&mut frames, in_task, is_full, |frame| Part::of(chain[frame as usize]));
        (frames.into_iter().map(|frame| chain[frame as usize]).collect(), end)
    }

    const START: [&str; 9] = [
        "clone3",
        "start_thread",
        "std::sys::thread::unix::Thread::new::thread_start",
        "core::ops::function::FnOnce::call_once",
        "std::sys::backtrace::__rust_begin_short_backtrace",
        "tokio::runtime::blocking::pool::Inner::run",
        "tokio::runtime::task::raw::poll",
        "andweorc_tokio::profiled::Profiled::poll",
        "core::pin::Pin::poll",
    ];

    #[test]
    fn chain_of_a_task_begins_with_its_own_code() {
        let chain = [
            &START[..],
            &[
                "shop::handle",
                "shop::handle",
                "tracing::instrument::Instrumented::poll",
                "shop::stock::update",
                "alloc::vec::Vec::push",
                "core::ops::function::FnOnce::call_once",
                "shop::stock::price",
                "core::ops::function::FnOnce::call_once",
            ],
        ]
        .concat();
        let expected = [
            "shop::handle",
            "shop::stock::update",
            "alloc::vec::Vec::push",
            "shop::stock::price",
            "core::ops::function::FnOnce::call_once",
        ];
        for is_full in [false, true] {
            assert_eq!(folded(&chain, is_full), (expected.to_vec(), End::Whole));
        }
    }

    #[test]
    fn chain_of_a_runtime_alone_is_kept() {
        let park = ["tokio::runtime::scheduler::Context::park", "tokio::runtime::Driver::park"];
        let chain = [&START[..6], &park].concat();
        assert_eq!(folded(&chain, false), (park.to_vec(), End::Whole));
        // Of nothing but carriers the innermost is left.
        assert_eq!(folded(&START[..6], false), (vec![START[5]], End::Whole));
    }

    #[test]
    fn chain_that_reaches_no_start_says_why() {
        let inner = ["core::pin::Pin::poll", "shop::handle", "shop::price"];
        let expected = ["shop::handle", "shop::price"].to_vec();
        assert_eq!(folded(&inner, true), (expected.clone(), End::CutOff));
        assert_eq!(folded(&inner, false), (expected, End::Early));
        assert_eq!(folded(&["memcpy"], false), (vec!["memcpy"], End::Early));
        assert_eq!(folded(&[], false), (vec![], End::Early));
        // A function that is called by code is no start.
        let calls = ["shop::handle", "tokio::runtime::handle::Handle::block_on", "shop::price"];
        assert_eq!(folded(&calls, true), (calls.to_vec(), End::CutOff));
    }

    #[test]
    fn chain_that_has_lost_all_between_a_thread_and_a_function_ends_early() {
        let chain = ["clone3", "start_thread", START[2], "shop::price"];
        for in_task in [false, true] {
            assert_eq!(folded_in(&chain, in_task, false), (vec!["shop::price"], End::Early));
        }
        // What the program itself is compiled with is there.
        let chain = [&START[..5], &["shop::price"]].concat();
        assert_eq!(folded_in(&chain, false, false), (vec!["shop::price"], End::Whole));
        assert_eq!(folded_in(&chain, true, false), (vec!["shop::price"], End::Early));
    }

    #[test]
    fn functions_of_libraries_of_c_are_code() {
        assert_eq!(Part::of("memcpy"), Part::Code);
        assert_eq!(Part::of("__libc_start_call_main"), Part::Carrier);
        assert_eq!(Part::of("__rust_try"), Part::Carrier);
        assert_eq!(Part::of("shop::main"), Part::Code);
        assert_eq!(Part::of("shop::poll"), Part::Code);
    }
}

//! Long polls in words: which task, how long, how often, where, and what experiments say of it.

use crate::estimate::{Analysis, LongPollSummary, PollSummary, TargetSummary};
use crate::plain;
use crate::report::sections::{label, sections};
use crate::report::words::{change, counted, metric_name, time};

/// The long polls at one place, in words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LongPollWords<'a> {
    /// All that is known of them.
    pub summary: &'a LongPollSummary,
    /// How long, how often and where: a sentence of which the task is the subject.
    pub text: String,
    /// The outcome of experiments on that kind of task or that function, a sentence; `None` where
    /// there were none.
    pub tested: Option<String>,
}

/// The long polls of the runs, the most time first.
pub fn long_polls(analysis: &Analysis) -> Vec<LongPollWords<'_>> {
    let Some(found) = &analysis.long_polls else { return Vec::new() };
    let words = |summary| LongPollWords {
        summary,
        text: text(summary, found.watched_ns),
        tested: tested(analysis, |target| summary.is_of(target)),
    };
    found.places.iter().map(words).collect()
}

/// Long polls that are told by their number alone: a sentence, where there are any.
pub fn long_polls_left_out(analysis: &Analysis) -> Option<String> {
    let found = analysis.long_polls.as_ref()?;
    let merged = (found.merged > 0).then(|| {
        format!(
            "{} at places beyond those that are told apart",
            counted(found.merged as usize, "long poll")
        )
    });
    let handed_over = (found.handed_over > 0).then(|| {
        format!(
            "{} of tasks that had handed their worker over (block_in_place), which block nobody else",
            counted(found.handed_over as usize, "long poll")
        )
    });
    let parts: Vec<String> = [merged, handed_over].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Left out: {}", parts.join("; ")))
}

fn text(summary: &LongPollSummary, watched_ns: u64) -> String {
    let at = &summary.at;
    let each = time(at.total_ns as f64 / at.count.max(1) as f64);
    // That of a runtime with several workers is none of them.
    let thread = if summary.name == "main" { "thread" } else { "worker" };
    let verb = match 2 * at.asleep > at.count {
        true => format!("blocked its {thread}"),
        false => format!("kept its {thread} busy"),
    };
    let often = match at.count {
        1 => format!("once in {}", time(watched_ns as f64)),
        many => format!(
            "{many} times in {}, for up to {}",
            time(watched_ns as f64),
            time(at.longest_ns as f64)
        ),
    };
    format!("{verb} for {each}{}, {often}", place(summary))
}

/// Where they are: ` at src/x.rs:40 in shop::render (std::thread::sleep)`.
fn place(summary: &LongPollSummary) -> String {
    let at = &summary.at;
    let mut words = String::new();
    if let (Some(file), Some(line)) = (&at.file, at.line) {
        words += &format!(" at {}:{line}", plain::name(file));
    }
    if let Some(function) = &at.function {
        words += &format!(" in {}", plain::name(function));
    }
    // The C library's own names of its functions tell less than the system call.
    let call = at.call.as_ref().filter(|call| call.contains("::") || at.syscall.is_none());
    if let Some(call) = call.or(at.syscall.as_ref()) {
        words += &format!(" ({})", plain::name(call));
    }
    if words.is_empty() { ", where is not known".to_owned() } else { words }
}

/// The outcome of experiments on a kind of task that was polled, a sentence; `None` where there
/// were none.
pub fn tested_polls(polls: &PollSummary, analysis: &Analysis) -> Option<String> {
    tested(analysis, |target| polls.is_of(target))
}

/// The outcome of the surest experiments on such a target.
fn tested(analysis: &Analysis, is: impl Fn(&TargetSummary) -> bool) -> Option<String> {
    let target = analysis.targets.iter().find(|target| is(target))?;
    let effect = target.ranking_effect()?;
    let heading = sections(analysis)
        .into_iter()
        .find(|section| section.targets.iter().any(|it| std::ptr::eq(*it, target)))?
        .heading;
    Some(format!(
        "{}, {:.0} % faster: {} {} ({heading})",
        label(target),
        100.0 * effect.speedup,
        metric_name(effect.metric),
        change(effect),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetKind;
    use crate::estimate::analyse;
    use crate::estimate::tests::measured;
    use crate::{LongPoll, LongPollsRecord, TargetRecord};

    fn poll() -> LongPoll {
        LongPoll {
            target: 91,
            count: 12,
            asleep: 12,
            total_ns: 960_000_000,
            longest_ns: 81_000_000,
            function: Some("shop::render".into()),
            file: Some("src/shop.rs".into()),
            line: Some(40),
            call: Some("std::thread::sleep".into()),
            syscall: Some("clock_nanosleep".into()),
        }
    }

    fn told(poll: LongPoll) -> Vec<(String, Option<String>)> {
        told_of("handle", poll)
    }

    fn told_of(task: &str, poll: LongPoll) -> Vec<(String, Option<String>)> {
        let mut run = measured(3);
        run.targets.push(TargetRecord::new(91, TargetKind::Task, task));
        let record = LongPollsRecord {
            threshold_ns: 10_000_000,
            watched_ns: 3_000_000_000,
            polls: vec![poll],
            merged: 1,
            handed_over: 2,
        };
        run.long_polls.push(record);
        let analysis = analyse(&[run]);
        let left_out = long_polls_left_out(&analysis).unwrap();
        assert!(left_out.contains("1 long poll at") && left_out.contains("2 long polls of tasks"));
        long_polls(&analysis).into_iter().map(|it| (it.text, it.tested)).collect()
    }

    #[test]
    fn a_long_poll_is_told_with_its_place_and_its_call() {
        let text = "blocked its worker for 80.0 ms at src/shop.rs:40 in shop::render (std::thread::sleep), \
             12 times in 3.00 s, for up to 81.0 ms";
        assert_eq!(told(poll()), [(text.to_owned(), None)]);
        let nowhere = LongPoll {
            function: None,
            file: None,
            line: None,
            call: None,
            syscall: None,
            ..poll()
        };
        assert!(told(nowhere)[0].0.contains("80.0 ms, where is not known, 12 times"));
        let spins = LongPoll { asleep: 3, ..poll() };
        assert!(told(spins)[0].0.starts_with("kept its worker busy for 80.0 ms"));
        let in_main = told_of("main", poll());
        assert!(in_main[0].0.starts_with("blocked its thread for"));
        let once = LongPoll { count: 1, total_ns: 80_000_000, ..poll() };
        assert!(told(once)[0].0.ends_with("once in 3.00 s"));
    }

    #[test]
    fn experiments_on_the_function_at_the_place_are_told() {
        let mut run = measured(3);
        run.targets.push(TargetRecord::new(91, TargetKind::Task, "handle"));
        let tested = &mut run.targets[0];
        tested.kind = TargetKind::Function;
        let function = Some(tested.name.clone());
        let record =
            LongPollsRecord { polls: vec![LongPoll { function, ..poll() }], ..Default::default() };
        run.long_polls.push(record);
        let analysis = analyse(&[run]);
        let words = long_polls(&analysis).remove(0).tested.unwrap();
        assert!(
            words.starts_with("function:") && words.contains("% faster: throughput +"),
            "{words}"
        );
    }
}

use super::*;
use crate::estimate::allocations::tests::of as allocations_of;
use crate::estimate::events::tests::counting;
use crate::estimate::tests::{measured, push, run};
use crate::estimate::{Load, Verdict, WaitSummary, analyse};
use crate::{
    AllocationFrame, AllocationGroup, AllocationNode, AllocationStacksRecord, AllocationsRecord,
    ExampleInterval, ExampleOf, ExampleSpan, ExampleState, ExamplesRecord, NoteRecord, Record,
    RequestExample, RequestExamples, TargetKind, TargetRecord, WaitTime, WallRecord,
};
use proptest::prelude::*;
use textwrap::core::display_width;

fn report(run: Run) -> String {
    of(run, |_| {})
}

/// The report of a run, of what is known of it changed so.
fn of(run: Run, change: impl FnOnce(&mut Analysis)) -> String {
    let runs = [run];
    let mut analysis = analyse(&runs);
    change(&mut analysis);
    text(&runs, &analysis, Looks::default())
}

/// The line of a report that contains this.
fn line<'a>(report: &'a str, with: &str) -> &'a str {
    let mut lines = report.lines();
    lines.find(|line| line.contains(with)).unwrap_or_else(|| panic!("{with}\nis not in\n{report}"))
}

#[test]
fn verdicts_stand_one_line_a_target_with_values_now_and_then() {
    let report = report(measured(4));
    let lines = [
        "andweorc: shop on here, 1970-01-01 00:00 UTC, closed load, 0.5 of 2 cores",
        "request now: 10001/s, mean 1.00 us, p50 1.00 us, p99 1.00 us",
        "If hot (20 % of CPU) took half as long: 11994/s, p50 0.83 us, p99 0.83 us",
        "MAKE FASTER       at 25 %  rate at 50 % faster     then  p99 at 50 %",
        "  hot shop.rs:10  +10.0 %  +19.9 % [19.8,20.1]  11994/s  -17 % [-17,-17]",
        "LEAVE ALONE (<1 %)   CPU  rate at 50 % faster",
        "  cold shop.rs:20   70 %  ",
        "the profile has no end",
    ];
    for wanted in lines {
        line(&report, wanted);
    }
}

#[test]
fn tells_what_other_processes_used_beside_the_program() {
    let held = |part_of_time: Option<u64>| {
        let mut run = measured(1);
        for samples in &mut run.samples {
            samples.others_ns = part_of_time.map(|part| samples.real_ns * part / 100);
        }
        line(&report(run), "4 experiments").to_owned()
    };
    assert!(held(Some(30)).ends_with(", other processes used 0.3 cores"));
    assert!(!held(Some(4)).contains("other processes"), "they hardly did anything");
    assert!(!held(None).contains("other processes"));
}

#[test]
fn tells_what_experiments_cost_the_program() {
    let with_overhead = |pct: f64| {
        of(measured(4), |analysis| {
            for effect in analysis.targets.iter_mut().flat_map(|target| &mut target.effects) {
                effect.overhead_pct = Some(pct);
            }
        })
    };
    line(&with_overhead(13.4), "Experiments cost up to 13 % more CPU a hit");
    assert!(!with_overhead(0.4).contains("more CPU a hit"));
    assert!(!report(measured(4)).contains("more CPU a hit"), "it was not measured");
}

#[test]
fn of_a_target_that_fills_time_no_share_is_told_and_why() {
    let report = of(measured(4), |analysis| analysis.targets[1].fills_time = true);
    line(&report, "LEAVE ALONE (<1 %)  CPU  rate at 50 % faster");
    line(&report, "  cold shop.rs:20        +0.0 %");
    line(&report, "cold spins, or works without a pause on what nobody waits for: its CPU time");
    line(&report, "grows with the time that others take, so its share of CPU says nothing.");
}

#[test]
fn report_ends_with_one_next_command() {
    let report = report(measured(4));
    let next = report.lines().rev().nth(1).unwrap();
    assert_eq!(next, "NEXT  cargo andweorc run --compare HEAD");
}

#[test]
fn says_which_build_of_tokio_it_was_where_that_is_known() {
    let held = |tokio: Option<&str>, unstable| {
        let mut run = measured(1);
        (run.header.tokio, run.header.tokio_unstable) = (tokio.map(str::to_owned), unstable);
        line(&report(run), "4 experiments").to_owned()
    };
    assert!(held(Some("1.54.1"), Some(true)).ends_with(" s, tokio_unstable"));
    assert!(held(Some("1.54.1"), Some(false)).ends_with(" s, stable tokio"));
    assert!(held(Some("1.54.1"), None).ends_with(" s"));
    assert!(held(None, Some(true)).ends_with(" s"));
}

#[test]
fn says_that_a_program_was_built_without_sampling() {
    let held = |sampling| {
        let mut run = measured(1);
        run.header.sampling = sampling;
        line(&report(run), "4 experiments").to_owned()
    };
    assert!(held(Some(false)).ends_with(" s, built without sampling"));
    assert_eq!(held(Some(true)), held(None));
}

#[test]
fn warns_of_a_load_that_does_not_wait() {
    let warning = "The load comes at its own pace";
    assert!(!report(measured(2)).contains(warning));
    let open = of(measured(2), |analysis| analysis.load = Some(Load::Open));
    assert!(open.contains(warning) && open.contains("open load, 0.5 of 2 cores"), "{open}");
}

#[test]
fn noise_is_told_in_the_first_lines() {
    let noisy = of(measured(2), |analysis| analysis.discarded = analysis.stretches * 4 / 10);
    let second: Vec<&str> = noisy.lines().skip(1).take(2).collect();
    assert!(second.join(" ").contains("met a limit: 38 % of stretches"), "{noisy}");
    let quiet = of(measured(2), |analysis| analysis.discarded = 1);
    assert!(!quiet.contains("limit") && quiet.contains(", 1 of 21 stretches left out"), "{quiet}");
}

#[test]
fn functions_and_lines_are_named_once_and_waits_described() {
    let mut run = measured(3);
    run.targets[0].kind = TargetKind::Function;
    run.targets[0].name = "shop::stock::update".into();
    (run.targets[0].file, run.targets[0].line) = (None, None);
    run.targets[1].kind = TargetKind::Line;
    run.targets[1].name = "src/shop.rs:20".into();
    let shown = report(run.clone());
    line(&shown, "  function:sh…ck::update   +9.9 %");
    line(&shown, "  line:src/shop.rs:20  70 %  ");
    run.targets[0].kind = TargetKind::Wait;
    run.targets[0].name = "payment".into();
    let shown = report(run);
    line(&shown, "If what payment waits for took half as long: ");
    line(&shown, "  wait:payment   +9.9 %");
}

#[test]
fn waits_that_were_not_tested_are_listed() {
    let wait = |name: &str, total_ns| WaitSummary {
        name: name.into(),
        file: Some("src/shop.rs".into()),
        line: Some(118),
        count: 10,
        total_ns,
        by: WaitTime { outside_ns: total_ns, ..WaitTime::default() },
    };
    let report = of(measured(2), |analysis| {
        analysis.waits.extend((0..12).map(|i| wait(&format!("payment {i}"), 2_000)));
        analysis.waits.push(wait("short", 20));
    });
    line(&report, "WAITS, untested");
    line(&report, "  payment 0 shop.rs:118  0.20 us each, 100 % timers and I/O");
    line(&report, "  and 2 more: cargo andweorc report --top 12");
    assert!(!report.contains("payment 10") && !report.contains("short"), "{report}");
}

#[test]
fn flame_graph_is_named_where_there_is_one() {
    let named = "      where wall time went, by span: cargo andweorc view, Flame graph";
    let mut measured = measured(2);
    assert!(!report(measured.clone()).contains(named));
    measured.wall.push(WallRecord::default());
    line(&report(measured), named);
}

#[test]
fn slow_request_of_a_point_is_told_by_its_largest_parts() {
    let mut measured = measured(2);
    let point = measured.points[0].clone();
    let target = TargetRecord {
        id: 77,
        kind: TargetKind::Span,
        name: point.name,
        file: point.file,
        line: point.line,
    };
    measured.push(Record::Target(target));
    let without = report(measured.clone());
    assert!(!without.contains("A SLOW REQUEST"), "{without}");
    let interval = |state, by, begin_ns, end_ns| ExampleInterval { state, by, begin_ns, end_ns };
    let intervals = vec![
        interval(ExampleState::Running, None, 0, 200),
        interval(ExampleState::Task, Some(2), 200, 950),
        interval(ExampleState::Queue, None, 950, 1_000),
    ];
    let span = |parent, target, begin_ns, intervals| ExampleSpan {
        parent,
        target: Some(target),
        begin_ns,
        end_ns: 1_000,
        intervals,
    };
    let example = |of, spans: &[ExampleSpan]| RequestExample {
        of,
        about_ns: 1_010,
        spans: spans.to_vec(),
        merged: 0,
        left_out: 0,
    };
    let spans = [span(None, 77, 0, Vec::new()), span(Some(0), 1, 0, intervals)];
    let examples = vec![example(ExampleOf::P50, &spans[..1]), example(ExampleOf::P99, &spans)];
    let requests = vec![RequestExamples { target: 77, count: 9, examples }];
    measured.examples.push(ExamplesRecord { requests, untraced: 0 });
    let report = report(measured);
    line(&report, "A SLOW REQUEST, about the p99");
    line(&report, "  request: 1.00 us, 75 % waiting for cold in hot, 20 % running in hot, 5 % in");
}

#[test]
fn says_how_to_add_a_point_when_there_is_none() {
    let mut empty = run();
    empty.points.clear();
    let report = report(empty);
    assert!(report.contains("progress!") && report.contains("andweorc::layer()"), "{report}");
    line(&report, "NEXT  cargo andweorc run --load 'COMMAND'");
}

#[test]
fn says_what_is_not_known_yet() {
    let mut run = run();
    push(&mut run, None, 0.0, 1_000, 1);
    push(&mut run, Some(1), 0.5, 1_000, 2);
    let report = report(run);
    line(&report, "waits for the program is not known: it was not probed");
    line(&report, "UNDECIDED");
    let row = line(&report, "  hot shop.rs:10");
    assert!(row.contains("+100.0 % (once)") && row.ends_with("a repetition"), "{row}");
}

#[test]
fn effect_without_evidence_reads_not_known_or_not_measured() {
    let vague = of(measured(2), |analysis| {
        let hot = &mut analysis.targets[0];
        hot.verdict = Verdict::Inconclusive { more_seconds: Some(2_280.0) };
        for effect in &mut hot.effects {
            (effect.ci_low, effect.ci_high) = (Some(-99.8), Some(17_208.7));
        }
        let cold = &mut analysis.targets[1];
        cold.verdict = Verdict::Inconclusive { more_seconds: Some(90.0) };
        cold.effects.clear();
    });
    assert!(line(&vague, "  hot shop.rs:10").ends_with("20 %  not known            38 min more"));
    assert!(line(&vague, "  cold shop.rs:20").ends_with("70 %  not measured         90 s more"));
    assert!(!vague.contains("17208"), "{vague}");
}

#[test]
fn colours_are_there_when_asked_for_and_change_no_text() {
    let runs = [measured(3)];
    let analysis = analyse(&runs);
    let styled = text(&runs, &analysis, Looks { styled: true, ..Looks::default() });
    let plain = text(&runs, &analysis, Looks::default());
    assert!(styled.contains("\u{1b}[1mMAKE FASTER") && !plain.contains('\u{1b}'), "{styled}");
    let stripped: String = styled
        .split('\u{1b}')
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once('m').unwrap().1 })
        .collect();
    assert_eq!(stripped, plain);
}

#[test]
fn escapes_what_could_rule_the_terminal() {
    let mut run = measured(3);
    run.targets[0].name = "a\u{1b}[2Jb\n".into();
    run.push(Record::Note(NoteRecord { at_ns: 0, text: "x\u{7}".into() }));
    let report = report(run);
    assert!(!report.contains(['\u{1b}', '\u{7}']), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn no_line_of_a_report_is_wider_than_80_columns(
        names in prop::collection::vec("[a-zA-Z:_é日]{1,90}", 4),
        factor in 0.1_f64..20.0,
        load in prop::option::of(prop::sample::select(vec![Load::Open, Load::Mixed])),
    ) {
        let mut run = measured(2);
        run.header.program = names[0].clone();
        run.header.host = names[1].clone();
        run.points[0].name = names[2].clone();
        run.targets[0].name = names[3].clone();
        let report = of(run, |analysis| {
            if load.is_some() {
                analysis.load = load;
            }
            for effect in analysis.targets.iter_mut().flat_map(|target| &mut target.effects) {
                effect.effect_pct *= factor;
                effect.ci_high = effect.ci_low.map(|low| low + factor);
            }
        });
        for line in report.lines().filter(|line| !line.starts_with("NEXT")) {
            prop_assert!(display_width(line) <= WIDTH, "{}", line);
        }
    }
}

#[test]
fn allocations_stand_in_a_table_where_they_stand_out() {
    let told = |bytes: u64| {
        let mut run = measured(3);
        run.allocations = vec![AllocationsRecord {
            seq: None,
            real_ns: 1_000_000_000,
            targets: vec![
                allocations_of(Some(1), [bytes, 2_000_000, bytes / 4, 1 << 20]),
                allocations_of(None, [1, 1, 0, 1]),
            ],
        }];
        let frame = |name: &str, line, own| AllocationFrame {
            name: name.into(),
            file: Some("src/shop.rs".into()),
            line: Some(line),
            own,
        };
        let node = |parent, frame, bytes| AllocationNode {
            parent,
            frame,
            samples: bytes / 1_000_000,
            bytes,
            count: bytes / 512,
        };
        run.allocation_stacks = vec![AllocationStacksRecord {
            real_ns: 1_000_000_000,
            frames: vec![frame("shop::price", 12, true), frame("alloc::vec::push", 9, false)],
            groups: vec![AllocationGroup {
                target: Some(1),
                thread: None,
                stacks: vec![node(None, 0, 24_000_000), node(Some(0), 1, bytes - 24_000_000)],
            }],
            samples: bytes / 1_000_000,
            ..AllocationStacksRecord::default()
        }];
        of(run, |analysis| analysis.points[0].now.throughput = Some(10_000.0))
    };
    let report = told(1_024_000_000);
    let by_line = line(&report, "shop::price");
    for wanted in ["shop.rs:12", "100 KiB", "200", "100 %"] {
        assert!(by_line.contains(wanted), "{by_line}");
    }
    line(&report, "ALLOCATIONS per request");
    let of_hot = line(&report, "100 KiB");
    for wanted in ["hot shop.rs:10", "200", "25 %", "1.00 MiB"] {
        assert!(of_hot.contains(wanted), "{of_hot}");
    }
    assert!(!report.contains("outside"), "it is nothing to speak of\n{report}");
    assert!(!report_of_a_usual_allocator().contains("ALLOCATIONS"));
}

#[test]
fn events_stand_in_a_table_with_instructions_a_cycle() {
    let run = |change: fn(&mut Run)| {
        let mut run = measured(3);
        run.targets.push(TargetRecord::new(3, TargetKind::Span, "stock"));
        run.events = counting(3).events;
        change(&mut run);
        report(run)
    };
    let told = run(|_| {});
    let cells = |report: &str, with: &str| {
        line(report, with).split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(cells(&told, "EVENTS")[2..], ["IPC", "cycles", "instructions"]);
    assert_eq!(cells(&told, "  stock"), ["stock", "2.25", "80", "%", "90", "%"]);
    assert_eq!(cells(&told, "  outside"), ["outside", "20", "%"], "too few tell of instructions");
    line(&told, "20 % of the overflows of cycles were not seen");
    let faults = run(|run| {
        for (event, name) in run.events[0].events.iter_mut().zip(["page-faults", "cpu-clock"]) {
            event.name = name.to_owned();
        }
    });
    assert_eq!(cells(&faults, "EVENTS")[2..], ["page-faults", "cpu-clock"]);
    assert!(!report(measured(3)).contains("EVENTS"));
}

fn report_of_a_usual_allocator() -> String {
    report(measured(3))
}

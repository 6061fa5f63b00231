use super::*;
use crate::wait::Cause;
use andweorc_profile::WallStack;

/// A request of a scripted program, whose stacks are `[root, a, b]`.
struct Script {
    request: Request,
    begun: i64,
}

const ROOT: u32 = 1;
const A: u32 = 2;
const B: u32 = 3;

impl Script {
    /// Begins a request, the span of which is returned.
    fn begin(at: i64) -> (Script, u32) {
        let mut request = Request::new(Real(at), ROOT);
        let root = request.opened(ROOT, None, Real(at)).unwrap();
        (Script { request, begun: at }, root)
    }

    fn open(&mut self, stack: u32, parent: u32, at: i64) -> u32 {
        self.request.opened(stack, Some(parent), Real(at)).unwrap()
    }

    fn enter(&mut self, span: u32, over: Option<u32>, wait: Option<PollWait>, at: i64) -> bool {
        self.request.entered(span, over, wait, Real(at))
    }

    fn exit(&mut self, span: u32, over: Option<u32>, at: i64) {
        self.request.left(span, over, Real(at));
    }

    fn close(&mut self, span: u32, at: i64) {
        self.request.closed(span, Real(at));
    }

    /// Rows of the stacks, whose sum is the wall time of the request up to `at`.
    fn rows(&self, at: i64) -> [WallStack; 3] {
        let rows = [ROOT, A, B].map(|stack| self.request.sums.row(stack));
        let sum: u64 = rows.iter().map(WallStack::total_ns).sum();
        assert_eq!(sum as i64, at - self.begun, "{rows:?}");
        rows
    }
}

/// A wait that began and ended at these moments.
fn wait(parked: i64, woken: i64, by: Cause) -> Option<PollWait> {
    Some(PollWait { ended: Ended::new(Real(parked), Real(woken), by), by: 7 })
}

fn row(running: u64, queue: u64, outside: u64) -> WallStack {
    WallStack {
        count: 1,
        running_ns: running,
        queue_ns: queue,
        outside_ns: outside,
        ..WallStack::default()
    }
}

#[test]
fn wait_inside_of_a_span_is_split_at_its_wake() {
    let (mut script, root) = Script::begin(100);
    assert!(!script.enter(root, None, None, 110), "it waited for its first poll");
    let a = script.open(A, root, 115);
    script.enter(a, Some(root), None, 115);
    script.exit(a, Some(root), 130);
    script.exit(root, None, 131);
    let ended = wait(132, 150, Cause::Outside);
    assert!(script.enter(root, None, ended, 160));
    assert!(script.enter(a, Some(root), ended, 161));
    script.exit(a, Some(root), 170);
    script.close(a, 171);
    script.exit(root, None, 180);
    script.close(root, 180);
    let [root, a, _] = script.rows(180);
    assert_eq!(a, row(15 + 9, 10, 19));
    assert_eq!(root, row(5 + 1 + 1 + 10, 10, 0));
    assert!(script.request.is_empty());
}

#[test]
fn trace_tells_whole_intervals_of_each_branch_and_what_was_settled_meanwhile() {
    use andweorc_profile::{ExampleInterval, ExampleState};
    let (mut script, root) = Script::begin(100);
    script.enter(root, None, None, 110);
    let (a, b) = (script.open(A, root, 110), script.open(B, root, 110));
    for span in [a, b] {
        script.enter(span, Some(root), None, 110);
        script.exit(span, Some(root), 110);
    }
    script.exit(root, None, 120);
    // The sums end here, and the wait goes on.
    script.request.settle(Real(125));
    script.request.settle(Real(128));
    let ended = wait(120, 150, Cause::Task);
    script.enter(root, None, ended, 160);
    script.enter(a, Some(root), ended, 160);
    script.exit(a, Some(root), 170);
    script.close(a, 171);
    script.exit(root, None, 175);
    script.close(root, 180);
    script.close(b, 200);
    script.rows(200);
    assert!(script.request.is_empty());
    let (stack, trace) = script.request.take_trace();
    assert_eq!((stack, trace.length()), (ROOT, Some(crate::time::Nanos(80))));
    let spans = trace.spans(Some);
    let places: Vec<_> =
        spans.iter().map(|it| (it.parent, it.target, it.begin_ns, it.end_ns)).collect();
    assert_eq!(
        places,
        [(None, Some(ROOT), 0, 80), (Some(0), Some(A), 10, 71), (Some(0), Some(B), 10, 100)]
    );
    let of = |span: usize| {
        let interval = |it: &ExampleInterval| (it.state, it.by, it.begin_ns, it.end_ns);
        spans[span].intervals.iter().map(interval).collect::<Vec<_>>()
    };
    let running = |begin, end| (ExampleState::Running, None, begin, end);
    assert_eq!(of(0), [(ExampleState::Queue, None, 0, 10), running(10, 20), running(70, 75)]);
    let waits = [(ExampleState::Task, Some(7), 10, 50), (ExampleState::Queue, None, 50, 60)];
    assert_eq!(of(1), [waits[0], waits[1], running(60, 70), (ExampleState::Unknown, None, 70, 71)]);
    assert_eq!(of(2), [(ExampleState::Unknown, None, 10, 100)]);
}

#[test]
fn joined_branches_share_what_both_wait_and_running_goes_before_waiting() {
    let (mut script, root) = Script::begin(0);
    script.enter(root, None, None, 0);
    let (a, b) = (script.open(A, root, 0), script.open(B, root, 0));
    for span in [a, b] {
        script.enter(span, Some(root), None, 0);
        script.exit(span, Some(root), 0);
    }
    script.exit(root, None, 0);
    // Both wait until 40, `b` alone while `a` runs up to 70, and both again.
    let ended = wait(0, 30, Cause::Timer);
    script.enter(root, None, ended, 40);
    script.enter(a, Some(root), ended, 40);
    script.exit(a, Some(root), 70);
    script.close(a, 70);
    script.exit(root, None, 70);
    let ended = wait(70, 90, Cause::Task);
    script.enter(root, None, ended, 100);
    script.enter(b, Some(root), ended, 100);
    script.exit(b, Some(root), 110);
    script.close(b, 110);
    script.exit(root, None, 110);
    script.close(root, 110);
    let [_, a, b] = script.rows(110);
    assert_eq!((a.running_ns, a.timer_ns, a.queue_ns), (30, 15, 5));
    // Its task was polled for `a` at 40, and its wait went on.
    assert_eq!((b.running_ns, b.task_ns(), b.queue_ns), (10, 20 + 20, 10));
    assert_eq!(b.tasks[0].by, Some(7));
}

#[test]
fn spawned_child_that_outlives_its_parent_has_the_rest() {
    let (mut script, root) = Script::begin(0);
    script.enter(root, None, None, 0);
    let a = script.open(A, root, 10);
    script.exit(root, None, 20);
    script.close(root, 20);
    // On another thread.
    script.enter(a, None, None, 35);
    script.exit(a, None, 60);
    assert!(!script.request.is_empty());
    script.close(a, 60);
    let [root, a, _] = script.rows(60);
    assert_eq!((root, a), (row(20, 0, 0), row(25, 15, 0)));
    assert!(script.request.is_empty());
}

#[test]
fn threads_that_run_parts_at_one_time_share_it() {
    let (mut script, root) = Script::begin(0);
    let (a, b) = (script.open(A, root, 0), script.open(B, root, 0));
    script.enter(a, None, None, 0);
    script.enter(b, None, None, 10);
    // By the clock of another thread, that has fallen behind.
    script.exit(a, None, 8);
    script.enter(a, None, None, 10);
    script.exit(a, None, 30);
    script.exit(b, None, 40);
    for (span, at) in [(a, 40), (b, 50), (root, 57)] {
        script.close(span, at);
    }
    let [root, a, b] = script.rows(57);
    assert_eq!((a.running_ns, b.running_ns), (10 + 10, 10 + 10));
    assert_eq!((a.unknown_ns, b.unknown_ns, root.unknown_ns), (0, 10, 7));
}

#[test]
fn spans_that_go_on_are_counted_up_to_the_end_and_from_a_restart() {
    let (mut script, root) = Script::begin(0);
    script.enter(root, None, None, 0);
    let a = script.open(A, root, 10);
    script.enter(a, Some(root), None, 10);
    script.exit(a, Some(root), 20);
    script.exit(root, None, 20);
    script.request.settle(Real(30));
    let [_, a_row, _] = script.rows(30);
    assert_eq!((a_row.running_ns, a_row.unknown_ns), (10, 10));
    script.request.sums.clear();
    script.begun = 30;
    let ended = wait(20, 45, Cause::Outside);
    script.enter(a, None, ended, 50);
    script.request.end(Real(60));
    let [_, a_row, _] = script.rows(60);
    assert_eq!((a_row.running_ns, a_row.outside_ns, a_row.queue_ns), (10, 15, 5));
    script.exit(a, None, 70);
    script.close(a, 70);
    script.rows(60);
}

#[test]
fn whatever_spans_do_no_moment_is_lost_or_counted_twice() {
    // A linear congruential generator, as in Numerical Recipes: any order of steps will do.
    let mut seed = 1_u32;
    let mut next = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    for _ in 0..200 {
        let (mut script, root) = Script::begin(0);
        let mut spans = vec![root];
        let mut at = 0;
        for _ in 0..100 {
            at += i64::from(next(20));
            let span = spans[next(spans.len() as u32) as usize];
            let over = Some(spans[next(spans.len() as u32) as usize]).filter(|it| *it != span);
            match next(5) {
                0 => spans.push(script.open(A + next(2), span, at)),
                1 => script.close(span, at),
                2 => script.exit(span, over, at),
                _ => {
                    let parked = at - i64::from(next(60));
                    let woken = parked + i64::from(next(60)).min(at - parked);
                    let ended = wait(parked, woken, Cause::Outside).filter(|_| next(2) == 0);
                    script.enter(span, over, ended, at);
                }
            }
        }
        script.request.end(Real(at));
        let sum: f64 = script.request.sums.total();
        assert!((sum - at as f64).abs() < 1e-6, "{sum} of {at}");
    }
}

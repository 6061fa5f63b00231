//! The subscriber in a process with andweorc on: what becomes of spans and events, and that tracing
//! finds its way among them.

#[path = "vendor/library/src/lib.rs"]
mod library;
mod spans;

use andweorc_tracing::{Subscriber as Tested, layer, subscriber as tested};
use spans::{ON, the_point};
use std::sync::LazyLock;
use tracing::dispatcher::with_default;
use tracing::{Dispatch, Span, info_span};
use tracing_subscriber::prelude::*;

fn dispatch(tested: Tested) -> Dispatch {
    Dispatch::new(tested)
}

#[test]
fn the_current_span_is_the_innermost_one() {
    LazyLock::force(&ON);
    with_default(&dispatch(tested()), || {
        assert!(Span::current().is_none());
        let outer = info_span!("current_outer").entered();
        let inner = info_span!("current_inner");
        assert_eq!(Span::current().id(), outer.id());
        inner.in_scope(|| {
            let current = Span::current();
            assert_eq!(current.id(), inner.id());
            assert_eq!(current.metadata().map(|it| it.name()), Some("current_inner"));
        });
        drop(inner);
        // A handle that was had by way of the thread holds it open like any other.
        let current = Span::current();
        drop(outer);
        assert!(Span::current().is_none());
        assert_eq!(the_point("current_outer").count(), 0);
        drop(current);
        assert_eq!(the_point("current_outer").count(), 1);
    });
}

#[test]
fn spans_of_another_subscriber_are_no_parents() {
    LazyLock::force(&ON);
    let other = Dispatch::new(tracing_subscriber::registry().with(layer()));
    let (one, two) = (dispatch(tested()), dispatch(tested()));
    for (at, around) in [&other, &two].into_iter().enumerate() {
        with_default(around, || {
            let _around = info_span!("around_another").entered();
            with_default(&one, || {
                assert!(Span::current().is_none());
                let inside = info_span!("in_another").entered();
                with_default(around, || assert!(Span::current().id().is_some()));
                drop(inside);
            });
        });
        // It is not held open by what was inside.
        assert_eq!(the_point("around_another").count(), at as u64 + 1);
    }
    assert_eq!(the_point("in_another").depth(), 0);
}

#[test]
fn a_long_chain_of_spans_closes_from_its_end() {
    LazyLock::force(&ON);
    with_default(&dispatch(tested()), || {
        let mut innermost = info_span!("chained");
        for _ in 0..100_000 {
            innermost = info_span!(parent: &innermost, "in_a_chain");
        }
        assert_eq!(the_point("in_a_chain").count(), 0);
        drop(innermost);
        assert_eq!(the_point("in_a_chain").count(), 100_000);
    });
}

#[test]
fn spans_that_many_threads_share_are_closed_once() {
    LazyLock::force(&ON);
    let to = &dispatch(tested());
    with_default(to, || {
        let parent = info_span!("shared_parent");
        for _ in 0..200 {
            let shared = info_span!("shared");
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    let (shared, parent) = (shared.clone(), &parent);
                    let closes = move || {
                        let child = info_span!(parent: parent, "shared_child");
                        drop(child.in_scope(|| shared.clone()));
                        drop(shared);
                    };
                    scope.spawn(move || with_default(to, closes));
                }
                drop(shared);
            });
        }
        assert_eq!(the_point("shared").count(), 200);
        assert_eq!(the_point("shared_child").count(), 4 * 200);
        assert_eq!(the_point("shared_parent").count(), 0);
        drop(parent);
        assert_eq!(the_point("shared_parent").count(), 1);
    });
}

//! The layer in a process where andweorc is off, then switched on, and off again. One test, since
//! that is for the whole process.

use andweorc_core::experiment::Experimenter;
use andweorc_core::point::points;
use andweorc_core::target::targets;
use andweorc_profile::TargetKind;
use andweorc_tracing::layer;
use std::io;
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, Span, info, info_span, trace_span};
use tracing_subscriber::prelude::*;

fn work() -> Span {
    info!(name: "event", "done");
    trace_span!("work")
}

#[test]
fn layer_asks_for_nothing_while_andweorc_is_off() {
    let alone = Dispatch::new(tracing_subscriber::registry().with(layer()));
    tracing::dispatcher::with_default(&alone, || assert!(work().is_disabled()));
    drop(alone);
    let chained = tracing_subscriber::fmt::layer().with_writer(io::sink).and_then(layer());
    let chained = Dispatch::new(tracing_subscriber::registry().with(chained));
    tracing::dispatcher::with_default(&chained, || {
        assert!(!work().is_disabled(), "whatever it is chained to gets all as ever");
    });
    drop(chained);
    let fmt = tracing_subscriber::fmt::layer().with_writer(io::sink);
    let beside = tracing_subscriber::registry().with(fmt.with_filter(LevelFilter::INFO));
    let beside = Dispatch::new(beside.with(layer()));
    tracing::dispatcher::with_default(&beside, || {
        assert_eq!(LevelFilter::current(), LevelFilter::INFO, "that of the fmt layer");
        assert!(work().is_disabled());
        let open = info_span!("open");
        assert!(!open.is_disabled(), "the fmt layer wants it");
        drop(info_span!("closed").entered());
        assert!(points().is_empty(), "{:?}", points());
        assert!(targets().is_empty(), "{:?}", targets());

        let entered = open.enter();
        let on = Experimenter::new().expect("the only one in this process");
        drop(entered);
        drop(open);
        assert!(points().is_empty(), "a span that was open is left out: {:?}", points());
        assert_eq!(LevelFilter::current(), LevelFilter::TRACE);
        // The same call sites as before.
        for _ in 0..2 {
            drop(work().entered());
        }

        let open = work();
        drop(on);
        if !cfg!(tokio_unstable) {
            assert_eq!(LevelFilter::current(), LevelFilter::INFO, "as before");
        }
        drop(open.entered());
        assert!(work().is_disabled());
    });
    let counts: Vec<_> = points().iter().map(|point| (point.name(), point.count())).collect();
    assert_eq!(counts, [("event", 3), ("work", 3)]);
    let seen: Vec<_> = targets().iter().map(|target| (target.kind(), target.name())).collect();
    assert_eq!(seen, [(TargetKind::Span, "work"), (TargetKind::Wait, "work")]);
}

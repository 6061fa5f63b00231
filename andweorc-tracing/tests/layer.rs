//! The layer in a process with andweorc on: what becomes of spans and events, and that it composes.

#[path = "vendor/library/src/lib.rs"]
mod library;
mod spans;

use andweorc_tracing::{Layer as Tested, layer as tested};
use spans::{ON, WORK, ns, the_point, the_target};
use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use tracing::subscriber::with_default;
use tracing::{Dispatch, info, info_span, warn};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::prelude::*;

fn dispatch(tested: Tested) -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(tested))
}

/// Collects what the fmt layer prints.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn layer_composes_with_a_filtered_fmt_layer() {
    LazyLock::force(&ON);
    let (loud, quiet) = (Buffer::default(), Buffer::default());
    let (to_loud, to_quiet) = (loud.clone(), quiet.clone());
    let subscriber = tracing_subscriber::registry()
        .with(
            tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_span_events(FmtSpan::CLOSE)
                .with_writer(move || to_loud.clone())
                .with_filter(EnvFilter::new("info")),
        )
        .with(tested())
        .with(
            tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_span_events(FmtSpan::CLOSE)
                .with_writer(move || to_quiet.clone())
                .with_filter(EnvFilter::new("warn")),
        );
    with_default(subscriber, || {
        info_span!("composed", user = 7).in_scope(|| {
            tracing::debug_span!("composed_debug").in_scope(|| thread::sleep(WORK));
            info!("for the loud one");
            warn!("for both");
        });
    });
    for name in ["composed", "composed_debug"] {
        assert_eq!(the_target(name).count(), 1);
        assert!(the_target(name).busy_ns() >= ns(WORK));
        assert_eq!(the_point(name).count(), 1);
    }
    assert!(the_target("composed").own_ns() <= the_target("composed").busy_ns() - ns(WORK));
    let (loud, quiet) = (loud.text(), quiet.text());
    assert!(loud.contains("composed{user=7}: layer: for the loud one"), "{loud}");
    assert!(loud.contains("for both") && loud.contains("close"), "{loud}");
    assert!(!loud.contains("composed_debug"), "{loud}");
    assert!(quiet.contains("for both") && !quiet.contains("for the loud one"), "{quiet}");
    assert!(!quiet.contains("close"), "{quiet}");
}

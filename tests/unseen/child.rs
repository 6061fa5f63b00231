//! The programs that the tests run. Each has spans that andweorc sees not, or not to their end.

#[path = "../faults/work.rs"]
#[allow(dead_code, reason = "shared with the tests of faults")]
mod work;

use std::env;
use std::io;
use std::mem;
use std::process::exit;
use std::time::{Duration, Instant};
use tokio::task::yield_now;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::with_default;
use tracing::{Instrument, Span, info_span};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer, fmt, registry};

/// Names the program to be.
pub(crate) const PROGRAM: &str = "SWITCH_TEST_PROGRAM";

/// Exit code of a program that came to its end.
pub(crate) const DONE: i32 = 7;

/// How long each works: longer than the profiler watches before it begins to experiment.
const TIME: Duration = Duration::from_millis(1500);

/// Is the program that the environment names, if it names one.
pub(crate) fn main() {
    let Ok(program) = env::var(PROGRAM) else { return };
    let runtime = andweorc::__private::rt::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(&program));
    // The test harness has nothing more to say.
    exit(DONE);
}

/// A layer that writes logs.
fn logs<S: tracing::Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    fmt::layer().with_writer(io::sink)
}

async fn run(program: &str) {
    let from_env = EnvFilter::from_default_env;
    match program {
        "filter before" => {
            registry().with(from_env()).with(logs()).with(andweorc::layer()).init();
            instrumented().await;
        }
        "filter after" => {
            registry().with(andweorc::layer()).with(logs()).with(from_env()).init();
            instrumented().await;
        }
        "max level of fmt" => {
            let fmt = tracing_subscriber::fmt().with_writer(io::sink);
            fmt.with_max_level(LevelFilter::WARN).finish().with(andweorc::layer()).init();
            instrumented().await;
        }
        "own filter" => {
            registry().with(logs()).with(andweorc::layer().with_spans(|_| false)).init();
            instrumented().await;
        }
        "never installed" => {
            drop(registry().with(andweorc::layer()));
            instrumented().await;
        }
        "on one thread" => {
            // Nobody ends the scope of the default.
            mem::forget(registry().with(andweorc::layer()).set_default());
            tokio::spawn(instrumented()).await.unwrap();
        }
        "in a scope" => {
            with_default(registry().with(andweorc::layer()), || ());
            instrumented().await;
        }
        "filter beside points" => {
            registry().with(from_env()).with(logs()).with(andweorc::layer()).init();
            work::work_for(TIME).instrument(info_span!("all")).await;
        }
        "without end" => {
            andweorc::subscriber().init();
            loop {
                instrumented().await;
            }
        }
        "idle" => {
            andweorc::subscriber().init();
            std::future::pending::<()>().await;
        }
        "no spans" => {
            andweorc::subscriber().init();
            tokio::time::sleep(TIME).await;
        }
        "never closed" => {
            andweorc::subscriber().init();
            never_closed().await;
        }
        "never closed beside points" => {
            andweorc::subscriber().init();
            andweorc::task::Builder::new().name("early").spawn(async {}).await.unwrap();
            // `early` is over before the profiler watches what it may test.
            never_closed().await;
            never_closed().await;
            work::work_for(2 * TIME).await;
        }
        "never entered" => {
            andweorc::subscriber().init();
            each(|| drop(info_span!("request"))).await;
        }
        "never left" => {
            andweorc::subscriber().init();
            mem::forget(info_span!("request").entered());
            each(|| {}).await;
        }
        "never ended" => {
            each(|| andweorc::begin!("query")).await;
        }
        unknown => panic!("no program {unknown}"),
    }
}

/// Requests as they should be, each in a span.
async fn instrumented() {
    let began = Instant::now();
    while began.elapsed() < TIME {
        async {
            work::spin(Duration::from_micros(200));
            yield_now().await;
        }
        .instrument(info_span!("request"))
        .await;
    }
}

/// Requests, a handle of whose span is kept for good.
async fn never_closed() {
    each(|| {
        let span: Span = info_span!("request");
        span.in_scope(|| work::spin(Duration::from_micros(200)));
        mem::forget(span);
    })
    .await;
}

async fn each(request: impl Fn()) {
    let began = Instant::now();
    while began.elapsed() < TIME {
        request();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

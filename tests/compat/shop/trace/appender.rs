//! A log that tracing-appender writes from a thread of its own.

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::{fmt, prelude::*};

pub fn init() -> WorkerGuard {
    let (log, guard) = tracing_appender::non_blocking(std::io::sink());
    tracing_subscriber::registry()
        .with(fmt::layer().with_writer(log))
        .with(andweorc::layer())
        .init();
    guard
}

pub fn event() {
    tracing::info!("an order");
}

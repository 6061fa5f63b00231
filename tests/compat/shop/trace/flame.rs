//! A layer of tracing-flame beside andweorc's.

use std::io::{Sink, sink};
use tracing_flame::{FlameLayer, FlushGuard};
use tracing_subscriber::prelude::*;

pub fn init() -> FlushGuard<Sink> {
    let layer = FlameLayer::new(sink());
    let guard = layer.flush_on_drop();
    tracing_subscriber::registry().with(layer).with(andweorc::layer()).init();
    guard
}

pub fn event() {}

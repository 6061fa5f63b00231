//! Records of the crate log, which tracing-log makes events of.

use tracing_subscriber::{fmt, prelude::*};

pub fn init() {
    tracing_log::LogTracer::init().expect("there is no other logger");
    let registry = tracing_subscriber::registry().with(fmt::layer().with_writer(std::io::sink));
    tracing::subscriber::set_global_default(registry.with(andweorc::layer()))
        .expect("there is no other subscriber");
}

pub fn event() {
    log::info!("an order");
}

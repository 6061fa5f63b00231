//! A layer of tracing-opentelemetry beside andweorc's, which makes spans and sends them nowhere.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::prelude::*;

pub fn init() -> SdkTracerProvider {
    let provider = SdkTracerProvider::builder().build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    tracing_subscriber::registry().with(layer).with(andweorc::layer()).init();
    provider
}

pub fn event() {
    tracing::info!("an order");
}

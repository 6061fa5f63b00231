//! tokio-console's layer beside andweorc's.

use std::net::Ipv4Addr;
use tracing_subscriber::prelude::*;

pub fn init() {
    let console = console_subscriber::ConsoleLayer::builder().server_addr((Ipv4Addr::LOCALHOST, 0));
    tracing_subscriber::registry().with(console.spawn()).with(andweorc::layer()).init();
}

pub fn event() {}

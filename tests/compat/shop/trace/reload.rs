//! A log whose filter is another one twice a second.

use std::thread;
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{fmt, prelude::*, reload};

pub fn init() {
    let (filter, handle) = reload::Layer::new(LevelFilter::INFO);
    let log = fmt::layer().with_writer(std::io::sink).with_filter(filter);
    tracing_subscriber::registry().with(log).with(andweorc::layer()).init();
    thread::spawn(move || {
        for level in [LevelFilter::OFF, LevelFilter::TRACE, LevelFilter::INFO].iter().cycle() {
            thread::sleep(Duration::from_millis(500));
            handle.modify(|filter| *filter = *level).expect("the subscriber stays");
        }
    });
}

pub fn event() {
    tracing::info!("an order");
}

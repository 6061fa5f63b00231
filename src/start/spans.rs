//! The layer and the subscriber: where a program has one of them, it takes part from then on.

use crate::start::without_main;
#[cfg(feature = "layer")]
use andweorc_tracing::Layer;
use andweorc_tracing::Subscriber;

/// Makes every span a point and a target, and with `--cfg tokio_unstable` every task a target. See
/// [`Layer`].
///
/// With `ANDWEORC_ENABLED` set it starts to profile, unless `#[andweorc::main]`, say, has before.
///
/// ```
/// use tracing_subscriber::prelude::*;
/// let subscriber = tracing_subscriber::registry().with(andweorc::layer());
/// # drop(subscriber);
/// ```
#[cfg(feature = "layer")]
pub fn layer<S>() -> Layer<S> {
    begin();
    andweorc_tracing::layer()
}

/// Makes every span a point and a target, and with `--cfg tokio_unstable` every task a target, in a
/// program without another subscriber. See [`Subscriber`].
///
/// With `ANDWEORC_ENABLED` set it starts to profile, unless `#[andweorc::main]`, say, has before.
///
/// ```
/// andweorc::subscriber().init();
/// ```
pub fn subscriber() -> Subscriber {
    begin();
    andweorc_tracing::subscriber()
}

fn begin() {
    #[cfg(tokio_unstable)]
    andweorc_tokio::see_all_tasks();
    without_main::start();
}

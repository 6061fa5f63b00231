//! With `--cfg tokio_unstable`: the layer and the subscriber tell of all tasks.

use andweorc_tracing::{Layer, Subscriber};

/// Makes every span a point and a target, and with `--cfg tokio_unstable`, as here, every task a target. See [`Layer`].
///
/// ```
/// use tracing_subscriber::prelude::*;
/// let subscriber = tracing_subscriber::registry().with(andweorc::layer());
/// # drop(subscriber);
/// ```
pub fn layer<S>() -> Layer<S> {
    andweorc_tokio::see_all_tasks();
    andweorc_tracing::layer()
}

/// Makes every span a point and a target, in a program without another subscriber, and with `--cfg tokio_unstable`, as here, every task a target. See
/// [`Subscriber`].
///
/// ```
/// andweorc::subscriber().init();
/// ```
pub fn subscriber() -> Subscriber {
    andweorc_tokio::see_all_tasks();
    andweorc_tracing::subscriber()
}

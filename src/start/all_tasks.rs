//! With `--cfg tokio_unstable`: the layer tells of all tasks.

use andweorc_tracing::Layer;

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

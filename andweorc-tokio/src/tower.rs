//! A layer that profiles each request of a service: the way to see what runs inside tasks that a
//! library spawns, such as the connections of `axum::serve`.
//!
//! The future of each request is [`.profiled(name)`](crate::Profile::profiled): its polls, its
//! waits and who ends them are known exactly. The connection's task around it takes no part:
//! reading the request and writing the response count as the world outside. What the services
//! inside do in `call` itself, before there is a future, is the connection's too; axum's handlers
//! do nothing there. That clients take their time between two requests is told by their streams:
//! [`Outside`](crate::io::Outside).

use crate::profiled::{Kind, Profiled};
use andweorc_core::hooks::enabled;
use pin_project_lite::pin_project;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Profiles all requests as targets of this name.
///
/// For axum: `Router::new().route(..).layer(andweorc::tower::layer("request"))`.
pub fn layer(name: impl Into<Cow<'static, str>>) -> ProfileLayer<Fixed> {
    ProfileLayer(Fixed(name.into()))
}

/// Profiles each request as a target of the name that `name` gives it. It is asked only while
/// andweorc is on.
///
/// A target lives as long as the process, so names must come from a small set: the route (axum's
/// `MatchedPath`), not the path of the request.
///
/// ```
/// let layer = andweorc_tokio::tower::layer_by(|method: &String| match method.as_str() {
///     "GET" | "HEAD" => "read",
///     _ => "write",
/// });
/// # drop(layer);
/// ```
pub fn layer_by<R, F, N>(name: F) -> ProfileLayer<F>
where
    F: Fn(&R) -> N,
    N: Into<Cow<'static, str>>,
{
    ProfileLayer(name)
}

/// The layer. See [`layer`] and [`layer_by`].
#[derive(Clone)]
#[must_use = "a layer profiles the requests of a service that it is added to"]
pub struct ProfileLayer<N>(N);

/// A service whose requests are profiled. See [`layer`].
#[derive(Clone)]
pub struct ProfileService<S, N> {
    inner: S,
    name: N,
}

/// One name for all requests.
#[derive(Clone, Debug)]
pub struct Fixed(Cow<'static, str>);

/// Names requests of type `R`: [`Fixed`], or a closure.
pub trait Name<R>: sealed::Sealed<R> {
    /// The name of this request.
    fn name(&self, request: &R) -> Cow<'static, str>;
}

/// Keeps [`Name`] to names and closures.
mod sealed {
    /// Bound of the trait.
    pub trait Sealed<R> {}
}

impl<R> sealed::Sealed<R> for Fixed {}

impl<R, F, N> sealed::Sealed<R> for F where F: Fn(&R) -> N {}

impl<R> Name<R> for Fixed {
    fn name(&self, _: &R) -> Cow<'static, str> {
        self.0.clone()
    }
}

impl<R, F, N> Name<R> for F
where
    F: Fn(&R) -> N,
    N: Into<Cow<'static, str>>,
{
    fn name(&self, request: &R) -> Cow<'static, str> {
        self(request).into()
    }
}

impl<S, N: Clone> Layer<S> for ProfileLayer<N> {
    type Service = ProfileService<S, N>;

    fn layer(&self, inner: S) -> ProfileService<S, N> {
        ProfileService { inner, name: self.0.clone() }
    }
}

impl<S: Service<R>, R, N: Name<R>> Service<R> for ProfileService<S, N> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let either = if enabled() {
            let kind = Kind::Name(self.name.name(&request));
            Either::Profiled { future: Profiled::new(self.inner.call(request), kind) }
        } else {
            Either::Plain { future: self.inner.call(request) }
        };
        ResponseFuture { either }
    }
}

pin_project! {
    /// The future of one request.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        either: Either<F>,
    }
}

pin_project! {
    /// Profiled if andweorc was on when the request came.
    #[project = Projected]
    enum Either<F> {
        Plain { #[pin] future: F },
        Profiled { #[pin] future: Profiled<F> },
    }
}

impl<F: Future> Future for ResponseFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().either.project() {
            Projected::Plain { future } => future.poll(cx),
            Projected::Profiled { future } => future.poll(cx),
        }
    }
}

impl<N> fmt::Debug for ProfileLayer<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileLayer").finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, N> fmt::Debug for ProfileService<S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

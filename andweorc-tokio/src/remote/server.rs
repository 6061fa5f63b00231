//! The layer of a service that is called by others.

use super::HEADER;
use super::stamp::{Received, Stamp, received, stamp};
use crate::peer::Peer;
use andweorc_core::hooks::{enabled, remote};
use http::{Request, Response};
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower_layer::Layer;
use tower_service::Service;

/// Takes in the stamps of requests, and stamps their responses.
///
/// It belongs inside of what profiles each request ([`tower::layer`](crate::tower::layer), or
/// `andweorc::axum::serve`, which has it already): the request's own task takes the delay in. With
/// tonic:
///
/// ```ignore
/// Server::builder()
///     .layer(andweorc::tower::layer("request"))
///     .layer(andweorc::remote::server())
/// ```
///
/// What the service inside does in `call` itself is done before the request is due; axum's and
/// tonic's do nothing there. The stamp is that of the moment in which the response begins: a body
/// that streams after that is as from the world outside.
pub fn server() -> ServerLayer {
    ServerLayer(())
}

/// The layer. See [`server`].
#[derive(Clone, Debug)]
#[must_use = "a layer does something for the service that it is added to"]
pub struct ServerLayer(());

impl<S> Layer<S> for ServerLayer {
    type Service = ServerService<S>;

    fn layer(&self, inner: S) -> ServerService<S> {
        ServerService(inner)
    }
}

/// A service whose requests may have stamps. See [`server`].
#[derive(Clone, Debug)]
pub struct ServerService<S>(S);

impl<S, B, C> Service<Request<B>> for ServerService<S>
where
    S: Service<Request<B>, Response = Response<C>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ServerFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let stamp = if enabled() { arrived(&request) } else { None };
        let received = stamp.map(|stamp| received(Some(stamp)));
        ServerFuture { future: self.0.call(request), received, answers: stamp.is_some() }
    }
}

/// The stamp of a request, by which its connection is known as well while there is an experiment.
/// Between two experiments nobody stamps.
fn arrived<B>(request: &Request<B>) -> Option<Stamp> {
    let stamp = Stamp::of(request.headers());
    if remote::current_experiment().is_some() {
        Peer::mark(stamp.is_some());
    }
    stamp
}

pin_project! {
    /// The future of one request.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct ServerFuture<F> {
        #[pin]
        future: F,
        // Until the request is due.
        received: Option<Received>,
        answers: bool,
    }
}

impl<F, B, E> Future for ServerFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Some(received) = this.received {
            ready!(Pin::new(received).poll(cx));
            *this.received = None;
        }
        let mut response = ready!(this.future.poll(cx));
        if *this.answers
            && let Ok(response) = &mut response
            && let Some(stamp) = stamp()
        {
            response.headers_mut().insert(HEADER, stamp.to_header());
        }
        Poll::Ready(response)
    }
}

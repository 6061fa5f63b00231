//! A real HTTP/2 service (hyper, axum's router) whose clients share one connection: each request is
//! a stream of it, and a task that hyper spawns.

use crate::load::{Clients, Protocol};
use crate::program::{Aim, Program, Runtime, Stage, spawn};
use crate::programs::http::{accept, listen, router};
use andweorc_profile::PointKind::Latency;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use std::future::Future;
use std::io;
use std::time::Duration;

pub(crate) const PROGRAMS: &[Program] = &[Program {
    name: "http2_streams",
    about: "a service over HTTP/2 with twelve streams on one connection, a task each: work, a query outside, work",
    runtime: Runtime::Workers,
    parts: &[("parse", 150), ("render", 400)],
    targets: &[Aim::span("parse"), Aim::span("render")],
    point: Latency,
    start: streams,
}];

/// So many that they overlap, with pauses so long that processors have room for the load.
const STREAMS: Clients =
    Clients { protocol: Protocol::Http2, number: 12, think: Duration::from_millis(4) };

fn streams(stage: &Stage) -> io::Result<()> {
    let (router, listener) = (router(stage, STREAMS.number)?, listen(stage, STREAMS)?);
    accept(listener, router, |stream, service| {
        http2::Builder::new(Streams).serve_connection(stream, service)
    });
    Ok(())
}

/// Executor like `andweorc::hyper::Executor`, whose feature this bench does without.
#[derive(Clone, Debug)]
struct Streams;

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        spawn("stream", future);
    }
}

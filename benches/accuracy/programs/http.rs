//! Real HTTP services (axum) under load from another process. Their parts are `tracing` spans, as
//! in a service of a user.

use crate::line::Line;
use crate::load::{Clients, Load, Protocol};
use crate::program::{Aim, Done, Part, Program, Runtime, Stage, spawn, unwrapped};
use andweorc::Profile;
use andweorc::io::Outside;
use andweorc_profile::PointKind::Latency;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tracing::info_span;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "http_spawned",
        about: "an axum service whose connections are tasks of its own: work, a query outside, work; four clients",
        runtime: Runtime::Workers,
        parts: &[("parse", 150), ("render", 400)],
        targets: &[Aim::span("parse"), Aim::span("render")],
        point: Latency,
        start: spawned,
    },
    Program {
        name: "http_axum_serve",
        about: "the same behind `axum::serve`, which spawns by itself: only the requests are profiled, and when clients come is known",
        runtime: Runtime::Workers,
        parts: &[("parse", 150), ("render", 400)],
        targets: &[Aim::span("parse"), Aim::span("render")],
        point: Latency,
        start: axum_serve,
    },
];

/// How long the query takes outside, us.
const QUERY: u32 = 1500;

/// State that all requests share.
#[derive(Clone)]
struct Service {
    parse: Part,
    render: Part,
    /// Lines to the database that no request uses just now; as many as requests come at a time.
    lines: Arc<Mutex<Vec<Line>>>,
    done: Done,
}

/// Few enough that they, the query and the service have room on two cores: clients that must wait
/// for a core are part of the truth, and no profiler of the service can know it.
const CLIENTS: Clients =
    Clients { protocol: Protocol::Http1, number: 4, think: Duration::from_micros(500) };

/// The service, with lines to the database for so many requests at a time.
pub(super) fn router(stage: &Stage, requests: usize) -> io::Result<Router> {
    let lines = (0..requests).map(|_| stage.line()).collect::<io::Result<_>>()?;
    let service = Service {
        parse: stage.part("parse"),
        render: stage.part("render"),
        lines: Arc::new(Mutex::new(lines)),
        done: stage.done(),
    };
    Ok(Router::new().route("/item/{number}", get(item)).with_state(service))
}

async fn item(State(service): State<Service>, Path(number): Path<u32>) -> String {
    let request = service.done.begin();
    service.parse.run_in(|| info_span!("parse"));
    let line = service.lines.lock().expect("no one panics with the lines").pop();
    let mut line = line.expect("there are as many lines as requests");
    line.ask(QUERY).await;
    service.lines.lock().expect("no one panics with the lines").push(line);
    service.render.run_in(|| info_span!("render"));
    request.end();
    format!("item {number}\n")
}

/// Listens, and asks for these clients.
pub(super) fn listen(stage: &Stage, clients: Clients) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    stage.ask_for(Load { service: listener.local_addr()?, clients });
    TcpListener::from_std(listener)
}

/// Accepts connections in a task of its own, and spawns one for each, which `serve` makes.
pub(super) fn accept<F>(
    listener: TcpListener,
    router: Router,
    serve: impl Fn(TokioIo<TcpStream>, TowerToHyperService<Router>) -> F + Send + 'static,
) where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    spawn("listener", async move {
        loop {
            let (stream, _) = listener.accept().await.expect("the listener is open");
            stream.set_nodelay(true).expect("the stream is open");
            let service = TowerToHyperService::new(router.clone());
            spawn("connection", serve(TokioIo::new(stream), service));
        }
    });
}

fn spawned(stage: &Stage) -> io::Result<()> {
    let (router, listener) = (router(stage, CLIENTS.number)?, listen(stage, CLIENTS)?);
    accept(listener, router, |stream, service| {
        http1::Builder::new().serve_connection(stream, service)
    });
    Ok(())
}

fn axum_serve(stage: &Stage) -> io::Result<()> {
    let (router, listener) = (router(stage, CLIENTS.number)?, listen(stage, CLIENTS)?);
    if unwrapped() {
        tokio::spawn(async move { axum::serve(listener, router).await });
    } else {
        let router = router.layer(from_fn(profiled));
        tokio::spawn(async move { axum::serve(Listens(listener), router).await });
    }
    Ok(())
}

/// Listener like that of `andweorc::axum::listener`, whose feature this bench does without.
struct Listens(TcpListener);

impl Listener for Listens {
    type Io = Outside<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        (Outside::new(stream), address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

async fn profiled(request: Request, next: Next) -> Response {
    next.run(request).profiled("request").await
}

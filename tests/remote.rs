//! Delays travel over the wire: with axum, hyper-util's client, and tonic's server and client.
#![cfg(all(feature = "axum", feature = "remote"))]

use andweorc::remote::{self, Stamp};
use andweorc_core::hooks::remote::number_next;
use andweorc_core::thread::{enable, ledger};
use andweorc_core::time::{Nanos, Real, Speedup};
use andweorc_core::{clock, enabled};
use axum::Router;
use axum::http::uri::PathAndQuery;
use axum::routing::get;
use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::runtime::Runtime;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic_prost::ProstCodec;
use tower_layer::Layer;
use tower_service::Service;

/// The ledger is that of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// The experiment of number 7, which several services hold, until it is dropped.
struct Experiment(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Experiment {
    fn begin() -> Experiment {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        enable();
        assert!(enabled());
        number_next(Some(7));
        // The experiment has lasted for a second: no delay in it is longer than that.
        let began = Real(clock::now().0 - 1_000_000_000);
        ledger().begin(Speedup::new(0.5).unwrap(), began);
        Experiment(alone)
    }

    fn delay(&self) -> Nanos {
        ledger().global_delay(clock::now()) - ledger().forgiven_delay()
    }
}

impl Drop for Experiment {
    fn drop(&mut self) {
        ledger().end(clock::now());
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A listener on any port of loopback, for a runtime.
async fn listen() -> (tokio::net::TcpListener, SocketAddr) {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The head of a message: all lines until the empty one.
fn head(stream: &TcpStream) -> String {
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    lines.take_while(|line| !line.is_empty()).map(|line| line + "\n").collect()
}

/// The stamp in the head of a message.
fn stamp(head: &str) -> Option<Stamp> {
    let value = head.lines().find_map(|line| line.strip_prefix("andweorc-delay: "))?;
    Some(Stamp::from_header(value.as_bytes()).expect("it is well-formed"))
}

#[test]
fn axum_takes_in_the_header_of_a_request_and_answers_with_one() {
    let experiment = Experiment::begin();
    let runtime = runtime();
    let address = runtime.block_on(async {
        let (listener, address) = listen().await;
        let service = Router::new().route("/", get(async || "hello"));
        tokio::spawn(async { andweorc::axum::serve(listener, service).await });
        address
    });
    let mut stream = TcpStream::connect(address).unwrap();
    let mut ask = |headers: &str| {
        write!(stream, "GET / HTTP/1.1\r\nhost: it\r\n{headers}connection: close\r\n\r\n").unwrap();
        let answer = head(&stream);
        assert!(answer.starts_with("HTTP/1.1 200 OK\n"), "{answer}");
        stream = TcpStream::connect(address).unwrap();
        stamp(&answer)
    };
    assert_eq!(ask(""), None);
    assert_eq!(ask("andweorc-delay: 1;7;-1\r\n"), None);
    assert_eq!(experiment.delay(), Nanos::ZERO);
    let answered = ask("andweorc-delay: 1;7;20000000\r\n").expect("who stamps is answered");
    assert_eq!(experiment.delay(), Nanos::from_millis(20));
    assert!(answered.experiment() == 7 && answered.delay_ns() >= 20_000_000, "{answered:?}");
}

/// Calls a server by hyper-util's client, which may stamp requests to `participant`. Returns the
/// head of the request that the server got; its answer has a stamp of 5 ms.
fn ask(participant: impl FnOnce(SocketAddr) -> String) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answers = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let head = head(&stream);
        let answer = "HTTP/1.1 204 No Content\r\nandweorc-delay: 1;7;5000000\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
        head
    });
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let mut client = remote::client([participant(address)]).layer(client);
    let request = Request::get(format!("http://{address}/")).body(Empty::new()).unwrap();
    let answer = runtime().block_on(async { client.call(request).await.unwrap() });
    assert_eq!(answer.status(), 204);
    answers.join().unwrap()
}

#[test]
fn hyper_utils_client_stamps_requests_to_participants_and_takes_in_their_answers() {
    let experiment = Experiment::begin();
    let asked = ask(|address| address.to_string());
    assert_eq!(stamp(&asked), Stamp::new(7, 0), "{asked}");
    assert_eq!(experiment.delay(), Nanos::from_millis(5));
}

#[test]
fn hyper_utils_client_tells_others_nothing_and_believes_nothing_of_them() {
    let experiment = Experiment::begin();
    let asked = ask(|address| format!("{}:{}", address.ip(), address.port() ^ 1));
    assert!(!asked.contains("andweorc"), "{asked}");
    assert_eq!(experiment.delay(), Nanos::ZERO);
}

#[test]
fn stamps_go_through_tonic_both_ways() {
    let _experiment = Experiment::begin();
    let answer = runtime().block_on(async {
        let (listener, address) = listen().await;
        let server = Server::builder()
            .layer(andweorc::tower::layer("call"))
            .layer(remote::server())
            .add_routes(Routes::default())
            .serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(server);
        let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
        let mut client = tonic::client::Grpc::new(remote::client_of("tonic").layer(channel));
        client.ready().await.unwrap();
        let path = PathAndQuery::from_static("/none/None");
        client.unary(tonic::Request::new(1), path, ProstCodec::<u32, u32>::default()).await
    });
    // Nobody serves such a call, but the answer has the header of who was asked with one.
    let status = answer.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented, "{status}");
    let value = status.metadata().get("andweorc-delay").expect("the answer is stamped");
    assert_eq!(Stamp::from_header(value.as_bytes()).unwrap().experiment(), 7);
}

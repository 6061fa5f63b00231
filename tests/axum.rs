//! `examples/axum.rs`, run as its users run it, under load: what runs inside of axum's tasks is
//! seen.
#![cfg(feature = "axum")]

use andweorc_profile::{Profile, TargetKind};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);

/// The example. With all packages and features: as `cargo test --workspace --all-features` has
/// built it already, so that nothing is compiled again.
fn example() -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--workspace", "--all-features", "--example", "axum"]);
    build.args(["--message-format", "json-render-diagnostics"]);
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let artifacts = output.stdout.split(|&byte| byte == b'\n');
    let mut executables = artifacts
        .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok())
        .filter(|artifact| artifact["target"]["name"] == "axum")
        .filter_map(|artifact| artifact["executable"].as_str().map(PathBuf::from));
    executables.next().expect("cargo names what it built")
}

/// The running service; killed when dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the service, profiled for 5 s; also where it listens.
fn start(out: &Path) -> (Service, SocketAddr) {
    let mut command = Command::new(example());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ANDWEORC_") {
            command.env_remove(name);
        }
    }
    command.arg("127.0.0.1:0").env("ANDWEORC_ENABLED", "1").env("ANDWEORC_OUT", out);
    command.env("ANDWEORC_DURATION", "5s").env("ANDWEORC_TARGETS", "price,/quote");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("listening on ").expect(&line).parse().unwrap();
    (Service(child), address)
}

/// A client on one connection; returns how many answers it got.
fn client(address: SocketAddr, stop: &AtomicBool) -> u32 {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let mut answers = 0;
    while !stop.load(Ordering::SeqCst) {
        socket.write_all(b"GET /quote?article=7 HTTP/1.1\r\nhost: shop\r\n\r\n").unwrap();
        assert_eq!(answer(&mut socket), r#"{"article":7,"cents":107,"terms":"7 507 1007 1507 "}"#);
        answers += 1;
    }
    answers
}

/// The body of one answer.
fn answer(socket: &mut TcpStream) -> String {
    let mut reader = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

/// Names requests as `docs/book/src/how-to/axum.md` shows it.
#[tokio::test]
async fn requests_are_named_by_their_route() {
    use axum::Router;
    use axum::extract::{MatchedPath, Request};
    use axum::routing::get;
    use tower_service::Service;

    andweorc_core::thread::enable();
    let layer = andweorc::tower::layer_by(|request: &Request| {
        let route = request.extensions().get::<MatchedPath>();
        route.map_or("other".to_owned(), |route| route.as_str().to_owned())
    });
    let mut service = Router::new().route("/article/{number}", get(async || "one")).layer(layer);
    for path in ["/article/1", "/article/2", "/nowhere"] {
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        drop(service.call(request).await.unwrap());
    }
    let count = |name| andweorc_core::target::target(TargetKind::Task, name, None, None).count();
    assert_eq!((count("/article/{number}"), count("other")), (2, 1));
}

#[test]
fn requests_inside_of_axums_tasks_are_profiled() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("profile.jsonl");
    let (service, address) = start(&out);
    let stop = AtomicBool::new(false);
    let (run, answers) = thread::scope(|scope| {
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(|| client(address, &stop))).collect();
        let began = Instant::now();
        let run = loop {
            let run = Profile::read(&out).ok().and_then(|mut profile| profile.runs.pop());
            if let Some(run) = run.filter(|run| run.end.is_some()) {
                break run;
            }
            if began.elapsed() > DEADLINE {
                stop.store(true, Ordering::SeqCst);
                panic!("no end of the profile in {DEADLINE:?}");
            }
            thread::sleep(Duration::from_millis(50));
        };
        stop.store(true, Ordering::SeqCst);
        (run, clients.into_iter().map(|client| client.join().unwrap()).sum::<u32>())
    });
    drop(service);

    assert!(answers > 0);
    let has = |kind, name: &str| {
        run.targets.iter().any(|target| target.kind == kind && target.name == name)
    };
    assert!(has(TargetKind::Task, "/quote") && has(TargetKind::Wait, "/quote"), "{run:?}");
    assert!(has(TargetKind::Task, "main") && has(TargetKind::Span, "price"), "{run:?}");
    assert!(run.points.iter().any(|point| point.name == "quote"), "{run:?}");
    let named = |id: u32| run.targets.iter().any(|target| target.id == id);
    assert!(
        run.experiments.iter().filter_map(|experiment| experiment.target).any(named),
        "{run:?}"
    );
    assert!(run.experiments.iter().any(|experiment| experiment.delay_ns > 0), "{run:?}");
}

//! `cargo andweorc view`.

use crate::common::{command, stderr, stdout};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};
use std::{fs, thread};

const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shop.jsonl");

/// The command, serving, until dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(profile: &str) -> Server {
        let mut child = command().args(["view", profile]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http")).expect(&line);
        let port = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix('/'));
        Server { port: port.expect(url).parse().unwrap(), child }
    }

    /// The answer to a request, of which `HOST` is the host.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        stream.write_all(request.replace("HOST", &host).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn the_report_is_served_and_nothing_else() {
    let server = Server::start(PROFILE);
    let html = stdout(&command().args(["report", "--format", "html", PROFILE]).output().unwrap());
    let answer = server.ask("GET / HTTP/1.1\r\nHost: HOST\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"),
        "{head}"
    );
    assert!(head.contains(&format!("Content-Length: {}\r\n", html.len())), "{head}");
    assert_eq!(body, html);

    let head_only = server.ask("HEAD / HTTP/1.1\r\nHost: HOST\r\n\r\n");
    assert!(
        head_only.starts_with("HTTP/1.1 200") && head_only.ends_with("\r\n\r\n"),
        "{head_only}"
    );
    for path in ["/shop.jsonl", "/favicon.ico", "/../Cargo.toml", "/%2e%2e/", "//", "*"] {
        let answer = server.ask(&format!("GET {path} HTTP/1.1\r\nHost: HOST\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let answer = server.ask("POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\n\r\nabc");
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("Allow: GET, HEAD"), "{answer}");
    assert!(server.ask("GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n").starts_with("HTTP/1.1 403"));
    let long = format!("GET / HTTP/1.1\r\nHost: HOST\r\nX: {}", "x".repeat(20_000));
    assert!(server.ask(&long).starts_with("HTTP/1.1 431"));
}

#[test]
fn server_listens_only_on_the_loopback_address() {
    let server = Server::start(PROFILE);
    assert!(TcpStream::connect(("127.0.0.1", server.port)).is_ok());
    // What listens on all addresses listens on this one too.
    assert!(TcpStream::connect(("127.0.0.2", server.port)).is_err());
    assert!(TcpStream::connect(("::1", server.port)).is_err());
}

#[test]
fn a_silent_client_is_in_nobodys_way() {
    let server = Server::start(PROFILE);
    let silent = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let half = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    (&half).write_all(b"GET / HT").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert!(
                    server.ask("GET / HTTP/1.1\r\nHost: HOST\r\n\r\n").starts_with("HTTP/1.1 200")
                )
            });
        }
    });
    drop(silent);
}

#[test]
fn a_reload_shows_what_the_run_has_added() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let whole = fs::read_to_string(PROFILE).unwrap();
    let half = whole.match_indices('\n').nth(60).unwrap().0 + 1;
    fs::write(&path, &whole[..half]).unwrap();
    let server = Server::start(path.to_str().unwrap());
    let get = || server.ask("GET / HTTP/1.1\r\nHost: HOST\r\n\r\n");
    assert!(!get().contains("shop::price\",\"place\""));
    fs::write(&path, &whole).unwrap();
    assert!(get().contains("shop::price\",\"place\""));
    fs::write(&path, "not a profile").unwrap();
    let answer = get();
    assert!(answer.starts_with("HTTP/1.1 500") && answer.contains("is not a profile"), "{answer}");
}

#[test]
fn server_start_failure_is_reported_at_once() {
    let output = command().args(["view", "/nowhere/run.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("/nowhere/run.jsonl: can't be read"), "{}", stderr(&output));
    let server = Server::start(PROFILE);
    let port = server.port.to_string();
    let output = command().args(["view", "--port", &port, PROFILE]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains(&format!("port {port} of 127.0.0.1 can't be had")),
        "{}",
        stderr(&output)
    );
}

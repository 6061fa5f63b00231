//! The part of HTTP/1.1 that it takes to serve one page: one request a connection, GET and HEAD of
//! `/`.
//!
//! Not for the open network: no TLS, no limit on connections. A request must name this host, so
//! that a page from elsewhere whose name was made to point here (DNS rebinding) gets nothing.

use httparse::{EMPTY_HEADER, Request, Status};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// A browser's request is far shorter.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// How long a client may be silent. Browsers open connections that they may never use.
const PATIENCE: Duration = Duration::from_secs(10);
/// After a failed accept (no file descriptors left, most often).
const PAUSE: Duration = Duration::from_millis(100);

/// Page that is served, and the port that it is served on.
pub(super) struct Served<'a> {
    /// The port that requests must name.
    pub(super) port: u16,
    /// The page, made anew for each request.
    pub(super) page: &'a (dyn Fn() -> Response + Sync),
}

/// An answer.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl Response {
    /// A page.
    pub(super) fn html(body: String) -> Response {
        Response { status: 200, content_type: "text/html; charset=utf-8", body }
    }

    /// A message.
    pub(super) fn text(status: u16, body: impl Into<String>) -> Response {
        Response { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// Answers all requests, without end.
pub(super) fn serve(listener: &TcpListener, served: &Served<'_>) {
    thread::scope(|scope| {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => {
                    scope.spawn(move || {
                        // A client that goes away is its own affair.
                        answer(&stream, served).ok();
                    });
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    });
}

fn answer(mut stream: &TcpStream, served: &Served<'_>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let (response, with_body) = loop {
        let mut chunk = [0; 2048];
        let n = stream.read(&mut chunk)?;
        if n == 0 {
            return Ok(());
        }
        head.extend_from_slice(&chunk[..n]);
        if let Some(answer) = respond(&head, served) {
            break answer;
        }
        if head.len() > LONGEST_HEAD {
            break (Response::text(431, "The request is too long.\n"), true);
        }
    };
    write!(
        stream,
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n{}\r\n",
        response.status,
        reason(response.status),
        response.content_type,
        response.body.len(),
        if response.status == 405 { "Allow: GET, HEAD\r\n" } else { "" },
    )?;
    if with_body {
        stream.write_all(response.body.as_bytes())?;
    }
    stream.shutdown(Shutdown::Write)?;
    // What was sent and not read would make the system drop the answer too.
    io::copy(&mut stream.take(LONGEST_HEAD as u64), &mut io::sink())?;
    Ok(())
}

/// The answer to a request, and whether it is sent with its body; `None` while the request is not
/// whole.
fn respond(head: &[u8], served: &Served<'_>) -> Option<(Response, bool)> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Partial) => return None,
        Err(_) => return Some((Response::text(400, "This is no HTTP request.\n"), true)),
        Ok(Status::Complete(_)) => {}
    }
    let method = request.method.unwrap_or_default();
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    let mut hosts =
        request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let here =
        hosts.next().is_some_and(|host| is_here(host.value, served.port)) && hosts.next().is_none();
    let response = match (here, method, path) {
        (false, ..) => Response::text(403, "Only requests to this host are answered.\n"),
        (true, "GET" | "HEAD", "/") => (served.page)(),
        (true, "GET" | "HEAD", _) => {
            Response::text(404, "There is nothing but the report, at `/`.\n")
        }
        (true, ..) => Response::text(405, "The report can only be read.\n"),
    };
    Some((response, method != "HEAD"))
}

fn is_here(host: &[u8], port: u16) -> bool {
    ["127.0.0.1", "localhost"]
        .iter()
        .any(|name| host.eq_ignore_ascii_case(format!("{name}:{port}").as_bytes()))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> Option<u16> {
        let page = || Response::html("page".to_owned());
        respond(request.as_bytes(), &Served { port: 80, page: &page })
            .map(|(response, _)| response.status)
    }

    #[test]
    fn only_the_page_is_served_and_only_to_this_host() {
        for (request, expected) in [
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", Some(200)),
            ("HEAD /?a=b HTTP/1.1\r\nhost: LocalHost:80\r\n\r\n", Some(200)),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n", None),
            ("GET /../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", Some(404)),
            ("GET //x/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", Some(404)),
            ("GET http://elsewhere/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", Some(404)),
            ("POST / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", Some(405)),
            ("GET / HTTP/1.1\r\nHost: elsewhere:80\r\n\r\n", Some(403)),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n", Some(403)),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\nHost: elsewhere\r\n\r\n", Some(403)),
            ("GET / HTTP/1.1\r\n\r\n", Some(403)),
            ("\u{16}\u{3}\u{1}\r\n\r\n", Some(400)),
        ] {
            assert_eq!(status(request), expected, "{request}");
        }
    }
}

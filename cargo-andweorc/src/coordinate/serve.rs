//! The coordinator on a socket: one thread that accepts, lets time pass and writes, and one for
//! each connection that reads.

use super::machine::{Action, Coordinator, Id, Wanted};
use andweorc_profile::coordination::{Lines, ToCoordinator, ToParticipant, to_line};
use andweorc_profile::plain;
use andweorc_profile::time::{Nanos, Real};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// How often the time is let pass.
const LOOK: Duration = Duration::from_millis(5);
/// How long a program may take to say hello.
const HELLO: Duration = Duration::from_secs(5);
/// How long a write may hold up all others.
const WRITE: Duration = Duration::from_millis(100);
/// So many connections there are at most, those of strangers included.
const MOST_CONNECTIONS: usize = 64;

/// A coordinator that runs until it is dropped, or its run is over.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// News from a thread that reads for the one that coordinates.
enum Event {
    Message(Id, ToCoordinator),
    Refused(Id, String),
    Lost(Id, String),
}

impl Server {
    /// Listens, and coordinates from then on. `say` is told what the user should know.
    ///
    /// # Errors
    ///
    /// When nothing can listen at the address.
    pub(crate) fn start(
        listen: SocketAddr,
        token: &str,
        wanted: Wanted,
        say: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Arc::<AtomicBool>::default();
        let (events, received) = channel();
        let begun = Instant::now();
        let serve = Serve {
            listener,
            token: token.into(),
            machine: Coordinator::new(wanted, Real(0)),
            streams: HashMap::new(),
            next: 0,
            events,
            begun,
            stop: Arc::clone(&stop),
        };
        let thread = thread::spawn(move || serve.run(&received, say));
        Ok(Server { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed.
            thread.join().unwrap_or_default();
        }
    }
}

struct Serve {
    listener: TcpListener,
    token: Arc<str>,
    machine: Coordinator,
    streams: HashMap<Id, TcpStream>,
    next: Id,
    events: Sender<Event>,
    begun: Instant,
    stop: Arc<AtomicBool>,
}

impl Serve {
    fn now(&self) -> Real {
        Real(0) + Nanos::from(self.begun.elapsed())
    }

    fn run(mut self, received: &Receiver<Event>, say: impl Fn(&str)) {
        while !self.stop.load(SeqCst) {
            self.accept();
            match received.recv_timeout(LOOK) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // All that has come is older than what follows from the time.
            for event in received.try_iter().collect::<Vec<_>>() {
                self.take(event);
            }
            self.machine.tick(self.now());
            self.act();
            self.tell(&say);
        }
        self.machine.finish("the command ended", self.now());
        self.act();
        self.tell(&say);
        for stream in self.streams.values() {
            close(stream);
        }
    }

    fn tell(&mut self, say: &impl Fn(&str)) {
        while let Some(news) = self.machine.next_news() {
            say(&plain::cut_sentence(&news));
        }
    }

    /// Takes in who wants to connect. A stranger has no more than [`HELLO`] to become known.
    fn accept(&mut self) {
        // What fails concerns that connection, or passes.
        while let Ok((stream, _)) = self.listener.accept() {
            if self.streams.len() >= MOST_CONNECTIONS {
                close(&stream);
                continue;
            }
            let id = self.next;
            self.next += 1;
            let prepared = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_nodelay(true))
                .and_then(|()| stream.set_write_timeout(Some(WRITE)))
                .and_then(|()| stream.set_read_timeout(Some(HELLO)))
                .and_then(|()| stream.try_clone());
            let Ok(reader) = prepared else { continue };
            let (token, events) = (Arc::clone(&self.token), self.events.clone());
            self.streams.insert(id, stream);
            thread::spawn(move || {
                let last = read(id, reader, &token, &events);
                // Nobody listens any more at the end.
                events.send(last).unwrap_or_default();
            });
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Message(id, message) => self.machine.receive(id, message, now),
            Event::Refused(id, reason) => self.machine.refuse(id, reason),
            Event::Lost(id, reason) => {
                self.machine.lose(id, &reason, now);
                self.close(id);
            }
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.machine.next_action() {
            match action {
                Action::Send(id, message) => self.send(id, &message),
                Action::Close(id) => self.close(id),
            }
        }
    }

    fn send(&mut self, id: Id, message: &ToParticipant) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Err(error) = stream.write_all(to_line(message).as_bytes()) {
            let now = self.now();
            self.machine.lose(id, &format!("the connection was lost: {error}"), now);
            self.close(id);
        }
    }

    fn close(&mut self, id: Id) {
        if let Some(stream) = self.streams.remove(&id) {
            close(&stream);
        }
    }
}

/// Ends a connection for its reader too.
fn close(stream: &TcpStream) {
    // A shutdown fails where the other side was quicker.
    stream.shutdown(Shutdown::Both).unwrap_or_default();
}

/// Reads a connection to its end. Nothing is handed on before a hello with the right token.
fn read(id: Id, mut stream: TcpStream, token: &str, events: &Sender<Event>) -> Event {
    let mut lines = Lines::default();
    let mut bytes = [0; 4096];
    let mut is_known = false;
    let until = Instant::now() + HELLO;
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Event::Lost(id, "its connection was closed".into()),
            Ok(many) => lines.feed(&bytes[..many]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Event::Lost(id, format!("its connection was lost: {error}")),
        }
        while let Some(message) = lines.next_message::<ToCoordinator>() {
            let message = match message {
                Ok(message) => message,
                Err(error) if is_known => return Event::Lost(id, format!("it sent {error}")),
                Err(error) => return Event::Refused(id, format!("it sent {error}")),
            };
            if !is_known {
                let ToCoordinator::Hello { token: given, .. } = &message else {
                    return Event::Refused(id, "it did not say hello".into());
                };
                if !bool::from(given.as_bytes().ct_eq(token.as_bytes())) {
                    return Event::Refused(id, "its token is wrong".into());
                }
                is_known = true;
                if let Err(error) = stream.set_read_timeout(None) {
                    return Event::Lost(id, error.to_string());
                }
            }
            if events.send(Event::Message(id, message)).is_err() {
                return Event::Lost(id, "the run is over".into());
            }
        }
        if !is_known && Instant::now() >= until {
            return Event::Refused(id, "it did not say hello in time".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andweorc_profile::coordination::PROTOCOL;
    use std::sync::Mutex;

    /// A server, and all that it says.
    fn server() -> (Server, Arc<Mutex<Vec<String>>>) {
        let wanted = Wanted {
            run: "r1".into(),
            entry: "gateway".into(),
            expected: Vec::new(),
            speedups: Vec::new(),
            duration: Nanos::from_millis(60_000),
            seed: 0,
        };
        let said = Arc::<Mutex<Vec<String>>>::default();
        let says = Arc::clone(&said);
        let say = move |news: &str| says.lock().unwrap().push(news.to_owned());
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        (Server::start(address, "secret", wanted, say).unwrap(), said)
    }

    fn hello(token: &str, version: u32) -> String {
        to_line(&ToCoordinator::Hello { version, token: token.into(), service: "shop".into() })
    }

    /// Connects, says this, and returns the connection and the first answer, if there is one.
    fn answer(server: &Server, said: &str) -> (TcpStream, Option<ToParticipant>) {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        let (mut lines, mut bytes) = (Lines::default(), [0; 4096]);
        loop {
            if let Some(message) = lines.next_message() {
                return (stream, Some(message.unwrap()));
            }
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return (stream, None),
                Ok(many) => lines.feed(&bytes[..many]),
            }
        }
    }

    #[test]
    fn nobody_takes_part_without_the_token_the_version_and_a_hello() {
        let (server, said) = server();
        let alive = to_line(&ToCoordinator::Alive);
        for (says, why) in [
            (hello("guess", PROTOCOL), "its token is wrong"),
            (hello("", PROTOCOL), "its token is wrong"),
            (hello("secret", PROTOCOL + 1), "version 2 of the protocol"),
            (alive, "it did not say hello"),
            ("GET / HTTP/1.1\n".to_owned(), "it sent no message"),
        ] {
            let (mut stream, answer) = answer(&server, &says);
            let Some(ToParticipant::Refused { reason }) = answer else { panic!("{answer:?}") };
            assert!(reason.contains(why), "{reason}");
            assert!(!reason.contains("secret") && !reason.contains("guess"));
            // Nothing more is said, and the connection is closed.
            assert!(matches!(stream.read(&mut [0; 16]), Ok(0) | Err(_)));
        }
        let (_stream, welcome) = answer(&server, &hello("secret", PROTOCOL));
        let entry = Some("gateway".to_owned());
        let expected = ToParticipant::Welcome { version: PROTOCOL, run: "r1".into(), entry };
        assert_eq!(welcome, Some(expected));
        assert_eq!(said.lock().unwrap().len(), 5);
    }

    #[test]
    fn the_end_of_the_server_is_told() {
        let (server, _) = server();
        let (mut stream, welcome) = answer(&server, &hello("secret", PROTOCOL));
        assert!(welcome.is_some());
        drop(server);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        let finish = ToParticipant::Finish { reason: "the command ended".into() };
        assert!(rest.ends_with(&to_line(&finish)), "{rest}");
    }
}

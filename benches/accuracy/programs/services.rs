//! Services of kinds that other families leave out: datagrams, proxies, streams of futures,
//! runtimes side by side, work that holds a worker.

use crate::line::outside;
use crate::program::{Aim, Done, Part, Program, Runtime, Stage, spawn, spawn_blocking};
use andweorc::Profile;
use andweorc::runtime::BuilderExt;
use andweorc_profile::PointKind::{Latency, Progress};
use futures_util::{StreamExt, stream};
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::UdpSocket;
use tokio::runtime::Builder;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::LocalSet;

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "entries",
        about: "two handlers that list a folder: each entry is looked at by the blocking pool, one after the other",
        runtime: Runtime::Workers,
        parts: &[("entry", 60), ("list", 200)],
        targets: &[Aim::span("entry"), Aim::span("list")],
        point: Latency,
        start: entries,
    },
    Program {
        name: "udp",
        about: "a socket whose datagrams one task reads and two answer; four clients",
        runtime: Runtime::Workers,
        parts: &[("decode", 60), ("answer", 250)],
        targets: &[Aim::span("decode"), Aim::span("answer")],
        point: Progress,
        start: udp,
    },
    Program {
        name: "proxy",
        about: "three clients whose bytes a task copies to a server and back",
        runtime: Runtime::Workers,
        parts: &[("serve", 250), ("log", 80)],
        targets: &[Aim::span("serve"), Aim::span("log")],
        point: Progress,
        start: proxy,
    },
    Program {
        name: "buffered",
        about: "one task that has four queries under way, parses each answer in its future and stores it after",
        runtime: Runtime::Workers,
        parts: &[("parse", 120), ("store", 150)],
        targets: &[Aim::span("parse"), Aim::span("store")],
        point: Progress,
        start: buffered,
    },
    Program {
        name: "hashing",
        about: "quick requests, and beside them one that hashes a password on a worker for 3 ms",
        runtime: Runtime::Workers,
        parts: &[("quick", 100), ("hash", 3000)],
        targets: &[Aim::span("hash"), Aim::span("quick")],
        point: Latency,
        start: hashing,
    },
    Program {
        name: "stragglers",
        about: "two handlers that ask three shards each, of which one in ten takes six times as long",
        runtime: Runtime::Workers,
        parts: &[("shard", 80), ("merge", 150)],
        targets: &[Aim::span("shard"), Aim::span("merge")],
        point: Latency,
        start: stragglers,
    },
    Program {
        name: "broadcast_lag",
        about: "a producer that two subscribers don't keep up with: they skip what they missed",
        runtime: Runtime::Workers,
        parts: &[("make", 60), ("render", 400)],
        targets: &[Aim::span("make"), Aim::span("render")],
        point: Progress,
        start: broadcast_lag,
    },
    Program {
        name: "two_runtimes",
        about: "three handlers on one runtime that leave half of their work to another one",
        runtime: Runtime::Workers,
        parts: &[("front", 150), ("back", 250)],
        targets: &[Aim::span("front"), Aim::span("back")],
        point: Latency,
        start: two_runtimes,
    },
    Program {
        name: "arbiters",
        about: "a dispatcher and two threads with a runtime and a LocalSet each, as actix has them",
        runtime: Runtime::Workers,
        parts: &[("accept", 80), ("handle", 250)],
        targets: &[Aim::span("accept"), Aim::span("handle")],
        point: Progress,
        start: arbiters,
    },
    Program {
        name: "long_spans",
        about: "four connections, each in a span that lasts as long as it does",
        runtime: Runtime::Workers,
        parts: &[("read", 100), ("apply", 200)],
        targets: &[Aim::span("read"), Aim::span("apply")],
        point: Progress,
        start: long_spans,
    },
];

fn entries(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..2 {
        let (entry, list) = (stage.part("entry"), stage.part("list"));
        let mut client = stage.line()?;
        spawn("handler", async move {
            loop {
                let request = done.begin();
                for _ in 0..8 {
                    let entry = entry.clone();
                    spawn_blocking(move || entry.run()).await.expect("entries do not panic");
                }
                list.run();
                request.end();
                client.ask(300).await;
            }
        });
    }
    Ok(())
}

fn udp(stage: &Stage) -> io::Result<()> {
    let server = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    server.set_nonblocking(true)?;
    let address = server.local_addr()?;
    let server: &'static UdpSocket = Box::leak(Box::new(UdpSocket::from_std(server)?));
    let (mut queues, mut queued) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (queue, jobs) = channel(16);
        queues.push(queue);
        queued.push(jobs);
    }
    let decode = stage.part("decode");
    spawn("reader", async move {
        let mut datagram = [0; 16];
        for number in 0.. {
            let (_, client) = server.recv_from(&mut datagram).await.expect("the socket is open");
            decode.run();
            queues[number % 2].send(client).await.expect("both tasks live");
        }
    });
    let done = stage.done();
    for mut jobs in queued {
        let answer = stage.part("answer");
        spawn("answers", async move {
            while let Some(client) = jobs.recv().await {
                answer.run();
                done.hit();
                server.send_to(&[1], client).await.expect("the socket is open");
            }
        });
    }
    for _ in 0..4 {
        let client = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        client.connect(address)?;
        outside(move || {
            loop {
                client.send(&[1])?;
                client.recv(&mut [0; 16])?;
            }
        })?;
    }
    Ok(())
}

/// Both ends of a stream, the first one for tasks.
fn pair() -> io::Result<(tokio::net::UnixStream, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((tokio::net::UnixStream::from_std(ours)?, theirs))
}

fn proxy(stage: &Stage) -> io::Result<()> {
    const MESSAGE: usize = 1024;
    let done = stage.done();
    for _ in 0..3 {
        let (mut inward, mut client) = pair()?;
        let (mut outward, server) = pair()?;
        server.set_nonblocking(true)?;
        let mut server = tokio::net::UnixStream::from_std(server)?;
        spawn("proxy", async move {
            copy_bidirectional(&mut inward, &mut outward).in_process().await.expect("both are open")
        });
        let (serve, log) = (stage.part("serve"), stage.part("log"));
        spawn("server", async move {
            let mut message = [0; MESSAGE];
            while server.read_exact(&mut message).in_process().await.is_ok() {
                serve.run();
                server.write_all(&message).await.expect("the proxy reads");
                log.run();
                done.hit();
            }
        });
        outside(move || {
            let mut message = [0; MESSAGE];
            loop {
                client.write_all(&message)?;
                client.read_exact(&mut message)?;
            }
        })?;
    }
    Ok(())
}

fn buffered(stage: &Stage) -> io::Result<()> {
    let (done, store) = (stage.done(), stage.part("store"));
    let mut queries = Vec::new();
    for _ in 0..4 {
        queries.push((stage.part("parse"), stage.line()?));
    }
    spawn("importer", async move {
        let (free, mut idle) = mpsc::unbounded_channel();
        for query in queries {
            free.send(query).expect("it is open");
        }
        let items = stream::repeat(()).map(|()| {
            let (parse, mut line) = idle.try_recv().expect("as many as are under way");
            let free = free.clone();
            async move {
                line.ask(600).await;
                parse.run();
                free.send((parse, line)).expect("it is open");
            }
        });
        let mut parsed = std::pin::pin!(items.buffer_unordered(4));
        while parsed.next().await.is_some() {
            store.run();
            done.hit();
        }
    });
    Ok(())
}

fn hashing(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for _ in 0..3 {
        let (quick, mut line) = (stage.part("quick"), stage.line()?);
        spawn("quick", async move {
            loop {
                let request = done.begin();
                quick.run();
                request.end();
                line.ask(700).await;
            }
        });
    }
    let (hash, mut line) = (stage.part("hash"), stage.line()?);
    spawn("login", async move {
        loop {
            line.ask(5000).await;
            hash.run();
        }
    });
    Ok(())
}

fn stragglers(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    for handler in 0..2 {
        let merge = stage.part("merge");
        let (answers, mut answered) = mpsc::unbounded_channel();
        let mut shards = Vec::new();
        for number in 0..3 {
            let (ask, asked) = mpsc::unbounded_channel();
            shards.push(ask);
            let (part, line) = (stage.part("shard"), stage.line()?);
            let first = 3 * handler + number;
            spawn("shard", shard(first, part, line, asked, answers.clone()));
        }
        spawn("handler", async move {
            loop {
                let request = done.begin();
                for shard in &shards {
                    shard.send(()).expect("shards live");
                }
                for _ in &shards {
                    answered.recv().await.expect("shards live");
                }
                merge.run();
                request.end();
            }
        });
    }
    Ok(())
}

async fn shard(
    first: usize,
    part: Part,
    mut line: crate::line::Line,
    mut asked: UnboundedReceiver<()>,
    answers: UnboundedSender<()>,
) {
    for number in first.. {
        let Some(()) = asked.recv().await else { return };
        line.ask(if number % 10 == 0 { 2400 } else { 400 }).await;
        part.run();
        answers.send(()).expect("the handler lives");
    }
}

fn broadcast_lag(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let (news, _) = broadcast::channel(4);
    for _ in 0..2 {
        let (render, mut news) = (stage.part("render"), news.subscribe());
        spawn("subscriber", async move {
            loop {
                match news.recv().await {
                    Ok(()) => {
                        render.run();
                        done.hit();
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }
    let (make, mut line) = (stage.part("make"), stage.line()?);
    spawn("producer", async move {
        loop {
            line.ask(200).await;
            make.run();
            news.send(()).expect("subscribers live");
        }
    });
    Ok(())
}

fn two_runtimes(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let back =
        Builder::new_multi_thread().worker_threads(1).enable_all().enable_profiling().build()?;
    let (jobs, job) = channel::<oneshot::Sender<()>>(8);
    let context = back.enter();
    spawn("back", answers_jobs(stage.part("back"), job));
    drop(context);
    thread::spawn(move || back.block_on(std::future::pending::<()>()));
    for _ in 0..3 {
        let (front, mut line) = (stage.part("front"), stage.line()?);
        let jobs = jobs.clone();
        spawn("handler", async move {
            loop {
                let request = done.begin();
                front.run();
                let (answer, answered) = oneshot::channel();
                jobs.send(answer).await.expect("the other runtime lives");
                answered.await.expect("all are answered");
                request.end();
                line.ask(400).await;
            }
        });
    }
    Ok(())
}

async fn answers_jobs(part: Part, mut jobs: Receiver<oneshot::Sender<()>>) {
    while let Some(answer) = jobs.recv().await {
        part.run();
        // Whoever asked may be gone: the program ends.
        answer.send(()).ok();
    }
}

fn arbiters(stage: &Stage) -> io::Result<()> {
    let done = stage.done();
    let mut arbiters = Vec::new();
    for _ in 0..2 {
        let (arbiter, connections) = mpsc::unbounded_channel::<UnixStream>();
        arbiters.push(arbiter);
        let handle = stage.part("handle");
        thread::spawn(move || {
            let mut builder = Builder::new_current_thread();
            let runtime =
                builder.enable_all().enable_profiling().build().expect("a runtime of one thread");
            LocalSet::new().block_on(&runtime, arbiter_of(connections, handle, done));
        });
    }
    let accept = stage.part("accept");
    let mut lines = Vec::new();
    for number in 0..4 {
        let (client, server) = UnixStream::pair()?;
        arbiters[number % 2].send(server).expect("arbiters live");
        client.set_nonblocking(true)?;
        lines.push((tokio::net::UnixStream::from_std(client)?, stage.line()?, accept.clone()));
    }
    for (mut connection, mut line, accept) in lines {
        spawn("dispatcher", async move {
            loop {
                line.ask(400).await;
                accept.run();
                connection.write_u8(1).await.expect("the arbiter reads");
                connection.read_u8().in_process().await.expect("the arbiter answers");
            }
        });
    }
    Ok(())
}

async fn arbiter_of(mut connections: UnboundedReceiver<UnixStream>, handle: Part, done: Done) {
    while let Some(connection) = connections.recv().await {
        let handle = handle.clone();
        connection.set_nonblocking(true).expect("it is open");
        andweorc::task::Builder::new().name("connection").spawn_local(async move {
            let connection = tokio::net::UnixStream::from_std(connection);
            let mut connection = connection.expect("this is inside a runtime");
            while connection.read_u8().in_process().await.is_ok() {
                handle.run();
                done.hit();
                connection.write_u8(1).await.expect("the dispatcher reads");
            }
        });
    }
    std::future::pending().await
}

fn long_spans(stage: &Stage) -> io::Result<()> {
    use tracing::Instrument;
    let done = stage.done();
    for number in 0..4 {
        let (read, apply) = (stage.part("read"), stage.part("apply"));
        let (mut peer, mut disk) = (stage.line()?, stage.line()?);
        let connection = async move {
            loop {
                peer.ask(500).await;
                read.run();
                disk.ask(300).await;
                apply.run();
                done.hit();
            }
        };
        spawn("connection", connection.instrument(tracing::info_span!("connection", number)));
    }
    Ok(())
}

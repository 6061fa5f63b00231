//! Sockets of which the program has both ends.

use crate::program::{Aim, Program, Runtime, Stage, spawn};
use andweorc::Profile;
use andweorc_profile::PointKind::Latency;
use std::io;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const PROGRAMS: &[Program] = &[Program {
    name: "clients_inside",
    about: "a service and its three clients in one program, which say so: work, a request over TCP, work there, a query outside",
    runtime: Runtime::Workers,
    parts: &[("prepare", 150), ("serve", 400)],
    targets: &[Aim::span("serve"), Aim::span("prepare")],
    point: Latency,
    start: clients_inside,
}];

const CLIENTS: usize = 3;

fn clients_inside(stage: &Stage) -> io::Result<()> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let services: Vec<_> = (0..CLIENTS)
        .map(|_| Ok((stage.part("serve"), stage.line()?)))
        .collect::<io::Result<_>>()?;
    spawn("listener", async move {
        for (serve, mut line) in services {
            let (mut stream, _) = listener.accept().await.expect("the listener is open");
            stream.set_nodelay(true).expect("the stream is open");
            spawn("connection", async move {
                // Until the client is gone.
                while let Ok(request) = stream.read_u32().in_process().await {
                    serve.run();
                    line.ask(800).await;
                    stream.write_u32(request).await.expect("the client waits");
                }
            });
        }
        // Nobody else connects.
        drop(listener);
    });
    let done = stage.done();
    for number in 0..CLIENTS as u32 {
        let prepare = stage.part("prepare");
        spawn("client", async move {
            let mut stream = TcpStream::connect(address).await.expect("the service listens");
            stream.set_nodelay(true).expect("the stream is open");
            loop {
                let request = done.begin();
                prepare.run();
                stream.write_u32(number).await.expect("the service reads");
                let answer = stream.read_u32().in_process().await.expect("the service answers");
                assert_eq!(answer, number);
                request.end();
            }
        });
    }
    Ok(())
}

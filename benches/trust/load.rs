//! Clients in a process of their own.

use crate::services::PORT;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Asks for as long as it lives: `waiting` connections that ask again when they have their answer,
/// and `paced` requests a second at their own pace.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(waiting: usize, paced: u32) {
    for _ in 0..waiting {
        tokio::spawn(async {
            let mut connection = connect().await;
            loop {
                ask(&mut connection).await;
            }
        });
    }
    if paced > 0 {
        // So many connections take turns: one that still waits is late for its next turn, no other
        // is.
        const CONNECTIONS: u32 = 50;
        for turn in 0..CONNECTIONS {
            tokio::spawn(async move {
                let mut connection = connect().await;
                sleep(Duration::from_secs(1) * turn / paced).await;
                let mut tick = interval(Duration::from_secs(1) * CONNECTIONS / paced);
                tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
                loop {
                    tick.tick().await;
                    ask(&mut connection).await;
                }
            });
        }
    }
    std::future::pending().await
}

async fn connect() -> TcpStream {
    loop {
        if let Ok(connection) = TcpStream::connect(("127.0.0.1", PORT)).await {
            connection.set_nodelay(true).expect("a socket");
            return connection;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn ask(connection: &mut TcpStream) {
    let ended = "the service has ended";
    connection.write_all(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n").await.expect(ended);
    let mut answer = [0; 1024];
    let read = connection.read(&mut answer).await.expect(ended);
    // The head and `ok` come at once: hyper writes them together.
    assert!(answer[..read].ends_with(b"ok"), "an answer");
}

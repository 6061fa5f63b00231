//! Answers that are in time, under timeouts: the world outside takes 60 % of the time. How many
//! timed out is printed.

use super::{arg, multi_thread, report, session, spin};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tracing::instrument]
async fn work() {
    spin(700);
    tokio::task::yield_now().await;
}

fn answer(mut socket: std::net::TcpStream) {
    let mut byte = [0];
    while socket.read_exact(&mut byte).is_ok() {
        std::thread::sleep(Duration::from_millis(60));
        if socket.write_all(&byte).is_err() {
            break;
        }
    }
}

pub fn main() {
    andweorc::subscriber().init();
    let _session = session();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || answer(socket));
        }
    });
    let end = Instant::now() + Duration::from_secs(arg(0, 3));
    multi_thread(2).block_on(async move {
        andweorc::spawn(async {
            loop {
                work().await;
                tokio::time::sleep(Duration::from_micros(50)).await;
                andweorc::progress!("done");
            }
        });
        let ask = move || async move {
            let mut socket = tokio::net::TcpStream::connect(at).await.expect("a connection");
            let (mut in_time, mut late, mut byte) = (0, 0, [0]);
            while Instant::now() < end {
                socket.write_all(&[1]).await.expect("it is open");
                let answer = socket.read_exact(&mut byte);
                if tokio::time::timeout(Duration::from_millis(100), answer).await.is_ok() {
                    in_time += 1;
                } else {
                    late += 1;
                    socket.read_exact(&mut byte).await.expect("it is open");
                }
            }
            (in_time, late)
        };
        let asks: Vec<_> = (0..10).map(|_| andweorc::spawn(ask())).collect();
        let (mut in_time, mut late) = (0, 0);
        for ask in asks {
            let (of_one, late_of_one) = ask.await.expect("it asks");
            in_time += of_one;
            late += late_of_one;
        }
        report(format!("in_time={in_time} late={late}"))
    })
}

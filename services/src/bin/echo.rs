//! A gRPC echo on tonic, which numbers what was said in a log: one at a time, in order. Marked (1)
//! to (3): what andweorc asks for.
//!
//! ```sh
//! echo PORT
//! ```
//!
//! The log is the bottleneck. `check`, outside of its lock, is work too, but no request waits for
//! that of another.

use dial::Work;
use pb::Message;
use pb::echo_server::{Echo, EchoServer};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use tokio::sync::Mutex;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tracing::{info_span, instrument};
use tracing_subscriber::prelude::*;

mod pb {
    tonic::include_proto!("echo");
}

static CHECK: LazyLock<Work> = LazyLock::new(|| Work::fixed(60));
static APPEND: LazyLock<Work> = LazyLock::new(|| Work::dialed(600));

#[derive(Debug, Default)]
struct Log {
    entries: Mutex<u64>,
}

#[tonic::async_trait]
impl Echo for Log {
    #[instrument(skip_all)]
    async fn say(&self, request: Request<Message>) -> Result<Response<Message>, Status> {
        let mut message = request.into_inner();
        info_span!("check").in_scope(|| CHECK.run());
        let mut entries = self.entries.lock().await;
        message.number = info_span!("append").in_scope(|| {
            APPEND.run();
            *entries += 1;
            *entries
        });
        Ok(Response::new(message))
    }
}

#[andweorc::main] // (1) in the place of #[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::registry().with(andweorc::layer()).init(); // (2) spans are points and targets
    let port = std::env::args().nth(1).ok_or("usage: echo PORT")?.parse()?;
    let service = EchoServer::new(Log::default());
    Server::builder()
        .layer(andweorc::tower::layer("request")) // (3) sees inside of tonic's tasks
        .add_service(service)
        .serve(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .await?;
    Ok(())
}

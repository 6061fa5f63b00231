//! The customers: a closed loop of real HTTP clients, each on a connection that it keeps.

use hdrhistogram::Histogram;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// No customer comes back more often than this.
const MOST: u64 = 10_000_000;

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Lets each customer finish and go.
pub(crate) fn stop() {
    // Relaxed: nothing else is handed over with it.
    STOPPED.store(true, Ordering::Relaxed);
}

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Summary of what the customers saw.
#[derive(Debug)]
pub(crate) struct Summary {
    seconds: f64,
    latencies: Histogram<u64>,
    refused: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |quantile| self.latencies.value_at_quantile(quantile) as f64 / 1e3;
        write!(
            f,
            "{} checkouts in {:.1} s ({:.0}/s), p50 {:.1} ms, p99 {:.1} ms, {} refused",
            self.latencies.len(),
            self.seconds,
            self.latencies.len() as f64 / self.seconds,
            ms(0.5),
            ms(0.99),
            self.refused
        )
    }
}

/// Sends so many customers to `shop` until [`stop`], or until it is gone.
pub(crate) fn run(shop: SocketAddr, customers: usize) -> Result<Summary> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let start = Instant::now();
        let mut customers: JoinSet<_> =
            (0..customers).map(|number| customer(shop, number)).collect();
        let mut all = Summary { seconds: 0.0, latencies: histogram(), refused: 0 };
        while let Some(customer) = customers.join_next().await {
            let (latencies, refused) = customer??;
            all.latencies.add(latencies)?;
            all.refused += refused;
        }
        all.seconds = start.elapsed().as_secs_f64();
        Ok(all)
    })
}

/// One customer: checks out, waits for the reply, comes back. Returns latencies in us, and how
/// often the shop refused.
async fn customer(shop: SocketAddr, number: usize) -> Result<(Histogram<u64>, u64)> {
    let stream = TcpStream::connect(shop).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (mut latencies, mut refused) = (histogram(), 0);
    for visit in 0..MOST {
        if STOPPED.load(Ordering::Relaxed) || sender.ready().await.is_err() {
            break;
        }
        let order = format!(r#"{{"article": {}, "quantity": {}}}"#, number * 8, 1 + visit % 3);
        let request = Request::post("/checkout")
            .header(header::HOST, "shop")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(order)))?;
        let start = Instant::now();
        let Ok(response) = sender.send_request(request).await else { break };
        let status = response.status();
        let Ok(_) = response.into_body().collect().await else { break };
        match status {
            StatusCode::OK => latencies.saturating_record(start.elapsed().as_micros() as u64),
            _ => refused += 1,
        }
    }
    Ok((latencies, refused))
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order")
}

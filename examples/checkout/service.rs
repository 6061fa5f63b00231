//! The shop: an HTTP service with one route, `POST /checkout`. The reply says what was paid; the
//! receipt is rendered afterwards.

use crate::common::meter::Meter;
use crate::common::work::hash;
use crate::costs::Costs;
use crate::outside::Line;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};
use tracing::{Instrument, info_span};

/// How many receipts may wait to be rendered; beyond that, checkouts wait too.
const UNRENDERED: usize = 256;

const ARTICLES: usize = 64;

/// The service and all that it holds.
#[derive(Debug)]
pub(crate) struct Shop {
    costs: Arc<Costs>,
    meter: Arc<Meter>,
    store: Mutex<Store>,
    bank: SocketAddr,
    /// Open lines to the bank that no checkout uses just now.
    bank_lines: StdMutex<Vec<Line>>,
    renderers: Arc<Semaphore>,
}

/// State that the one lock guards: the stock, and the journal that each change of it is written to.
#[derive(Debug)]
struct Store {
    left: [u32; ARTICLES],
    journal: Line,
}

#[derive(Debug, Deserialize)]
struct Order {
    article: usize,
    quantity: u32,
}

impl Shop {
    pub(crate) async fn open(
        costs: Arc<Costs>,
        meter: Arc<Meter>,
        bank: SocketAddr,
        journal: SocketAddr,
    ) -> io::Result<Shop> {
        Ok(Shop {
            costs,
            meter,
            store: Mutex::new(Store {
                left: [1000; ARTICLES],
                journal: Line::open(journal).await?,
            }),
            bank,
            bank_lines: StdMutex::new(Vec::new()),
            renderers: Arc::new(Semaphore::new(UNRENDERED)),
        })
    }

    /// Serves all who connect, each connection in a task of its own.
    pub(crate) async fn serve(self: Arc<Shop>, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let shop = self.clone();
            andweorc::spawn(async move {
                let service = service_fn(|request| shop.clone().answer(request));
                // A client that goes away in the middle of a request is no matter of the shop.
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
            });
        }
    }

    async fn answer(
        self: Arc<Shop>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (status, text) = match (request.method(), request.uri().path()) {
            (&Method::POST, "/checkout") => {
                let answer = self.checkout(request.into_body());
                match answer.instrument(info_span!("checkout")).await {
                    Ok(paid) => (StatusCode::OK, format!("paid {paid}\n")),
                    Err(refusal) => refusal,
                }
            }
            _ => (StatusCode::NOT_FOUND, "there is only POST /checkout\n".into()),
        };
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        Ok(response)
    }

    /// A whole checkout. Returns the price, or the reply that refuses it.
    async fn checkout(&self, body: Incoming) -> Result<u32, (StatusCode, String)> {
        let start = Instant::now();
        let refuse = |why: &dyn ToString| (StatusCode::BAD_REQUEST, why.to_string());
        let body = body.collect().await.map_err(|error| refuse(&error))?.to_bytes();
        let order = info_span!("parse").in_scope(|| {
            hash(self.costs.parse.now());
            serde_json::from_slice::<Order>(&body).map_err(|error| refuse(&error))
        })?;
        info_span!("fraud").in_scope(|| hash(self.costs.fraud.now()));
        let outside = |error: io::Error| (StatusCode::BAD_GATEWAY, error.to_string());
        self.take_from_stock(&order).await.map_err(outside)?;
        self.pay().instrument(info_span!("payment")).await.map_err(outside)?;
        self.render_later().await;
        self.meter.done(start);
        Ok(order.quantity * 100)
    }

    /// Takes what was ordered from the stock and waits for the journal **with the lock held**: the
    /// classic mistake.
    async fn take_from_stock(&self, order: &Order) -> io::Result<()> {
        let mut store = self.store.lock().await;
        info_span!("stock").in_scope(|| {
            hash(self.costs.stock.now());
            let left = &mut store.left[order.article % ARTICLES];
            // Sold out? There is more at the back.
            *left = left.checked_sub(order.quantity).unwrap_or(1000);
        });
        store.journal.ask(self.costs.journal.now()).instrument(info_span!("journal")).await
    }

    async fn pay(&self) -> io::Result<()> {
        let idle = self.bank_lines.lock().expect("no one panics with the lines").pop();
        let mut line = match idle {
            Some(line) => line,
            None => Line::open(self.bank).await?,
        };
        line.ask(self.costs.payment.now()).await?;
        self.bank_lines.lock().expect("no one panics with the lines").push(line);
        Ok(())
    }

    /// Leaves the receipt to a task of its own. It renders a section at a time and lets others run
    /// in between, so that no request waits for a whole receipt.
    async fn render_later(&self) {
        let permit = self.renderers.clone().acquire_owned().await;
        let costs = self.costs.clone();
        let receipt = async move {
            for _ in 0..Costs::SECTIONS {
                hash(costs.render.now());
                tokio::task::yield_now().await;
            }
            drop(permit);
        };
        // No child of `checkout`, which ends with the reply.
        andweorc::spawn(receipt.instrument(info_span!(parent: None, "render")));
    }
}

//! A JSON service on axum, as its authors would write it, with the three lines that andweorc asks
//! for, marked (1) to (3).
//!
//! ```sh
//! ANDWEORC_ENABLED=1 cargo run --release --example axum --features axum
//! wrk -d 40 http://127.0.0.1:3000/quote?article=7       # or any other load
//! ```
//!
//! Each quote first waits for a price, of which only two are made at a time, and then renders a
//! page. Prices are the bottleneck although they burn no CPU.

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

#[derive(Deserialize)]
struct Article {
    article: u32,
}

#[derive(Serialize)]
struct Quote {
    article: u32,
    cents: u32,
    terms: String,
}

#[andweorc::main] // (1) in the place of #[tokio::main]
async fn main() -> std::io::Result<()> {
    andweorc::subscriber().init(); // (2) spans are points and targets
    let service = Router::new().route("/quote", get(quote)).with_state(Arc::new(Semaphore::new(2)));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    andweorc::axum::serve(listener, service).await // (3) sees inside of axum's tasks
}

#[tracing::instrument(skip_all)]
async fn quote(
    State(pricing): State<Arc<Semaphore>>,
    Query(Article { article }): Query<Article>,
) -> Json<Quote> {
    let cents = {
        let _turn = pricing.acquire().await.expect("it is never closed");
        price(article).await
    };
    Json(Quote { article, cents, terms: terms(article) })
}

/// Returns a price, as if from a database.
#[tracing::instrument(skip_all)]
async fn price(article: u32) -> u32 {
    tokio::time::sleep(Duration::from_millis(2)).await;
    100 + article % 900
}

#[tracing::instrument(skip_all)]
fn terms(article: u32) -> String {
    (0..2_000).fold(String::new(), |terms, clause| {
        if clause % 500 == article % 500 { format!("{terms}{clause} ") } else { terms }
    })
}

//! The inventory: `POST /reserve/{article}` looks an article up, then takes it from the stock,
//! which is behind a lock.

use crate::work::{Cost, hash};
use crate::{Result, costs};
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::post;
use axum::serve::ListenerExt;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tracing::info_span;

const ARTICLES: usize = 64;

struct Inventory {
    lookup: Cost,
    take: Cost,
    left: Mutex<[u32; ARTICLES]>,
}

/// Serves until it is killed.
pub(crate) async fn serve(listener: TcpListener) -> Result<()> {
    let pace = costs::pace()?;
    let inventory = Inventory {
        lookup: costs::work("lookup", 150, pace)?,
        take: costs::work("take", 500, pace)?,
        left: Mutex::new([1000; ARTICLES]),
    };
    let service =
        Router::new().route("/reserve/{article}", post(reserve)).with_state(Arc::new(inventory));
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    // It takes in the stamps of requests, and stamps its responses.
    Ok(andweorc::axum::serve(listener, service).await?)
}

#[tracing::instrument(skip_all)]
async fn reserve(State(inventory): State<Arc<Inventory>>, Path(article): Path<usize>) -> String {
    info_span!("lookup").in_scope(|| hash(inventory.lookup.now()));
    let mut left = inventory.left.lock().await;
    info_span!("take").in_scope(|| {
        hash(inventory.take.now());
        let left = &mut left[article % ARTICLES];
        // Sold out? There is more at the back.
        *left = left.checked_sub(1).unwrap_or(1000);
        format!("{left} left\n")
    })
}

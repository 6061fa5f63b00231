//! A JSON API on axum over sqlx and SQLite: `POST /orders` takes an order, `GET /orders/{id}` shows
//! it. Marked (1) to (3): what andweorc asks for.
//!
//! ```sh
//! orders PORT DATABASE
//! ```
//!
//! SQLite has one writer at a time, so there is one connection to write with, behind an async
//! mutex. An order is priced **with it held**: that is the bottleneck. `receipt` is work too, but
//! no request waits for that of another.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use dial::Work;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tracing::{info_span, instrument};
use tracing_subscriber::prelude::*;

static PRICE: LazyLock<Work> = LazyLock::new(|| Work::dialed(600));
static RECEIPT: LazyLock<Work> = LazyLock::new(|| Work::fixed(60));

const SCHEMA: &str = "
    CREATE TABLE stock (article INTEGER PRIMARY KEY, left INTEGER NOT NULL, cents INTEGER NOT NULL);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, article INTEGER NOT NULL, quantity INTEGER NOT NULL, cents INTEGER NOT NULL);
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
    INSERT INTO stock SELECT i, 1000000000, 100 + i % 900 FROM n";

#[derive(Debug)]
struct Shop {
    writer: Mutex<SqliteConnection>,
    readers: SqlitePool,
}

#[derive(Debug, Deserialize)]
struct Order {
    article: i64,
    quantity: i64,
}

#[derive(Debug, Serialize, sqlx::FromRow)]
struct Taken {
    id: i64,
    article: i64,
    quantity: i64,
    cents: i64,
}

type Refusal = (StatusCode, String);

#[andweorc::main] // (1) in the place of #[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::registry().with(andweorc::layer()).init(); // (2) spans are points and targets
    let mut args = std::env::args().skip(1);
    let (Some(port), Some(database)) = (args.next(), args.next()) else {
        return Err("usage: orders PORT DATABASE".into());
    };
    let shop = Arc::new(open(&database).await?);
    let service = Router::new()
        .route("/orders", post(take))
        .route("/orders/{id}", get(show))
        .with_state(shop);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?)).await?;
    andweorc::axum::serve(listener, service).await?; // (3) sees inside of axum's tasks
    Ok(())
}

/// Opens the database, which must not exist yet.
async fn open(path: &str) -> sqlx::Result<Shop> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Off)
        .disable_statement_logging();
    let mut writer = options.connect().await?;
    sqlx::raw_sql(SCHEMA).execute(&mut writer).await?;
    let readers = SqlitePool::connect_with(options.read_only(true)).await?;
    Ok(Shop { writer: Mutex::new(writer), readers })
}

#[instrument(skip_all)]
async fn take(
    State(shop): State<Arc<Shop>>,
    Json(order): Json<Order>,
) -> Result<Json<Taken>, Refusal> {
    let taken = book(&shop, &order).await.map_err(refusal)?;
    info_span!("receipt").in_scope(|| RECEIPT.run());
    Ok(Json(taken))
}

/// Takes the articles from the stock, prices and books the order: a transaction.
async fn book(shop: &Shop, order: &Order) -> sqlx::Result<Taken> {
    let mut writer = shop.writer.lock().await;
    let mut transaction = writer.begin().await?;
    let each: i64 =
        sqlx::query_scalar("UPDATE stock SET left = left - ?1 WHERE article = ?2 RETURNING cents")
            .bind(order.quantity)
            .bind(order.article)
            .fetch_one(&mut *transaction)
            .await?;
    let cents = info_span!("price").in_scope(|| {
        PRICE.run();
        each * order.quantity
    });
    let taken = sqlx::query_as(
        "INSERT INTO orders (article, quantity, cents) VALUES (?1, ?2, ?3) RETURNING *",
    )
    .bind(order.article)
    .bind(order.quantity)
    .bind(cents)
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(taken)
}

#[instrument(skip_all)]
async fn show(State(shop): State<Arc<Shop>>, Path(id): Path<i64>) -> Result<Json<Taken>, Refusal> {
    sqlx::query_as("SELECT * FROM orders WHERE id = ?1")
        .bind(id)
        .fetch_one(&shop.readers)
        .await
        .map(Json)
        .map_err(refusal)
}

fn refusal(error: sqlx::Error) -> Refusal {
    match error {
        sqlx::Error::RowNotFound => (StatusCode::NOT_FOUND, "there is no such thing".to_owned()),
        error => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

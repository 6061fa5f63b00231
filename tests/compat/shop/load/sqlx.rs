//! Clients that are tasks and ask SQLite before each order.

use crate::shop::{CLIENTS, Shop};
use sqlx::sqlite::SqlitePoolOptions;
use std::sync::Arc;

pub async fn start(shop: &Arc<Shop>) {
    let pool = SqlitePoolOptions::new().max_connections(CLIENTS as u32);
    let pool = pool.connect("sqlite::memory:").await.expect("a database in memory");
    for _ in 0..CLIENTS {
        let (shop, pool) = (shop.clone(), pool.clone());
        andweorc::spawn(async move {
            loop {
                let price: i64 =
                    sqlx::query_scalar("select 40 + 2").fetch_one(&pool).await.expect("a row");
                assert_eq!(price, 42);
                shop.order().await;
            }
        });
    }
}

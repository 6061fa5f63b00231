//! Clients that are tasks of tokio, and leave `other` to tasks of smol.

use crate::shop::{self, CLIENTS, Shop};
use std::sync::Arc;

pub async fn start(shop: &Arc<Shop>) {
    for _ in 0..CLIENTS {
        let shop = shop.clone();
        andweorc::spawn(async move {
            loop {
                smol::spawn(async { shop::other() }).await;
                shop.take().await;
                shop.done();
            }
        });
    }
}

//! Clients that are tasks of the service.

use crate::shop::{CLIENTS, Shop};
use std::sync::Arc;

pub async fn start(shop: &Arc<Shop>) {
    for _ in 0..CLIENTS {
        let shop = shop.clone();
        andweorc::spawn(async move {
            loop {
                shop.order().await;
            }
        });
    }
}

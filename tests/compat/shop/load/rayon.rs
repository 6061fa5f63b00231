//! Clients that are tasks, and leave `other` to rayon's threads.

use crate::shop::{self, CLIENTS, Shop};
use std::sync::Arc;
use tokio::sync::oneshot;

pub async fn start(shop: &Arc<Shop>) {
    for _ in 0..CLIENTS {
        let shop = shop.clone();
        andweorc::spawn(async move {
            loop {
                let (done, wait) = oneshot::channel();
                // Nobody waits for it any more where the runtime ends.
                rayon::spawn(move || done.send(shop::other()).map_or((), drop));
                wait.await.expect("it is done");
                shop.take().await;
                shop.done();
            }
        });
    }
}

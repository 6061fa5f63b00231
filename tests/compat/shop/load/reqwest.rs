//! Requests by reqwest, from tasks of the same program, to as small a server as can be.

use crate::http::BODY;
use crate::shop::{CLIENTS, Shop};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn serve(shop: Arc<Shop>, mut client: TcpStream) {
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len());
    let mut request = Vec::new();
    while client.read_buf(&mut request).await.is_ok_and(|length| length > 0) {
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            shop.order().await;
            if client.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

pub async fn start(shop: &Arc<Shop>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/order", listener.local_addr().expect("it is bound"));
    let shop = shop.clone();
    andweorc::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            andweorc::spawn(serve(shop.clone(), client));
        }
    });
    let client = reqwest::Client::builder().tcp_nodelay(true).build().expect("a client");
    for _ in 0..CLIENTS {
        let (client, url) = (client.clone(), url.clone());
        andweorc::spawn(async move {
            loop {
                // There is none where the runtime ends, and the server before its clients.
                let Ok(answer) = client.get(&url).send().await else { return };
                let Ok(body) = answer.text().await else { return };
                assert_eq!(body, BODY);
            }
        });
    }
}

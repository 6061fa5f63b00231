//! Orders by QUIC, from tasks of the same program: a connection for each client, a stream for each
//! order.

use crate::shop::{CLIENTS, Shop};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Connection, Endpoint, SendStream, ServerConfig};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// More than an order or its answer has.
const MOST: usize = 64;

/// Sends all that a stream carries. Whether it came is told by the answer.
async fn send(stream: &mut SendStream, all: &[u8]) {
    if stream.write_all(all).await.is_ok() {
        stream.finish().expect("it is not finished yet");
    }
}

async fn serve(shop: Arc<Shop>, connection: Connection) {
    while let Ok((mut answer, mut order)) = connection.accept_bi().await {
        let shop = shop.clone();
        andweorc::spawn(async move {
            if order.read_to_end(MOST).await.is_ok() {
                shop.order().await;
                send(&mut answer, b"done").await;
            }
        });
    }
}

pub async fn start(shop: &Arc<Shop>) {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["shop".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let certificate = cert.der().clone();
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into());
    let server = Endpoint::server(config.expect("a key of its kind"), here).expect("a free port");
    let address = server.local_addr().expect("it is bound");
    let shop = shop.clone();
    andweorc::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let connection = incoming.await.expect("a connection");
            andweorc::spawn(serve(shop.clone(), connection));
        }
    });
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a certificate");
    let mut client = Endpoint::client(here).expect("a free port");
    client.set_default_client_config(config);
    for _ in 0..CLIENTS {
        let connecting = client.connect(address, "shop").expect("an address");
        andweorc::spawn(async move {
            let connection = connecting.await.expect("a connection");
            while let Ok((mut order, mut answer)) = connection.open_bi().await {
                send(&mut order, b"order").await;
                // There is none where the runtime ends, and the server before its clients.
                let Ok(answer) = answer.read_to_end(MOST).await else { return };
                assert_eq!(answer, b"done");
            }
        });
    }
}

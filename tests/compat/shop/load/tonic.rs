//! Calls by gRPC, from tasks of the same program. The service is written by hand, so that nothing
//! needs to be generated.

use crate::shop::{CLIENTS, Shop};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[derive(Clone)]
struct Orders(Arc<Shop>);

impl NamedService for Orders {
    const NAME: &'static str = "shop.Orders";
}

impl UnaryService<()> for Orders {
    type Response = ();
    type Future = Later<Result<Response<()>, Status>>;

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let shop = self.0.clone();
        Box::pin(async move {
            shop.order().await;
            Ok(Response::new(()))
        })
    }
}

impl Service<http::Request<Body>> for Orders {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Later<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let orders = self.clone();
        let codec = ProstCodec::<(), ()>::default();
        Box::pin(async move { Ok(Grpc::new(codec).unary(orders, request).await) })
    }
}

pub async fn start(shop: &Arc<Shop>) {
    let address = "127.0.0.1:0".parse().expect("an address");
    let incoming = TcpIncoming::bind(address).expect("a free port").with_nodelay(Some(true));
    let server = format!("http://{}", incoming.local_addr().expect("it is bound"));
    let serve = Server::builder()
        .layer(andweorc::tower::layer("request"))
        .add_service(Orders(shop.clone()))
        .serve_with_incoming(incoming);
    andweorc::spawn(serve);
    for _ in 0..CLIENTS {
        let endpoint = Endpoint::from_shared(server.clone()).expect("an address");
        let mut client = tonic::client::Grpc::new(endpoint.connect_lazy());
        andweorc::spawn(async move {
            loop {
                // Neither holds where the runtime ends, and the server before its clients.
                if client.ready().await.is_err() {
                    return;
                }
                let path = http::uri::PathAndQuery::from_static("/shop.Orders/Order");
                let codec = ProstCodec::<(), ()>::default();
                if client.unary(Request::new(()), path, codec).await.is_err() {
                    return;
                }
            }
        });
    }
}

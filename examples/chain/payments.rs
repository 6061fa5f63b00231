//! The payments: the gRPC method `chain.Payments/Pay`, from cents to cents, checks a payment and
//! waits for the bank. Without generated code, so that the example needs no `protoc`.

use crate::work::{Cost, hash};
use crate::{Result, costs};
use hyper::{Request, Response};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tonic::Status;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_prost::ProstCodec;
use tower_service::Service;
use tracing::{Instrument, info_span};

/// Path of the method.
pub(crate) const PAY: &str = "/chain.Payments/Pay";

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[derive(Clone)]
struct Payments(Arc<Costs>);

struct Costs {
    check: Cost,
    bank: Cost,
}

/// Serves until it is killed.
pub(crate) async fn serve(listener: TcpListener) -> Result<()> {
    let pace = costs::pace()?;
    let costs = Costs { check: costs::work("check", 150, pace)?, bank: costs::wait("bank", 1500)? };
    Server::builder()
        .layer(andweorc::tower::layer("pay"))
        .layer(andweorc::remote::server()) // (4) takes in the stamps of requests
        .add_service(Payments(Arc::new(costs)))
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
        .await?;
    Ok(())
}

#[tracing::instrument(skip_all)]
async fn pay(costs: Arc<Costs>, cents: u32) -> u32 {
    info_span!("check").in_scope(|| hash(costs.check.now()));
    let bank = Duration::from_micros(costs.bank.now().into());
    tokio::time::sleep(bank).instrument(info_span!("bank")).await;
    cents
}

impl UnaryService<u32> for Payments {
    type Response = u32;
    type Future = Boxed<std::result::Result<tonic::Response<u32>, Status>>;

    fn call(&mut self, request: tonic::Request<u32>) -> Self::Future {
        let costs = self.0.clone();
        Box::pin(async move { Ok(tonic::Response::new(pay(costs, request.into_inner()).await)) })
    }
}

impl NamedService for Payments {
    const NAME: &'static str = "chain.Payments";
}

impl Service<Request<Body>> for Payments {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Boxed<std::result::Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let payments = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                PAY => {
                    let codec = ProstCodec::<u32, u32>::default();
                    Grpc::new(codec).unary(payments, request).await
                }
                _ => Status::unimplemented("there is only Pay").into_http(),
            })
        })
    }
}

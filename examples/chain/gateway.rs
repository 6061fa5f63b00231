//! The gateway: `POST /checkout` asks the inventory, then the payments, and renders a receipt.

use crate::figures::Figures;
use crate::meter::Meter;
use crate::work::{Cost, hash};
use crate::{Result, costs};
use andweorc::remote;
use axum::extract::State;
use axum::http::uri::PathAndQuery;
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use std::env;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;
use tower_layer::Layer;
use tower_service::Service;
use tracing::info_span;

/// The gateway, with its clients.
#[derive(Clone)]
struct Gateway {
    costs: Arc<Costs>,
    meter: Arc<Meter>,
    inventory: remote::ClientService<Client<HttpConnector, Empty<Bytes>>>,
    inventory_at: String,
    payments: Grpc<remote::ClientService<Channel>>,
}

struct Costs {
    quote: Cost,
    render: Cost,
}

#[derive(Deserialize)]
struct Order {
    article: u32,
    quantity: u32,
}

/// Serves until it is killed.
pub(crate) async fn serve(listener: TcpListener) -> Result<()> {
    let pace = costs::pace()?;
    let costs = Costs {
        quote: costs::work("quote", 100, pace)?,
        render: costs::work("render", 150, pace)?,
    };
    let inventory_at = address("CHAIN_INVENTORY")?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let inventory = Client::builder(TokioExecutor::new()).build(connector);
    let payments = format!("http://{}", address("CHAIN_PAYMENTS")?);
    let payments = Endpoint::from_shared(payments)?.connect_lazy();
    let gateway = Gateway {
        costs: Arc::new(costs),
        meter: Arc::new(Meter::new()),
        inventory: remote::client([&inventory_at]).layer(inventory), // (4) stamps requests
        inventory_at,
        payments: Grpc::new(remote::client_of("payments").layer(payments)), // (4) stamps calls
    };
    let service = Router::new()
        .route("/checkout", post(checkout))
        .route("/figures", get(figures))
        .with_state(gateway);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(andweorc::axum::serve(listener, service).await?)
}

fn address(variable: &str) -> Result<String> {
    env::var(variable).map_err(|_| format!("{variable} is to be the address of a service").into())
}

#[tracing::instrument(skip_all)]
async fn checkout(
    State(mut gateway): State<Gateway>,
    Json(order): Json<Order>,
) -> std::result::Result<String, StatusCode> {
    let start = Instant::now();
    info_span!("quote").in_scope(|| hash(gateway.costs.quote.now()));
    gateway.reserve(&order).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    let paid = gateway.pay(order.quantity * 100).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    info_span!("render").in_scope(|| hash(gateway.costs.render.now()));
    gateway.meter.done(start);
    Ok(format!("paid {paid}\n"))
}

async fn figures(State(gateway): State<Gateway>) -> Json<Figures> {
    let taken = gateway.meter.take();
    let us = |quantile| taken.value_at_quantile(quantile);
    Json(Figures { count: taken.len(), p50_us: us(0.5), p99_us: us(0.99) })
}

impl Gateway {
    /// Has the inventory take the order from the stock.
    async fn reserve(&mut self, order: &Order) -> Result<()> {
        let uri = format!("http://{}/reserve/{}", self.inventory_at, order.article);
        let request = Request::post(uri.parse::<Uri>()?).body(Empty::new())?;
        let response = self.inventory.call(request).await?;
        if !response.status().is_success() {
            return Err("the inventory refuses".into());
        }
        Ok(())
    }

    /// Has the payments take the money. Returns what was paid.
    async fn pay(&mut self, cents: u32) -> Result<u32> {
        self.payments.ready().await?;
        let path = PathAndQuery::from_static(crate::payments::PAY);
        let request = tonic::Request::new(cents);
        let paid = self.payments.unary(request, path, ProstCodec::<u32, u32>::default()).await?;
        Ok(paid.into_inner())
    }
}

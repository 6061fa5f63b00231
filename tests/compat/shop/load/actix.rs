//! Requests to actix-web, whose workers are threads with a runtime each.

use crate::http::{self, BODY};
use crate::shop::Shop;
use actix_web::{App, HttpServer, web};
use std::sync::Arc;

async fn order(shop: web::Data<Shop>) -> &'static str {
    shop.order().await;
    BODY
}

pub async fn start(shop: &Arc<Shop>) {
    let shop = web::Data::from(shop.clone());
    let app = move || App::new().app_data(shop.clone()).route("/order", web::get().to(order));
    let server = HttpServer::new(app).workers(2).bind(("127.0.0.1", 0)).expect("a free port");
    let address = server.addrs()[0];
    andweorc::spawn(server.run());
    http::clients(address);
}

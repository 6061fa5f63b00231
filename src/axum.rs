//! `axum::serve`, whose connections are tasks that nobody can wrap: what runs inside of them, and
//! when their clients come, on stable tokio too.

use ::axum::Router;
use ::axum::extract::{MatchedPath, Request};
use ::axum::serve::{Listener, Serve};
use andweorc_tokio::io::Outside;
use andweorc_tokio::tower;
use std::borrow::Cow;
use std::future::Future;
use std::io;

/// Serves as `axum::serve`, and profiles each request as a target of its route, such as
/// `/quote/{article}`; `other` where no route matches. Each client's time is its own, as
/// [`listener`] has it. With the feature `remote`, delays of other services come with their
/// requests.
///
/// ```no_run
/// # async fn serve() -> std::io::Result<()> {
/// let service = axum::Router::new().route("/", axum::routing::get(async || "hello"));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
/// andweorc::axum::serve(listener, service).await
/// # }
/// ```
///
/// To name requests otherwise, or to serve something else than a router (one with
/// `into_make_service_with_connect_info`, say), call `axum::serve` with a [`listener`] of your own
/// and a [layer](crate::tower).
pub fn serve<L: Listener>(listener: L, router: Router) -> Serve<Clients<L>, Router, Router> {
    #[cfg(feature = "remote")]
    let router = router.layer(andweorc_tokio::remote::server());
    let layer = tower::layer_by(route);
    ::axum::serve(self::listener(listener), router.layer(layer))
}

/// The route of a request.
fn route(request: &Request) -> Cow<'static, str> {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or(Cow::Borrowed("other"), |route| Cow::Owned(route.as_str().to_owned()))
}

/// A listener whose clients take their own time between two requests, in experiments too: see
/// [`Outside`]. Without it predictions for a service under closed load were 1 to 5 points too high.
///
/// For `ConnectInfo` call `tap_io` on it, with any closure: axum gives out the addresses of its own
/// listeners' clients only.
///
/// ```no_run
/// use axum::{Router, extract::ConnectInfo, routing::get, serve::ListenerExt};
/// use std::net::SocketAddr;
/// # async fn serve() -> std::io::Result<()> {
/// let hello = async |ConnectInfo(client): ConnectInfo<SocketAddr>| format!("hello, {client}");
/// let service = Router::new().route("/", get(hello)).layer(andweorc::tower::layer("hello"));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
/// let listener = andweorc::axum::listener(listener).tap_io(|_| ());
/// axum::serve(listener, service.into_make_service_with_connect_info::<SocketAddr>()).await
/// # }
/// ```
pub fn listener<L: Listener>(listener: L) -> Clients<L> {
    Clients(listener)
}

/// See [`listener`].
#[derive(Debug)]
pub struct Clients<L>(L);

impl<L: Listener> Listener for Clients<L> {
    type Io = Outside<L::Io>;
    type Addr = L::Addr;

    fn accept(&mut self) -> impl Future<Output = (Self::Io, Self::Addr)> + Send {
        let accept = self.0.accept();
        async {
            let (stream, address) = accept.await;
            (Outside::new(stream), address)
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

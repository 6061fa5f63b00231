//! The layer of a client that calls other services, and its parts for clients that are no tower
//! services.

use super::HEADER;
use super::stamp::{Received, Stamp, received, received_outside, stamp};
use crate::profiled::{Kind, Profiled};
use crate::wait_hint::InProcess;
use andweorc_core::hooks::enabled;
use andweorc_core::hooks::time::Nanos;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Request, Response, Uri, header};
use pin_project_lite::pin_project;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use tower_layer::Layer;
use tower_service::Service;

/// Stamps requests to these hosts, and takes in the stamps of their responses. Each host is as in a
/// URL, `inventory:8080`, or `inventory` for all of its ports. Requests to others are left as they
/// are.
///
/// It belongs inside of layers that retry or hedge, so that each attempt is stamped. The host is
/// that of the request's URI, or of its header `Host`. Each host is a task and a wait of its own,
/// which can be sped up as all others.
///
/// ```ignore
/// let client = Client::builder(TokioExecutor::new()).build_http();    // hyper-util's
/// let client = andweorc::remote::client(["inventory:8080"]).layer(client);
/// ```
///
/// # Panics
///
/// Where one of `hosts` is no host with or without a port.
pub fn client<H: AsRef<str>>(hosts: impl IntoIterator<Item = H>) -> ClientLayer {
    let hosts = hosts.into_iter().map(|host| Host::parse(host.as_ref())).collect();
    ClientLayer { to: To::Listed(hosts) }
}

/// Stamps all requests, and takes in the stamps of their responses: for a client that only ever
/// calls one service, such as a channel of tonic, whose requests do not say where they go. `name`
/// is the name of its task and its wait.
///
/// ```ignore
/// let channel = andweorc::remote::client_of("payments").layer(channel);
/// let client = PaymentsClient::new(channel);
/// ```
pub fn client_of(name: impl Into<Cow<'static, str>>) -> ClientLayer {
    ClientLayer { to: To::One(Arc::new(Named::new(name.into()))) }
}

/// The layer. See [`client`] and [`client_of`].
#[derive(Clone, Debug)]
#[must_use = "a layer does something for the client that it is added to"]
pub struct ClientLayer {
    to: To,
}

/// Where stamps may go.
#[derive(Clone, Debug)]
enum To {
    Listed(Arc<[Host]>),
    One(Arc<Named>),
}

/// A host that takes part.
#[derive(Debug)]
struct Host {
    host: String,
    /// All of its ports without one.
    port: Option<u16>,
    name: Named,
}

/// A name that is made one of a target when it is first needed.
#[derive(Debug)]
struct Named {
    name: Cow<'static, str>,
    known: OnceLock<&'static str>,
}

impl Named {
    fn new(name: Cow<'static, str>) -> Named {
        Named { name, known: OnceLock::new() }
    }

    /// The target's name, which lives as long as the process.
    fn get(&self) -> &'static str {
        let known = || Kind::Name(self.name.clone()).targets().task.name();
        self.known.get_or_init(known)
    }
}

impl Host {
    fn parse(text: &str) -> Host {
        let Ok(parsed) = text.parse::<Authority>() else {
            panic!("`{text}` is no host, as `inventory` or `inventory:8080`");
        };
        let port = parsed.port_u16();
        let is_whole = port.is_some() || parsed.as_str() == parsed.host();
        assert!(is_whole, "`{text}` is no host with a port, as `inventory:8080`");
        let name = Named::new(Cow::Owned(text.to_owned()));
        Host { host: parsed.host().to_owned(), port, name }
    }

    fn is(&self, host: &str, port: Option<u16>) -> bool {
        self.host.eq_ignore_ascii_case(host) && (self.port.is_none() || self.port == port)
    }
}

impl ClientLayer {
    /// Begins a call to `url`, for clients that are no tower services. [`Call::stamp`] and
    /// [`Call::answered`] are the rest of it. With reqwest:
    ///
    /// ```ignore
    /// let mut call = layer.call(request.url().as_str());
    /// call.stamp(request.headers_mut());
    /// call.answered(client.execute(request), reqwest::Response::headers).await
    /// ```
    ///
    /// A client that follows redirects by itself, as reqwest does, takes the header along to where
    /// it is redirected.
    pub fn call(&self, url: &str) -> Call {
        let uri = || url.parse::<Uri>().ok();
        self.begin(|to| to.name_of(uri().as_ref()?, None))
    }

    /// Begins a call, to the participant that is asked for only while andweorc is on.
    #[inline]
    fn begin(&self, name: impl FnOnce(&To) -> Option<&'static str>) -> Call {
        let name = if enabled() { name(&self.to) } else { None };
        Call { name, taken: None }
    }
}

impl To {
    /// The name of the participant that a request to `uri` goes to, if it does go to one.
    fn name_of(&self, uri: &Uri, headers: Option<&HeaderMap>) -> Option<&'static str> {
        let hosts = match self {
            To::One(name) => return Some(name.get()),
            To::Listed(hosts) => hosts,
        };
        let of_header = || headers?.get(header::HOST)?.to_str().ok()?.parse::<Authority>().ok();
        let by_header;
        let authority = match uri.authority() {
            Some(authority) => authority,
            None => {
                by_header = of_header()?;
                &by_header
            }
        };
        let port = authority.port_u16().or(match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => Some(443),
            Some(scheme) if *scheme != Scheme::HTTP => None,
            _ => Some(80),
        });
        let host = hosts.iter().find(|host| host.is(authority.host(), port))?;
        Some(host.name.get())
    }
}

/// A call of another service. See [`ClientLayer::call`].
#[derive(Debug)]
#[must_use = "the wait for its answer is to be `answered`"]
pub struct Call {
    /// Name of the participant that is called, if one is and andweorc is on.
    name: Option<&'static str>,
    /// The delay that its sender had taken, if it has a stamp.
    taken: Option<Nanos>,
}

impl Call {
    /// Adds the header to a request to a host that takes part, in an experiment. To be called just
    /// before the request is sent: what the sender is delayed by from then on, it has not seen.
    #[inline]
    pub fn stamp(&mut self, headers: &mut HeaderMap) {
        if self.name.is_some() {
            // A request that is passed on may have one that was meant for its sender.
            let stamp = stamp();
            self.taken = stamp.map(Stamp::taken);
            match stamp {
                Some(stamp) => headers.insert(HEADER, stamp.to_header()),
                None => headers.remove(HEADER),
            };
        }
    }

    /// Waits for the response, whose headers are what `headers` returns, and takes its stamp in.
    pub fn answered<F, T, E, H>(self, response: F, headers: H) -> Answered<F, T, E, H>
    where
        F: Future<Output = Result<T, E>>,
        H: Fn(&T) -> &HeaderMap,
    {
        let either = match self.name {
            None => Either::Plain { future: response },
            Some(name) => {
                let future = match self.taken {
                    Some(taken) => Wait::Stamped { future: InProcess::new(response), taken },
                    None => Wait::Plain { future: response },
                };
                let taken_in = TakenIn { future, headers, answer: None };
                let kind = Kind::Name(Cow::Borrowed(name));
                Either::Profiled { future: Profiled::new(taken_in, kind) }
            }
        };
        Answered { either }
    }
}

impl<S> Layer<S> for ClientLayer {
    type Service = ClientService<S>;

    fn layer(&self, inner: S) -> ClientService<S> {
        ClientService { inner, layer: self.clone() }
    }
}

/// A client that stamps requests. See [`client`].
#[derive(Clone, Debug)]
pub struct ClientService<S> {
    inner: S,
    layer: ClientLayer,
}

impl<S, B, C> Service<Request<B>> for ClientService<S>
where
    S: Service<Request<B>, Response = Response<C>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answered<S::Future, S::Response, S::Error, fn(&S::Response) -> &HeaderMap>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let to = |to: &To| to.name_of(request.uri(), Some(request.headers()));
        let mut call = self.layer.begin(to);
        call.stamp(request.headers_mut());
        call.answered(self.inner.call(request), Response::headers)
    }
}

pin_project! {
    /// The future of one call.
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Answered<F, T, E, H> {
        #[pin]
        either: Either<F, T, E, H>,
    }
}

pin_project! {
    /// Profiled where it waits for a participant.
    #[project = EitherProjected]
    enum Either<F, T, E, H> {
        Plain { #[pin] future: F },
        Profiled { #[pin] future: Profiled<TakenIn<F, T, E, H>> },
    }
}

pin_project! {
    /// Wait for a response of a participant: it is not held at the socket where its header may tell
    /// when it is due.
    #[project = WaitProjected]
    enum Wait<F> {
        Plain { #[pin] future: F },
        Stamped { #[pin] future: InProcess<F>, taken: Nanos },
    }
}

pin_project! {
    /// Response of a participant, which is taken in before it is passed on.
    struct TakenIn<F, T, E, H> {
        #[pin]
        future: Wait<F>,
        headers: H,
        // Once it has come, until it is due.
        answer: Option<(Result<T, E>, Received)>,
    }
}

impl<F, T, E, H> Future for TakenIn<F, T, E, H>
where
    F: Future<Output = Result<T, E>>,
    H: Fn(&T) -> &HeaderMap,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let (answer, mut received) = match this.answer.take() {
            Some(came) => came,
            None => match this.future.project() {
                // The answer was held as all that comes from outside.
                WaitProjected::Plain { future } => return future.poll(cx),
                WaitProjected::Stamped { future, taken } => {
                    let answer = ready!(future.poll(cx));
                    let stamp = answer.as_ref().ok().and_then(|it| Stamp::of((this.headers)(it)));
                    // Without one of this experiment it was of the world outside.
                    let stamp = stamp.filter(|stamp| stamp.is_current());
                    let outside = || received_outside(*taken);
                    (answer, stamp.map_or_else(outside, |stamp| received(Some(stamp))))
                }
            },
        };
        if Pin::new(&mut received).poll(cx).is_pending() {
            *this.answer = Some((answer, received));
            return Poll::Pending;
        }
        Poll::Ready(answer)
    }
}

impl<F, T, E, H> Future for Answered<F, T, E, H>
where
    F: Future<Output = Result<T, E>>,
    H: Fn(&T) -> &HeaderMap,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().either.project() {
            EitherProjected::Plain { future } => future.poll(cx),
            EitherProjected::Profiled { future } => future.poll(cx),
        }
    }
}

impl<F, T, E, H> fmt::Debug for Answered<F, T, E, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answered").finish_non_exhaustive()
    }
}

//! Delays travel with requests and responses.
#![cfg(feature = "remote")]

use andweorc_core::clock;
use andweorc_core::engine::Rules;
use andweorc_core::target::target;
use andweorc_core::thread::{self, ledger};
use andweorc_core::time::{Nanos, Real, Speedup, Virtual};
use andweorc_profile::TargetKind;
use andweorc_tokio::Profile;
use andweorc_tokio::io::Outside;
use andweorc_tokio::remote::{self, HEADER, Stamp};
use andweorc_tokio::runtime::BuilderExt;
use andweorc_tokio::tower::layer;
use http::{HeaderMap, Request, Response};
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tests_support::wakes::Watched;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, duplex};
use tower_layer::Layer;
use tower_service::Service;

/// The number of the experiment.
const NUMBER: u32 = 7;

/// The ledger is that of the process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    thread::enable();
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An experiment of several services in which nobody here is in the target, until it is dropped.
struct Experiment(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Experiment {
    fn begin() -> Experiment {
        let alone = alone();
        ledger().number_next(Some(NUMBER));
        // It has lasted for a second: no delay in it is longer than that.
        let began = Real(clock::now().0 - 1_000_000_000);
        ledger().begin(Speedup::new(0.5).expect("it is a fraction"), began);
        Experiment(alone)
    }
}

impl Drop for Experiment {
    fn drop(&mut self) {
        ledger().end(clock::now());
    }
}

/// D, as of the begin of the experiment.
fn global_delay() -> Nanos {
    ledger().global_delay(clock::now()) - ledger().forgiven_delay()
}

/// Raises D by 5 ms, as the message of another service does.
fn delay() {
    let more = global_delay() + Nanos::from_millis(5);
    let stamp = andweorc_core::hooks::remote::Stamp { experiment: NUMBER, taken: more };
    assert_eq!(andweorc_core::hooks::remote::received(Some(stamp), clock::now()), None);
    assert_eq!(global_delay(), more);
}

fn stamp(delay: Nanos) -> Stamp {
    Stamp::new(NUMBER, delay.0 as u64).unwrap()
}

/// Due, in virtual time, of what comes now from somebody who had taken this delay.
fn due(taken: Nanos) -> Virtual {
    clock::now().less(ledger().forgiven_delay() + taken)
}

#[track_caller]
fn assert_is_due(due: Virtual) {
    let early = ledger().time_until_due(due, clock::now());
    assert!(early <= Rules::SHIPPED.min_hold, "{early:?} too early");
}

/// Runs a future in a task of a runtime that is profiled.
fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().enable_profiling().build().unwrap();
    runtime.block_on(runtime.spawn(future)).unwrap()
}

/// A service, with what it does and what it was asked.
#[derive(Clone)]
struct Fake<F> {
    answer: F,
    asked: Arc<Mutex<Vec<HeaderMap>>>,
}

impl<F> Fake<F> {
    fn new(answer: F) -> Fake<F> {
        Fake { answer, asked: Arc::default() }
    }

    /// The headers of the requests since the last call.
    fn asked(&self) -> Vec<HeaderMap> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl<F, A> Service<Request<()>> for Fake<F>
where
    F: Fn() -> A,
    A: Future<Output = Result<Response<()>, Infallible>>,
{
    type Response = Response<()>;
    type Error = Infallible;
    type Future = A;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> A {
        self.asked.lock().unwrap().push(request.into_parts().0.headers);
        (self.answer)()
    }
}

/// A response that is there at once, with this header.
fn response(header: Option<Stamp>) -> Ready<Result<Response<()>, Infallible>> {
    let mut response = Response::new(());
    if let Some(stamp) = header {
        response.headers_mut().insert(HEADER, stamp.to_header());
    }
    ready(Ok(response))
}

fn request(url: &str, header: Option<&[u8]>) -> Request<()> {
    let mut request = Request::get(url);
    if let Some(value) = header {
        request = request.header(HEADER, value);
    }
    request.body(()).unwrap()
}

/// A request to this service with such a header.
fn request_from(header: Stamp) -> Request<()> {
    request("/", Some(header.to_header().as_bytes()))
}

#[test]
fn only_requests_to_hosts_that_are_listed_are_stamped() {
    let _experiment = Experiment::begin();
    let fake = Fake::new(|| response(None));
    let asked = fake.clone();
    let hosts = ["inventory:8080", "stock", "web:80", "safe:443", "[::1]:9"];
    let mut client = remote::client(hosts).layer(fake);
    run(async move {
        for (url, is_stamped) in [
            ("http://inventory:8080/lookup", true),
            ("http://INVENTORY:8080/", true),
            ("http://me:secret@inventory:8080/", true),
            ("http://stock/", true),
            ("https://stock:1234/", true),
            ("http://web/", true),
            ("https://safe/", true),
            ("http://[::1]:9/", true),
            ("http://inventory/", false),
            ("http://inventory:8081/", false),
            ("http://inventory:8080.example.com/", false),
            ("http://inventory.example.com:8080/", false),
            ("http://example.com/inventory:8080", false),
            ("http://inventory:8080@example.com/", false),
            ("https://web/", false),
            ("http://safe/", false),
            ("/lookup", false),
        ] {
            let Ok(request) = Request::get(url).body(()) else {
                assert!(!is_stamped, "{url} is no URL");
                continue;
            };
            client.call(request).await.unwrap();
            let headers = asked.asked().pop().unwrap();
            assert_eq!(headers.contains_key(HEADER), is_stamped, "{url}");
        }
        for (host, is_stamped) in [("stock:1", true), ("example.com", false), ("\u{7f}", false)] {
            let request = Request::get("/").header(http::header::HOST, host.as_bytes());
            let Ok(request) = request.body(()) else { continue };
            client.call(request).await.unwrap();
            assert_eq!(asked.asked()[0].contains_key(HEADER), is_stamped, "{host}");
        }
    });
}

#[test]
fn nothing_is_stamped_outside_of_an_experiment_of_several_services() {
    let alone = alone();
    let fake = Fake::new(|| response(None));
    let ask = || {
        let (asked, mut client) = (fake.clone(), remote::client_of("stock").layer(fake.clone()));
        let mut service = remote::server().layer(Fake::new(|| response(None)));
        run(async move {
            // What another caller stamped goes no further.
            client.call(request_from(stamp(Nanos(1)))).await.unwrap();
            let response = service.call(request_from(stamp(Nanos(1)))).await.unwrap();
            !asked.asked()[0].contains_key(HEADER) && !response.headers().contains_key(HEADER)
        })
    };
    assert!(ask());
    // One of this process alone.
    ledger().begin(Speedup::new(0.5).unwrap(), clock::now());
    let is_unstamped = ask();
    ledger().end(clock::now());
    assert!(is_unstamped);
    drop(alone);
}

#[test]
fn stamp_is_the_delay_that_the_task_has_taken() {
    let _experiment = Experiment::begin();
    delay();
    let fake = Fake::new(|| response(None));
    let (asked, mut client) = (fake.clone(), remote::client_of("stock").layer(fake));
    run(async move {
        client.call(request("/", None)).await.unwrap();
    }
    .profiled("caller"));
    let value = asked.asked()[0][HEADER].clone();
    assert_eq!(Stamp::from_header(value.as_bytes()), Some(stamp(global_delay())));
}

#[test]
fn request_of_a_sender_that_was_delayed_more_delays_this_process_by_as_much() {
    let _experiment = Experiment::begin();
    let sent = stamp(Nanos::from_millis(20));
    let service = remote::server().layer(Fake::new(|| response(None)));
    let mut service = layer("remote: ahead").layer(service);
    let answer = run(async move { service.call(request_from(sent)).await.unwrap() });
    assert_eq!(global_delay(), Nanos::from_millis(20));
    // Whoever answers has taken it too.
    let answered = Stamp::from_header(answer.headers()[HEADER].as_bytes()).unwrap();
    assert_eq!(answered.experiment(), NUMBER);
    assert!(answered.delay_ns() >= sent.delay_ns(), "{answered:?}");
}

#[test]
fn request_of_a_sender_that_was_delayed_less_is_held_until_it_is_due() {
    let _experiment = Experiment::begin();
    delay();
    let expected = Arc::new(Mutex::new(None));
    let expects = expected.clone();
    let fake = Fake::new(move || {
        let expected = expected.clone();
        async move {
            assert_is_due(expected.lock().unwrap().expect("it has been sent"));
            response(None).await
        }
    });
    let mut service = layer("remote: behind").layer(remote::server().layer(fake));
    run(async move {
        *expects.lock().unwrap() = Some(due(Nanos::ZERO));
        service.call(request_from(stamp(Nanos::ZERO))).await.unwrap()
    });
}

#[test]
fn requests_without_a_valid_stamp_are_of_the_world_outside() {
    let _experiment = Experiment::begin();
    let mut service = remote::server().layer(Fake::new(|| response(None)));
    run(async move {
        let other = Stamp::new(NUMBER + 1, 20_000_000).unwrap().to_header();
        let malformed =
            [&b""[..], b"1", b"2;7;20000000", b"1;7;-1", b"1;7;20000000,1;7;1", b"\xff"];
        for value in malformed.into_iter().map(Some).chain([None]) {
            let answer = service.call(request("/", value)).await.unwrap();
            assert!(!answer.headers().contains_key(HEADER), "{value:?}");
        }
        // Of the experiment before: who sent it takes part, and is told where this one is.
        let answer = service.call(request("/", Some(other.as_bytes()))).await.unwrap();
        assert!(answer.headers().contains_key(HEADER));
    });
    assert_eq!(global_delay(), Nanos::ZERO);
}

/// Calls a service that answers with this header after D has grown by 5 ms, and asserts that the
/// answer is held until V gets to when it came.
#[track_caller]
fn assert_held(header: Option<Stamp>) {
    let _experiment = Experiment::begin();
    let fake = Fake::new(move || {
        delay();
        response(header)
    });
    let mut client = remote::client_of("remote: called").layer(fake);
    let calls = async move {
        let call = client.call(request("/", None));
        let due = due(Nanos::ZERO);
        call.await.unwrap();
        assert_is_due(due);
    };
    run(calls.profiled("calls"));
}

#[test]
fn response_of_a_sender_that_was_delayed_less_is_held_until_it_is_due() {
    assert_held(Some(stamp(Nanos::ZERO)));
}

#[test]
fn response_without_a_stamp_is_held_like_one_of_the_world_outside() {
    assert_held(None);
}

#[test]
fn response_of_another_experiment_is_held_like_one_of_the_world_outside() {
    assert_held(Stamp::new(NUMBER - 1, 0));
}

#[test]
fn response_that_is_due_is_not_held() {
    let _experiment = Experiment::begin();
    delay();
    let all = stamp(global_delay());
    let mut client =
        remote::client_of("remote: not held").layer(Fake::new(move || response(Some(all))));
    let mut call = std::pin::pin!(client.call(request("/", None)));
    let Watched { waker, .. } = &Watched::spawn();
    assert!(call.as_mut().poll(&mut Context::from_waker(waker)).is_ready());
}

#[test]
fn wait_for_a_participant_is_a_target_of_its_own() {
    let alone = alone();
    let mut client = remote::client(["remote-target"]).layer(Fake::new(|| response(None)));
    run(async move { client.call(request("http://remote-target/", None)).await.unwrap() });
    assert!(target(TargetKind::Task, "remote-target", None, None).count() > 0);
    drop(alone);
}

#[test]
fn parts_of_the_layer_carry_as_the_layer_does() {
    let _experiment = Experiment::begin();
    let all = stamp(Nanos::from_millis(5));
    run(async move {
        for (url, is_stamped) in [("http://stock:80/", true), ("http://other/", false)] {
            let (mut headers, layer) = (HeaderMap::new(), remote::client(["stock"]));
            let mut call = layer.call(url);
            call.stamp(&mut headers);
            assert_eq!(headers.contains_key(HEADER), is_stamped, "{url}");
            let answer = call.answered(response(Some(all)), Response::headers).await.unwrap();
            assert!(answer.headers().contains_key(HEADER));
        }
    });
    assert_eq!(global_delay(), Nanos::from_millis(5));
}

#[test]
#[should_panic(expected = "`http://stock` is no host")]
fn a_host_that_is_none_is_refused() {
    drop(remote::client(["http://stock"]));
}

#[test]
fn message_of_an_own_protocol_is_held_until_it_is_due() {
    let _experiment = Experiment::begin();
    delay();
    run(async {
        let due = due(Nanos::from_millis(1));
        remote::received(Some(stamp(Nanos::from_millis(1)))).await;
        assert_is_due(due);
    }
    .profiled("receives"));
}

/// Reads a byte of a stream, or not, and says whether there was one.
fn read(stream: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> bool {
    let mut byte = [0];
    Pin::new(stream).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_ready()
}

/// Whether the connection of a service, over which a request with or without a stamp has come, is
/// held at its socket as one of the world outside when the next one comes. The connection may wait
/// for that one `already` as it answers, and look no more, as hyper does.
fn is_held_after(header: Option<Stamp>, already: bool) -> bool {
    let _experiment = Experiment::begin();
    let watched = Watched::spawn();
    let waker = watched.waker.clone();
    let (mut client, stream) = duplex(64);
    let (due, _ends) = run(async move {
        let mut context = Context::from_waker(&waker);
        let mut stream = Outside::new(stream);
        let mut service = remote::server().layer(Fake::new(|| response(None)));
        assert!(Pin::new(&mut client).poll_write(&mut context, b"?").is_ready());
        assert!(read(&mut stream, &mut context));
        let request = header.map_or_else(|| request("/", None), request_from);
        let answer = std::pin::pin!(service.call(request)).poll(&mut context);
        assert!(answer.is_ready());
        assert!(!already || !read(&mut stream, &mut context));
        assert!(Pin::new(&mut stream).poll_write(&mut context, b"!").is_ready());
        assert!(already || !read(&mut stream, &mut context));
        delay();
        let due = due(Nanos::ZERO);
        assert!(Pin::new(&mut client).poll_write(&mut context, b"?").is_ready());
        (due, (client, stream))
    });
    let woken = watched.woken.recv().expect("it is woken in the end");
    ledger().time_until_due(due, woken) <= Rules::SHIPPED.min_hold
}

#[test]
fn connection_of_a_participant_is_not_held_at_the_socket() {
    assert!([false, true].iter().all(|&already| !is_held_after(Some(stamp(Nanos::ZERO)), already)));
}

#[test]
fn connection_of_the_world_outside_is_held_at_the_socket() {
    assert!([false, true].iter().all(|&already| is_held_after(None, already)));
}

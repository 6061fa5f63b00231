//! Small services of the kinds that people run, each with dials that make a part really cheaper.

use andweorc::task::Builder;
use axum::routing::get;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The clients of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Tasks of the service itself.
    Inside,
    /// A process of its own: so many connections that wait for answers, and so many requests a
    /// second that do not.
    Http { waiting: usize, paced: u32 },
}

/// A service, and what of it can be dialled.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) clients: Clients,
    /// The parts: each the name of a dial and the target's, which may be a wait.
    pub(crate) parts: &'static [Part],
    start: fn(),
}

/// A part that has a dial.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) is_wait: bool,
}

const fn work(name: &'static str) -> Part {
    Part { name, is_wait: false }
}

const fn wait(name: &'static str) -> Part {
    Part { name, is_wait: true }
}

const fn inside(name: &'static str, parts: &'static [Part], start: fn()) -> Service {
    Service { name, clients: Clients::Inside, parts, start }
}

pub(crate) const SERVICES: &[Service] = &[
    inside("cpu", &[work("parse"), work("price"), work("receipt")], cpu),
    inside("one_target", &[work("price")], one_target),
    inside("lock", &[work("stock"), work("render")], lock),
    inside("remote_wait", &[wait("payment"), work("quote")], remote_wait),
    inside("small_pool", &[wait("query"), work("render")], small_pool),
    inside("blocking_pool", &[work("digest"), work("answer")], blocking_pool),
    inside("stages", &[work("read"), work("crunch"), work("write")], stages),
    inside("throttle", &[wait("throttle"), work("parse"), work("store")], throttle),
    inside("no_spans", &[work("trust::services::hot"), work("trust::services::warm")], no_spans),
    inside("many_spans", &[work("hot"), work("s000")], many_spans),
    Service {
        name: "paced_inside",
        clients: Clients::Inside,
        parts: &[work("enrich"), work("archive")],
        start: paced_inside,
    },
    Service {
        name: "http_closed",
        clients: Clients::Http { waiting: 8, paced: 0 },
        parts: &[work("stock"), work("render")],
        start: http,
    },
    Service {
        name: "http_open",
        clients: Clients::Http { waiting: 0, paced: 300 },
        parts: &[work("stock"), work("render")],
        start: http,
    },
    Service {
        name: "http_mixed",
        clients: Clients::Http { waiting: 1, paced: 150 },
        parts: &[work("stock"), work("render")],
        start: http,
    },
];

/// The port of the services that are asked over HTTP.
pub(crate) const PORT: u16 = 3197;

/// Runs the service of this name; for so many seconds and to print its figures where `SECS` says
/// so.
pub(crate) fn run(name: &str) {
    let service = SERVICES.iter().find(|it| it.name == name);
    (service.unwrap_or_else(|| panic!("no service `{name}`")).start)();
}

static DONE: AtomicU64 = AtomicU64::new(0);
static LATENCY: AtomicU64 = AtomicU64::new(0);

/// Counts a request that began at `began`.
fn done(began: Instant) {
    DONE.fetch_add(1, Relaxed);
    LATENCY.fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
}

/// Goes on for good; or prints requests a second and their mean latency, ns, and ends.
async fn go_on() {
    let secs = std::env::var("SECS").ok().and_then(|secs| secs.parse().ok());
    let Some(secs) = secs else { return std::future::pending().await };
    sleep(Duration::from_millis(500)).await;
    let read = || (DONE.load(Relaxed), LATENCY.load(Relaxed), Instant::now());
    let (done, latency, began) = read();
    sleep(Duration::from_secs_f64(secs)).await;
    let (done, latency) = (read().0 - done, read().1 - latency);
    println!(
        "{} {}",
        done as f64 / began.elapsed().as_secs_f64(),
        latency as f64 / done.max(1) as f64
    );
    std::process::exit(0);
}

/// Steps of work in a microsecond, about.
const STEPS: u64 = 400;

/// So many microseconds of work, counted in steps.
#[inline(always)]
fn burn(us: u64) -> u64 {
    let mut x = us | 1;
    for _ in 0..us * STEPS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        black_box(&x);
    }
    x
}

/// The rest of `us` of this part: `DIAL=part=50` makes it half.
fn dial(part: &str, us: u64) -> u64 {
    let dial = std::env::var("DIAL").unwrap_or_default();
    match dial.split_once('=') {
        Some((name, percent)) if name == part => {
            us * (100 - percent.parse::<u64>().expect("a number of %")) / 100
        }
        _ => us,
    }
}

/// A span of this name around so much work, at a place of its own.
macro_rules! part {
    ($name:ident, $us:expr) => {
        #[tracing::instrument]
        fn $name() {
            // Read once: it would be work of its own.
            static US: std::sync::LazyLock<u64> =
                std::sync::LazyLock::new(|| dial(stringify!($name), $us));
            black_box(burn(*US));
        }
    };
}

#[andweorc::main]
async fn cpu() {
    andweorc::subscriber().init();
    part!(parse, 60);
    part!(price, 120);
    part!(receipt, 30);
    #[tracing::instrument]
    async fn request() {
        parse();
        yield_now().await;
        price();
        receipt();
    }
    for _ in 0..4 {
        andweorc::spawn(async {
            loop {
                let began = Instant::now();
                request().await;
                done(began);
                yield_now().await;
            }
        });
    }
    go_on().await;
}

#[andweorc::main]
async fn one_target() {
    andweorc::subscriber().init();
    part!(price, 200);
    for _ in 0..4 {
        andweorc::spawn(async {
            loop {
                let began = Instant::now();
                price();
                black_box(burn(100));
                done(began);
                yield_now().await;
            }
        });
    }
    go_on().await;
}

#[andweorc::main]
async fn lock() {
    andweorc::subscriber().init();
    part!(stock, 400);
    part!(render, 100);
    #[tracing::instrument(skip_all)]
    async fn order(lock: &Mutex<()>) {
        {
            let _held = lock.lock().await;
            stock();
        }
        render();
    }
    let lock = Arc::new(Mutex::new(()));
    for _ in 0..6 {
        let lock = Arc::clone(&lock);
        andweorc::spawn(async move {
            loop {
                let began = Instant::now();
                order(&lock).await;
                done(began);
                yield_now().await;
            }
        });
    }
    go_on().await;
}

#[andweorc::main]
async fn remote_wait() {
    andweorc::subscriber().init();
    part!(quote, 20);
    #[tracing::instrument]
    async fn payment() {
        sleep(Duration::from_micros(dial("payment", 20_000))).await;
    }
    #[tracing::instrument]
    async fn buy() {
        quote();
        payment().await;
    }
    for _ in 0..16 {
        andweorc::spawn(async {
            loop {
                let began = Instant::now();
                buy().await;
                done(began);
            }
        });
    }
    go_on().await;
}

#[andweorc::main]
async fn small_pool() {
    andweorc::subscriber().init();
    part!(render, 60);
    #[tracing::instrument]
    async fn query() {
        sleep(Duration::from_micros(dial("query", 10_000))).await;
    }
    #[tracing::instrument(skip_all)]
    async fn acquire(pool: &Semaphore) -> tokio::sync::SemaphorePermit<'_> {
        pool.acquire().await.expect("it is never closed")
    }
    #[tracing::instrument(skip_all)]
    async fn handle(pool: &Semaphore) {
        let connection = acquire(pool).await;
        query().await;
        drop(connection);
        render();
    }
    let pool = Arc::new(Semaphore::new(3));
    for _ in 0..16 {
        let pool = Arc::clone(&pool);
        andweorc::spawn(async move {
            loop {
                let began = Instant::now();
                handle(&pool).await;
                done(began);
            }
        });
    }
    go_on().await;
}

#[andweorc::main]
async fn blocking_pool() {
    andweorc::subscriber().init();
    part!(digest, 600);
    part!(answer, 60);
    #[tracing::instrument]
    async fn upload() {
        andweorc::spawn_blocking(digest).await.expect("it does not panic");
        answer();
    }
    for _ in 0..4 {
        andweorc::spawn(async {
            loop {
                let began = Instant::now();
                upload().await;
                done(began);
            }
        });
    }
    go_on().await;
}

#[andweorc::main]
async fn stages() {
    andweorc::subscriber().init();
    part!(read, 60);
    part!(crunch, 300);
    part!(write, 60);
    let (to_crunch, mut read_ones) = mpsc::channel::<Instant>(16);
    let (to_write, mut crunched) = mpsc::channel::<Instant>(16);
    Builder::new().name("reader").spawn(async move {
        loop {
            let began = Instant::now();
            read();
            to_crunch.send(began).await.expect("there is a cruncher");
        }
    });
    Builder::new().name("cruncher").spawn(async move {
        while let Some(began) = read_ones.recv().await {
            crunch();
            to_write.send(began).await.expect("there is a writer");
        }
    });
    Builder::new().name("writer").spawn(async move {
        while let Some(began) = crunched.recv().await {
            write();
            andweorc::progress!("written");
            done(began);
        }
    });
    go_on().await;
}

#[andweorc::main]
async fn throttle() {
    andweorc::subscriber().init();
    part!(parse, 20);
    part!(store, 30);
    #[tracing::instrument]
    async fn throttle() {
        sleep(Duration::from_micros(dial("throttle", 10_000))).await;
    }
    #[tracing::instrument]
    async fn request() {
        parse();
        throttle().await;
        store();
    }
    for _ in 0..8 {
        andweorc::spawn(async {
            loop {
                let began = Instant::now();
                request().await;
                done(began);
            }
        });
    }
    go_on().await;
}

#[inline(never)]
fn hot(us: u64) -> u64 {
    burn(us)
}

#[inline(never)]
fn warm(us: u64) -> u64 {
    // Otherwise it would be made one with `hot`.
    burn(us).rotate_left(7)
}

#[andweorc::main]
async fn no_spans() {
    let (hot_us, warm_us) = (dial("trust::services::hot", 300), dial("trust::services::warm", 100));
    for _ in 0..4 {
        andweorc::spawn(async move {
            loop {
                let began = Instant::now();
                black_box(hot(hot_us) ^ warm(warm_us));
                andweorc::progress!("unit");
                done(began);
                yield_now().await;
            }
        });
    }
    go_on().await;
}

/// Spans of two hundred call sites, `s000` to `s199`.
macro_rules! spans {
    ($($hundreds:literal)*) => {
        [$(spans!(@tens $hundreds: "0" "1" "2" "3" "4" "5" "6" "7" "8" "9")),*]
    };
    (@tens $h:literal: $($t:literal)*) => { [$(spans!(@ones $h $t: "0" "1" "2" "3" "4" "5" "6" "7" "8" "9")),*] };
    (@ones $h:literal $t:literal: $($o:literal)*) => {
        [$(|us: u64| { tracing::info_span!(concat!("s", $h, $t, $o)).in_scope(|| black_box(burn(us))) }),*]
    };
}

#[andweorc::main]
async fn many_spans() {
    andweorc::subscriber().init();
    part!(hot, 400);
    #[tracing::instrument(skip_all)]
    async fn request(parts: &[fn(u64) -> u64], first: u64) {
        hot();
        parts[0](first);
        for part in &parts[1..] {
            part(1);
        }
    }
    let all = spans!("0" "1");
    let parts: Vec<fn(u64) -> u64> = all.into_iter().flatten().flatten().collect();
    let (parts, first) = (Arc::new(parts), dial("s000", 100));
    for _ in 0..4 {
        let parts = Arc::clone(&parts);
        andweorc::spawn(async move {
            loop {
                let began = Instant::now();
                request(&parts, first).await;
                done(began);
                yield_now().await;
            }
        });
    }
    go_on().await;
}

#[andweorc::main]
async fn paced_inside() {
    andweorc::subscriber().init();
    part!(enrich, 400);
    part!(archive, 200);
    let (to, mut events) = mpsc::unbounded_channel::<(Instant, tracing::Span)>();
    Builder::new().name("source").spawn(async move {
        let mut tick = interval(Duration::from_millis(2));
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        loop {
            tick.tick().await;
            let event = (Instant::now(), tracing::info_span!("event"));
            to.send(event).expect("there is a sink");
        }
    });
    // Archived beside the events: nobody waits for it.
    Builder::new().name("archiver").spawn(async move {
        let mut tick = interval(Duration::from_millis(5));
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        loop {
            tick.tick().await;
            archive();
        }
    });
    Builder::new().name("sink").spawn(async move {
        while let Some((began, span)) = events.recv().await {
            span.in_scope(enrich);
            drop(span);
            done(began);
        }
    });
    go_on().await;
}

#[andweorc::main]
async fn http() {
    andweorc::subscriber().init();
    part!(stock, 500);
    part!(render, 50);
    #[tracing::instrument(skip_all)]
    async fn order(lock: &Mutex<()>) -> &'static str {
        let began = Instant::now();
        {
            let _held = lock.lock().await;
            stock();
        }
        render();
        done(began);
        "ok"
    }
    let lock = Arc::new(Mutex::new(()));
    let app = axum::Router::new().route("/", get(async move || order(&lock).await));
    let listener = TcpListener::bind(("127.0.0.1", PORT)).await.expect("a free port");
    andweorc::spawn(async move { axum::serve(listener, app).await.expect("it goes on") });
    go_on().await;
}

//! A JSON service on axum, under load: throughput and tail latency without andweorc, with it but
//! not enabled, enabled between experiments, and in a baseline, and after that; and with tracing's
//! registry alone and with andweorc's layer on it, as where others look at spans too.
//!
//! They are processes that live side by side and are loaded in turns, a moment each, so that
//! whatever else changes on the machine meets all alike. One core is the services', the other the
//! load's. Some generations of processes, since no two are laid out the same.

use crate::Result;
use crate::part::Row;
use andweorc::Speedup;
use andweorc_core::experiment::{Experimenter, Phases};
use axum::{Json, Router, routing::post};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};
use std::{env, fmt, thread};
use tokio::net::TcpListener;
use tracing::{Instrument, info_span};
use tracing_subscriber::layer::{Identity, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// First argument of a process that is a service.
pub(crate) const SERVE: &str = "serve";

const GENERATIONS: usize = 10;
/// How often each service of a generation is loaded, and for how long.
const TURNS: usize = 25;
const TURN: Duration = Duration::from_millis(60);

const CONNECTIONS: usize = 8;

/// Way in which a service uses andweorc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Without,
    /// Without andweorc, and with tracing's registry.
    Registry,
    /// With a layer on that registry, enabled.
    Layer,
    /// With andweorc's subscriber, as what follows.
    Off,
    /// Enabled, and no experiment is held.
    On,
    /// An experiment without delays is held.
    Baseline,
    /// One was, as the service was warmed up: andweorc is off again.
    Ended,
}

const MODES: [(&str, Mode); 7] = [
    ("without", Mode::Without),
    ("registry", Mode::Registry),
    ("layer", Mode::Layer),
    ("off", Mode::Off),
    ("on", Mode::On),
    ("baseline", Mode::Baseline),
    ("ended", Mode::Ended),
];

/// Of baselines.
const PHASES: Phases = Phases::from_millis(50, 500, 20);

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Mode, String> {
        let mode = MODES.iter().find(|(known, _)| *known == name);
        mode.map(|(_, mode)| *mode).ok_or_else(|| format!("there is no mode `{name}`"))
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Line {
    article: u32,
    quantity: u32,
    name: String,
}

#[derive(Debug, Serialize)]
struct Receipt {
    lines: Vec<Line>,
    total: u64,
}

async fn order(Json(lines): Json<Vec<Line>>) -> Json<Receipt> {
    let price = async |line: &Line| u64::from(line.article % 97) * u64::from(line.quantity);
    let mut total = 0;
    for line in &lines {
        total += price(line).await;
    }
    Json(Receipt { lines, total })
}

/// Serves until its standard input ends. Prints its address first.
pub(crate) fn serve(mode: Mode) -> Result<()> {
    let _pinned = Pinned::to(0);
    match mode {
        Mode::Without => {}
        // With a layer, though it does nothing: the registry alone never frees a span.
        Mode::Registry => tracing_subscriber::registry().with(Identity::new()).init(),
        Mode::Layer => tracing_subscriber::registry().with(andweorc::layer()).init(),
        Mode::Off | Mode::On | Mode::Baseline | Mode::Ended => andweorc::subscriber().init(),
    }
    let profiled = !matches!(mode, Mode::Without | Mode::Registry);
    let mut experimenter = match mode {
        Mode::Without | Mode::Registry | Mode::Off => None,
        Mode::Layer | Mode::On | Mode::Baseline | Mode::Ended => Experimenter::new(),
    };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if profiled {
        andweorc::runtime::BuilderExt::enable_profiling(&mut builder);
    }
    let runtime = builder.worker_threads(1).enable_io().build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    println!("{}", listener.local_addr()?);
    let accept = async move {
        let app =
            Router::new().route("/order", post(|body| order(body).instrument(info_span!("order"))));
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(app.clone());
            let connection = async move {
                let http = hyper::server::conn::http1::Builder::new();
                // A client that goes away ends its connection, and that is all.
                http.serve_connection(TokioIo::new(stream), service).await.ok();
            };
            if profiled {
                andweorc::spawn(connection);
            } else {
                tokio::spawn(connection);
            }
        }
    };
    runtime.spawn(accept);
    if let Mode::Baseline | Mode::Ended = mode
        && let Some(mut experimenter) = experimenter.take()
    {
        thread::spawn(move || {
            let mut hold = || experimenter.run(None, Speedup::ZERO, PHASES).record().is_some();
            while hold() && mode == Mode::Baseline {}
        });
    }
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// Rate and latency of a service in a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Requests a second.
    rate: f64,
    /// The 99th percentile of the time from the request to its answer, s.
    p99: f64,
}

/// A service in a process of its own, and the connections to it.
struct Service {
    child: Child,
    connections: Vec<BufReader<Awake>>,
}

impl Service {
    fn start(executable: &Path, mode: &str) -> Result<Service> {
        let mut child = Command::new(executable)
            .args([SERVE, mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("stdout is piped")?).read_line(&mut address)?;
        let address: SocketAddr = address.trim().parse()?;
        let connect = || {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(BufReader::new(Awake(stream)))
        };
        let connections = (0..CONNECTIONS).map(|_| connect()).collect::<Result<_>>()?;
        Ok(Service { child, connections })
    }

    /// Loads it for a turn.
    fn load(&mut self, request: &[u8]) -> Result<Turn> {
        let begin = Instant::now();
        let mut sent = [begin; CONNECTIONS];
        let mut took = Vec::with_capacity(10_000);
        for connection in &mut self.connections {
            connection.get_mut().0.write_all(request)?;
        }
        // Each connection has one request under way; the replies come in the order in which they
        // were asked for, near enough.
        while begin.elapsed() < TURN {
            for (connection, sent) in self.connections.iter_mut().zip(&mut sent) {
                read_reply(connection)?;
                let now = Instant::now();
                took.push(now - *sent);
                *sent = now;
                connection.get_mut().0.write_all(request)?;
            }
        }
        for connection in &mut self.connections {
            read_reply(connection)?;
        }
        let done = took.len() + CONNECTIONS;
        let rate = done as f64 / begin.elapsed().as_secs_f64();
        took.sort_unstable();
        Ok(Turn { rate, p99: took[took.len() * 99 / 100].as_secs_f64() })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().expect("it is our child");
    }
}

/// A connection that is not slept on. To wake who sleeps takes a fifth of the service's time, and
/// more the slower the service is, since the load then sleeps longer; a load on another machine
/// takes none.
struct Awake(TcpStream);

impl Read for Awake {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                // Where there is but one core, the service goes on.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                read => return read,
            }
        }
    }
}

fn read_reply(connection: &mut BufReader<Awake>) -> Result<()> {
    let mut line = String::new();
    let mut length = 0;
    while line != "\r\n" {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err("the service closed the connection".into());
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse()?;
        }
    }
    let body = connection.by_ref().take(length);
    io::copy(&mut { body }, &mut io::sink())?;
    Ok(())
}

/// A ratio, and its 95 % interval.
#[derive(Debug)]
struct Ratio {
    mean: f64,
    margin: f64,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.interval();
        write!(f, "{:.4} [{low:.4}, {high:.4}]", self.mean)
    }
}

impl Ratio {
    fn interval(&self) -> [f64; 2] {
        [1.0 - self.margin, 1.0 + self.margin].map(|of| self.mean * of)
    }

    /// The ratio as a row of a table; `rate` is a service's own.
    fn row(&self, of: String, rate: Option<f64>) -> Row {
        let [low, high] = self.interval();
        Row { of, rate, without: None, figure: self.mean, low, high }
    }

    /// Paired: the mean over the inner half of the logarithms, by which no single disturbed turn
    /// counts; the interval comes from the generations, and holds what the layout of a process
    /// does.
    fn of(generations: &[Vec<[f64; 2]>]) -> Ratio {
        let each: Vec<f64> = generations
            .iter()
            .map(|turns| {
                let mut logs: Vec<f64> = turns.iter().map(|[a, b]| (b / a).ln()).collect();
                logs.sort_by(f64::total_cmp);
                let inner = &logs[logs.len() / 4..logs.len() * 3 / 4];
                inner.iter().sum::<f64>() / inner.len() as f64
            })
            .collect();
        let n = each.len() as f64;
        let mean = each.iter().sum::<f64>() / n;
        let variance = each.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // Student's 97.5 % point for nine degrees of freedom.
        let margin = 2.26 * (variance / n).sqrt();
        Ratio { mean: mean.exp(), margin }
    }
}

/// Function that takes the figure to report from a turn.
type Figure = fn(&Turn) -> f64;

const RATE: Figure = |turn| turn.rate;
const P99: Figure = |turn| turn.p99;

/// The table of ratios. Beside it, throughput while not enabled and while enabled, over that
/// without andweorc; throughput while enabled with the layer, over that with the registry alone;
/// the 99th percentile of latency in a baseline, over that while not enabled; and throughput after
/// a profile, over that without andweorc.
pub(crate) fn measure() -> Result<(Vec<Row>, [f64; 5])> {
    println!(
        "An axum JSON service: {GENERATIONS} times seven processes, {TURNS} turns of {TURN:?} each"
    );
    let this = env::current_exe()?;
    let measured = Measured::take(MODES.map(|(name, _)| (this.as_path(), name)))?;
    let told = [
        "without andweorc",
        "registry alone",
        "enabled on it",
        "not enabled",
        "enabled",
        "in a baseline",
        "after it",
    ];
    let mut rows = Vec::new();
    for (which, name) in told.iter().enumerate() {
        let (rate, ratio) = (measured.mean(which, RATE), measured.ratio(0, which, RATE));
        let tail = measured.mean(which, P99) * 1e6;
        println!("  {name:<16} {rate:>8.0}/s  ratio {ratio}  p99 {tail:>4.0} us");
        rows.push(ratio.row(format!("requests a second, {name}"), Some(rate)));
    }
    let layer = measured.ratio(1, 2, RATE);
    println!("  over the registry alone: enabled on it {layer}");
    println!("  over enabled on the registry: enabled {}", measured.ratio(2, 4, RATE));
    let (tail_on, tail) = (measured.ratio(3, 4, P99), measured.ratio(3, 5, P99));
    println!("  p99 over not enabled: enabled {tail_on}, in a baseline {tail}");
    rows.push(layer.row("requests a second, enabled, over the registry alone".to_owned(), None));
    rows.push(tail.row("p99, in a baseline, over not enabled".to_owned(), None));
    let [off, on, ended] = [3, 4, 6].map(|which| measured.ratio(0, which, RATE).mean);
    Ok((rows, [off, on, layer.mean, tail.mean, ended]))
}

/// Prints how this build does against another build of this bench, in turns: throughput and its
/// latency's 99th percentile, enabled and in a baseline. Each over its own executable without
/// andweorc: two executables differ by up to 3 % by their layout alone.
pub(crate) fn against(other: &Path) -> Result<()> {
    let this = env::current_exe()?;
    let this = this.as_path();
    let measured = Measured::take([
        (other, "without"),
        (this, "without"),
        (other, "on"),
        (this, "on"),
        (other, "baseline"),
        (this, "baseline"),
    ])?;
    for (figure, of) in [("requests", RATE), ("p99", P99)] {
        println!("  {figure}");
        println!("    without andweorc: this over the other {}", measured.ratio(0, 1, of));
        for (name, theirs, ours) in [("enabled", 2, 3), ("in a baseline", 4, 5)] {
            println!("    {name}, over without: the other {}", measured.ratio(0, theirs, of));
            println!("    {name}, over without: this      {}", measured.ratio(1, ours, of));
        }
    }
    Ok(())
}

/// Turns of `N` services, by generations and turns.
struct Measured<const N: usize>(Vec<Vec<[Turn; N]>>);

impl<const N: usize> Measured<N> {
    /// Loads these services in turns: executables of this bench, and modes.
    fn take(services: [(&Path, &str); N]) -> Result<Measured<N>> {
        let request = request()?;
        let mut generations = Vec::new();
        for _ in 0..GENERATIONS {
            let mut services = services
                .iter()
                .map(|(executable, mode)| Service::start(executable, mode))
                .collect::<Result<Vec<_>>>()?;
            let _pinned = Pinned::to(1);
            let mut turns = Vec::new();
            for turn in 0..TURNS + 5 {
                let mut loaded = [Turn::default(); N];
                for step in 0..N {
                    let which = (turn + step) % N;
                    loaded[which] = services[which].load(&request)?;
                }
                // The first few warm up.
                if turn >= 5 {
                    turns.push(loaded);
                }
            }
            generations.push(turns);
        }
        Ok(Measured(generations))
    }

    fn mean(&self, which: usize, figure: Figure) -> f64 {
        let all = self.0.iter().flatten().map(|turns| figure(&turns[which]));
        all.sum::<f64>() / (GENERATIONS * TURNS) as f64
    }

    fn ratio(&self, base: usize, which: usize, figure: Figure) -> Ratio {
        let pairs = |turns: &Vec<[Turn; N]>| {
            turns.iter().map(|it| [figure(&it[base]), figure(&it[which])]).collect()
        };
        Ratio::of(&self.0.iter().map(pairs).collect::<Vec<_>>())
    }
}

fn request() -> Result<Vec<u8>> {
    let lines: Vec<Line> = (0..16)
        .map(|n| Line { article: n * 31, quantity: n + 1, name: format!("article number {n}") })
        .collect();
    let body = serde_json::to_string(&lines)?;
    let head = "POST /order HTTP/1.1\r\nhost: shop\r\ncontent-type: application/json\r\n";
    Ok(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

/// Keeps this thread, and those that it starts meanwhile, on one core, where there is more than
/// one: neither the services nor the load move between turns. Dropped, it lets the thread go where
/// it could before: what the bench does next may need all cores.
struct Pinned(Option<CpuSet>);

impl Pinned {
    fn to(core: usize) -> Pinned {
        let pin = || {
            let before = sched_getaffinity(Pid::from_raw(0))?;
            let mut set = CpuSet::new();
            set.set(core)?;
            sched_setaffinity(Pid::from_raw(0), &set)?;
            nix::Result::Ok(before)
        };
        if thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
            return Pinned(None);
        }
        match pin() {
            Ok(before) => Pinned(Some(before)),
            Err(error) => {
                eprintln!("cost: not pinned to core {core}, so expect more scatter: {error}");
                Pinned(None)
            }
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.0
            && let Err(error) = sched_setaffinity(Pid::from_raw(0), before)
        {
            eprintln!("cost: still pinned, so what follows is wrong: {error}");
        }
    }
}

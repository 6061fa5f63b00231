//! The truth: a part is really made cheaper.

use crate::load_of;
use crate::services::{Part, Service};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::{env, fmt};

/// How often the service runs as it is and with the part half as dear, in turns.
const PAIRS: usize = 5;

/// How long each of them is measured, s.
const SECONDS: &str = "1.2";

/// The change with the part 50 % cheaper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    /// Of the throughput, %.
    pub(crate) throughput: Change,
    /// Of the mean latency, %.
    pub(crate) latency: Change,
}

/// A change in %, with its 95 % interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) mean: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Change {
    /// Of the logarithms of ratios.
    fn of(logs: &[f64]) -> Change {
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let t = StudentsT::new(0.0, 1.0, n - 1.0).expect("degrees of freedom").inverse_cdf(0.975);
        let half = t * (variance / n).sqrt();
        let percent = |log: f64| 100.0 * log.exp_m1();
        Change { mean: percent(mean), low: percent(mean - half), high: percent(mean + half) }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.1} % [{:.1}, {:.1}]", self.mean, self.low, self.high)
    }
}

impl Truth {
    /// Measures it.
    pub(crate) fn of(service: &Service, part: &Part) -> Result<Truth, Box<dyn Error>> {
        let (mut throughputs, mut latencies) = (Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let [rate, latency] = figures(service, None)?;
            let [faster_rate, faster_latency] = figures(service, Some(part))?;
            throughputs.push((faster_rate / rate).ln());
            latencies.push((faster_latency / latency).ln());
        }
        Ok(Truth { throughput: Change::of(&throughputs), latency: Change::of(&latencies) })
    }
}

/// Requests a second and mean latency, ns, of a service of which a part may be half as dear.
fn figures(service: &Service, cheaper: Option<&Part>) -> Result<[f64; 2], Box<dyn Error>> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["service", service.name]).env("SECS", SECONDS).stdin(Stdio::null());
    if let Some(part) = cheaper {
        command.env("DIAL", format!("{}=50", part.name));
    }
    let started = command.stdout(Stdio::piped()).spawn()?;
    let clients = clients(service)?;
    let output = started.wait_with_output();
    drop(clients);
    let output = output?;
    let text = String::from_utf8(output.stdout)?;
    let figures: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    figures?.try_into().map_err(|_| format!("{} printed `{text}`", service.name).into())
}

/// A process that ends when it is dropped.
struct Clients(Option<Child>);

impl Drop for Clients {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // The process may have ended by itself.
            child.kill().unwrap_or_default();
            child.wait().map(drop).unwrap_or_default();
        }
    }
}

fn clients(service: &Service) -> Result<Clients, Box<dyn Error>> {
    let Some(words) = load_of(service)? else { return Ok(Clients(None)) };
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let quiet = Command::new(program).args(arguments).stderr(Stdio::null()).spawn()?;
    Ok(Clients(Some(quiet)))
}

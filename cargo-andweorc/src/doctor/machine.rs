//! The machine: kernel, perf events, cores, noise.

use crate::doctor::Check;
use andweorc_core::sampler;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How long noise is listened to.
const LISTEN: Duration = Duration::from_secs(1);

pub(super) fn checks() -> Vec<Check> {
    vec![kernel(), perf(), cores(), noise(&Noise::listen())]
}

fn kernel() -> Check {
    let system = match nix::sys::utsname::uname() {
        Ok(name) => format!(
            "{} {} on {}",
            name.sysname().to_string_lossy(),
            name.release().to_string_lossy(),
            name.machine().to_string_lossy()
        ),
        Err(error) => format!("unknown ({error})"),
    };
    if !cfg!(target_os = "linux") {
        Check::bad("kernel", system, "andweorc runs on Linux: use a Linux machine or a container")
    } else if cfg!(target_arch = "x86_64") {
        Check::good("kernel", system)
    } else {
        Check::doubt(
            "kernel",
            system,
            "andweorc is tested on x86-64 only: check a prediction before you trust it",
        )
    }
}

fn perf() -> Check {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or("unknown".to_owned(), |text| text.trim().to_owned());
    let seen = |word| format!("{word} (kernel.perf_event_paranoid is {paranoid})");
    match sampler::probe() {
        Ok(()) => Check::good("perf events", seen("allowed")),
        Err(error) => Check::doubt("perf events", seen("refused"), error.to_string()),
    }
}

fn cores() -> Check {
    match thread::available_parallelism().map_or(1, usize::from) {
        1 => Check::doubt(
            "cores",
            "1",
            "with one core the load and the service disturb each other: use at least 2, and put the load elsewhere",
        ),
        cores => Check::good("cores", cores.to_string()),
    }
}

/// What else happened on the machine for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Noise {
    /// Share of the time that a hypervisor took, 0 to 1; `None` where the kernel doesn't say.
    stolen: Option<f64>,
    /// Share of all processors' time that was busy, 0 to 1.
    busy: Option<f64>,
    /// How late the latest but one in a hundred of the sleeps of 1 ms ended.
    late: Duration,
}

impl Noise {
    fn listen() -> Noise {
        let (before, begun) = (Ticks::read(), Instant::now());
        let mut late = Vec::new();
        while begun.elapsed() < LISTEN {
            let slept = Instant::now();
            thread::sleep(Duration::from_millis(1));
            late.push(slept.elapsed().saturating_sub(Duration::from_millis(1)));
        }
        late.sort();
        let spent = before.zip(Ticks::read()).and_then(|(before, after)| after.since(before));
        Noise {
            stolen: spent.map(|spent| spent.stolen as f64 / spent.all as f64),
            busy: spent.map(|spent| 1.0 - spent.idle as f64 / spent.all as f64),
            late: late[late.len() * 99 / 100],
        }
    }
}

fn noise(noise: &Noise) -> Check {
    let share =
        |share: Option<f64>| share.map_or("unknown".to_owned(), |s| format!("{:.0} %", s * 100.0));
    let seen = format!(
        "stolen {}, busy with other work {}, sleeps end up to {:.2} ms late",
        share(noise.stolen),
        share(noise.busy),
        noise.late.as_secs_f64() * 1e3
    );
    let above = |share: Option<f64>, limit| share.is_some_and(|share| share > limit);
    if above(noise.stolen, 0.02) {
        let advice = "the hypervisor gives the processor to others: experiments above 5 % are left out; measure on a quieter host, \
                      or with several runs";
        Check::doubt("noise", seen, advice)
    } else if above(noise.busy, 0.2) {
        Check::doubt(
            "noise",
            seen,
            "other programs are at work: stop them, or put them on other cores (`taskset`)",
        )
    } else if noise.late > Duration::from_millis(1) {
        Check::doubt(
            "noise",
            seen,
            "timers are late, so pauses will be too long: look for a power-saving mode or a busy host",
        )
    } else {
        Check::good("noise", seen)
    }
}

/// Ticks of all processors, as the first line of /proc/stat counts them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    fn read() -> Option<Ticks> {
        Ticks::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// `cpu user nice system idle iowait irq softirq steal ..`; what follows is contained in user and nice.
    fn parse(text: &str) -> Option<Ticks> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields = line.split_ascii_whitespace().take(8);
        let ticks: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[_, _, _, idle, iowait, _, _, stolen] = &ticks[..] else { return None };
        Some(Ticks { all: ticks.iter().sum(), idle: idle + iowait, stolen })
    }

    /// `None` when no time passed.
    fn since(self, before: Ticks) -> Option<Ticks> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        let idle = self.idle.saturating_sub(before.idle).min(all);
        Some(Ticks { all, idle, stolen: self.stolen.saturating_sub(before.stolen) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn ticks_are_read_and_subtracted() {
        let before = Ticks::parse("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 ..").unwrap();
        let after = Ticks::parse("cpu  50 0 20 100 20 0 0 10 40 0\n").unwrap();
        assert_eq!(after.since(before), Some(Ticks { all: 100, idle: 40, stolen: 10 }));
        assert_eq!(before.since(before), None);
        assert_eq!(Ticks::parse("intr 1 2"), None);
        assert_eq!(Ticks::parse("cpu 1 2 3"), None);
    }

    #[test]
    fn each_kind_of_noise_has_its_advice() {
        let quiet = Noise { stolen: Some(0.0), busy: Some(0.05), late: Duration::from_micros(80) };
        assert_eq!(noise(&quiet).level, Level::Good);
        let advice = |noisy: Noise| {
            let check = noise(&noisy);
            assert_eq!(check.level, Level::Doubt);
            check.advice
        };
        assert!(advice(Noise { stolen: Some(0.1), ..quiet }).contains("hypervisor"));
        assert!(advice(Noise { busy: Some(0.5), ..quiet }).contains("taskset"));
        assert!(advice(Noise { late: Duration::from_millis(4), ..quiet }).contains("timers"));
        assert_eq!(noise(&Noise { stolen: None, busy: None, ..quiet }).level, Level::Good);
    }
}

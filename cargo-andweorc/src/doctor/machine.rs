//! The machine: kernel, perf events, cores, noise.

use crate::doctor::{Check, events};
use andweorc_profile::settings::CountedEvent;
use andweorc_sampling::perf;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long noise is listened to.
const LISTEN: Duration = Duration::from_secs(1);

/// How often a thread is woken up that slept, and for how long it did.
const WAKES: usize = 200;
const SLEPT: Duration = Duration::from_millis(1);

/// A thread that slept mostly goes on within some us, where its processor did not sleep.
const SOON: Duration = Duration::from_micros(20);

pub(super) fn checks() -> Vec<Check> {
    let events = events::check(&CountedEvent::ALL);
    let mut checks = vec![kernel(), perf_events(), events, cores(), noise(&Noise::listen())];
    checks.extend(wakes_up_after().map(idle_processors));
    checks
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

fn perf_events() -> Check {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or("unknown".to_owned(), |text| text.trim().to_owned());
    let seen = |word| format!("{word} (kernel.perf_event_paranoid is {paranoid})");
    match perf::probe() {
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

/// Disturbances on the machine for a while.
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
    if above(noise.busy, 0.75) {
        Check::bad(
            "noise",
            seen,
            "other programs take most of the machine, so that nearly all experiments would be left out: stop them, or measure elsewhere",
        )
    } else if above(noise.stolen, 0.02) {
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

/// How long a thread that slept mostly takes to go on after one on another processor woke it;
/// `None` where there is no other one.
fn wakes_up_after() -> Option<Duration> {
    let allowed = sched_getaffinity(Pid::this()).ok()?;
    let mut processors = (0..CpuSet::count()).filter(|&one| allowed.is_set(one) == Ok(true));
    let [here, there] = [processors.next()?, processors.next()?];
    let (wake, woken) = mpsc::channel::<Instant>();
    let sleeper = thread::spawn(move || {
        stay_on(there)?;
        let mut took: Vec<Duration> = woken.iter().map(|sent| sent.elapsed()).collect();
        took.sort();
        took.get(took.len() / 2).copied()
    });
    let waker = thread::spawn(move || {
        stay_on(here)?;
        for _ in 0..WAKES {
            thread::sleep(SLEPT);
            wake.send(Instant::now()).ok()?;
        }
        Some(())
    });
    waker.join().ok()??;
    sleeper.join().ok()?
}

/// Binds the calling thread to a processor, if that is allowed.
fn stay_on(processor: usize) -> Option<()> {
    let mut one = CpuSet::new();
    one.set(processor).ok()?;
    sched_setaffinity(Pid::from_raw(0), &one).ok()
}

fn idle_processors(take: Duration) -> Check {
    let seen = format!(
        "a thread that slept goes on {} us after another processor woke it",
        take.as_micros()
    );
    if take <= SOON {
        return Check::good("idle", seen);
    }
    let advice = "idle processors sleep, the deeper the longer they were idle: what would be much faster is predicted some points too low; \
                  to keep them awake, in root's shell: `exec 9>/dev/cpu_dma_latency; printf '\\0\\0\\0\\0' >&9`";
    Check::doubt("idle", seen, advice)
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

    /// `cpu user nice system idle iowait irq softirq steal ..`; what follows is contained in user
    /// and nice.
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
    fn processors_that_sleep_are_told_of() {
        assert_eq!(idle_processors(Duration::from_micros(5)).level, Level::Good);
        let check = idle_processors(Duration::from_micros(43));
        assert_eq!(check.level, Level::Doubt);
        assert!(check.seen.contains("43 us"), "{}", check.seen);
        assert!(check.advice.contains(r"printf '\0\0\0\0' >&9"), "{}", check.advice);
    }

    #[test]
    fn a_thread_that_slept_takes_some_time_to_go_on() {
        match wakes_up_after() {
            Some(took) => {
                assert!(took > Duration::ZERO && took < Duration::from_secs(1), "{took:?}")
            }
            None => println!("skipped: there is no second processor to be woken on"),
        }
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
        let full = noise(&Noise { busy: Some(0.98), ..quiet });
        assert_eq!(full.level, Level::Bad);
        assert!(full.advice.contains("most of the machine"), "{}", full.advice);
        assert!(advice(Noise { stolen: Some(0.1), ..quiet }).contains("hypervisor"));
        assert!(advice(Noise { busy: Some(0.5), ..quiet }).contains("taskset"));
        assert!(advice(Noise { late: Duration::from_millis(4), ..quiet }).contains("timers"));
        assert_eq!(noise(&Noise { stolen: None, busy: None, ..quiet }).level, Level::Good);
    }
}

//! The settings of a run: from the environment, or set in code.

mod counted;
mod event;
mod join;
mod scope;

pub use counted::CountedEvent;
pub use event::Event;
pub use join::Join;
pub use scope::{Scope, ScopeError};
#[doc(hidden)]
pub use scope::{crate_of, is_own_file, is_std};

use crate::plain;
use crate::time::Speedup;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, error, fmt};

/// Settings of a run: what it may take, and what it looks at.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Where the profile goes; `target/andweorc/<program>.jsonl` when not set.
    pub out: Option<PathBuf>,
    /// Time budget. A run ends earlier when all targets are settled.
    pub duration: Duration,
    /// Names of the targets to test; the busiest and the longest waits when empty.
    pub targets: Vec<String>,
    /// Names of the points, the one to rank by first; andweorc chooses when empty.
    pub points: Vec<String>,
    /// The speedups to test.
    pub speedups: Vec<Speedup>,
    /// By how much an experiment may slow the program, a factor above 1. One that would slow it
    /// more is ended early and not tried again.
    pub max_slowdown: f64,
    /// Whether the program's own clock is delayed with it.
    pub clock: ProgramClock,
    /// A poll that lasts so long is reported with its place, at least a millisecond; `None` where
    /// nobody is to look for long polls.
    pub long_poll: Option<Duration>,
    /// Event by which lines and functions are sampled.
    pub event: Event,
    /// Events that are counted by target before the first experiment, each once; none by default.
    pub events: Vec<CountedEvent>,
    /// Which order of experiments: any number. Runs of a short program that are joined need
    /// different ones, or each begins with the same few.
    pub order: u64,
    /// Which functions and lines can be targets; the workspace's own when nothing is said.
    pub scope: Scope,
    /// The coordinator that says what is tested, where several programs are profiled as one.
    pub join: Option<Join>,
}

impl Default for Settings {
    /// 30 s, 25 % and 50 %, a slowdown of 2 at most, long polls from 10 ms on, and andweorc chooses
    /// the rest.
    fn default() -> Settings {
        Settings {
            out: None,
            duration: Duration::from_secs(30),
            targets: Vec::new(),
            points: Vec::new(),
            speedups: vec![Speedup::from_ppm(250_000), Speedup::from_ppm(500_000)],
            max_slowdown: MAX_SLOWDOWN,
            clock: ProgramClock::default(),
            long_poll: Some(LONG_POLL),
            event: Event::default(),
            events: Vec::new(),
            order: 0,
            scope: Scope::default(),
            join: None,
        }
    }
}

/// How the clock runs that the program reads, while andweorc delays the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramClock {
    /// Delayed too, where andweorc is built with the feature `clock`: timers and limits of the
    /// program are then delayed as all else is.
    #[default]
    Virtual,
    /// Real time. Timers and limits of the program seem faster than they are.
    Real,
}

/// By how much an experiment may slow the program when nothing else is said.
pub const MAX_SLOWDOWN: f64 = 2.0;

/// A poll is long from this on when nothing else is said.
const LONG_POLL: Duration = Duration::from_millis(10);

/// The shortest poll that may be called long.
const MIN_LONG_POLL: Duration = Duration::from_millis(1);

const PREFIX: &str = "ANDWEORC_";
const ENABLED: &str = "ANDWEORC_ENABLED";
const OUT: &str = "ANDWEORC_OUT";
const DURATION: &str = "ANDWEORC_DURATION";
const TARGETS: &str = "ANDWEORC_TARGETS";
const POINTS: &str = "ANDWEORC_POINTS";
const SPEEDUPS: &str = "ANDWEORC_SPEEDUPS";
const SLOWDOWN: &str = "ANDWEORC_MAX_SLOWDOWN";
const CLOCK: &str = "ANDWEORC_CLOCK";
const ORDER: &str = "ANDWEORC_ORDER";
const EVENT: &str = "ANDWEORC_EVENT";
const EVENTS: &str = "ANDWEORC_EVENTS";
const SCOPE: &str = "ANDWEORC_SCOPE";
const LONG: &str = "ANDWEORC_LONG_POLL";
const KNOWN: [&str; 16] = [
    ENABLED,
    OUT,
    DURATION,
    TARGETS,
    POINTS,
    SPEEDUPS,
    SLOWDOWN,
    CLOCK,
    EVENT,
    EVENTS,
    ORDER,
    SCOPE,
    LONG,
    join::COORDINATOR,
    join::TOKEN,
    join::SERVICE,
];

impl Settings {
    /// Whether `ANDWEORC_ENABLED` switches profiling on.
    ///
    /// # Errors
    ///
    /// When it is neither on (`1`, `true`, `on`) nor off (`0`, `false`, `off`, empty, not set).
    pub fn enabled_by_env() -> Result<bool, SettingError> {
        // Relaxed: a flag that publishes nothing else.
        ASKED.store(true, Ordering::Relaxed);
        enabled(env::var_os(ENABLED))
    }

    /// The settings that the environment gives; defaults for the rest.
    ///
    /// # Errors
    ///
    /// When a variable is malformed, or begins with `ANDWEORC_` and is none of the settings.
    pub fn from_env() -> Result<Settings, SettingError> {
        Settings::from_vars(env::vars_os())
    }

    /// The settings that these variables give, as [`from_env`](Settings::from_env) reads those of
    /// the environment: for whoever starts the program, and wants to know beforehand.
    ///
    /// # Errors
    ///
    /// As [`from_env`](Settings::from_env).
    pub fn from_vars(
        vars: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        let mut join = join::Parts::default();
        for (name, value) in vars {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            match name {
                ENABLED => {
                    enabled(Some(value))?;
                }
                OUT if value.is_empty() => {}
                OUT => settings.out = Some(PathBuf::from(value)),
                DURATION => settings.duration = duration(&text(DURATION, value)?)?,
                TARGETS => settings.targets = list(&text(TARGETS, value)?),
                POINTS => settings.points = list(&text(POINTS, value)?),
                SPEEDUPS => settings.speedups = speedups(&text(SPEEDUPS, value)?)?,
                SLOWDOWN => settings.max_slowdown = slowdown(&text(SLOWDOWN, value)?)?,
                CLOCK => settings.clock = program_clock(&text(CLOCK, value)?)?,
                EVENT => settings.event = event(&text(EVENT, value)?)?,
                EVENTS => settings.events = counted_events(&text(EVENTS, value)?)?,
                ORDER => settings.order = order(&text(ORDER, value)?)?,
                LONG => settings.long_poll = long_poll(&text(LONG, value)?)?,
                SCOPE => {
                    settings.scope = text(SCOPE, value)?.parse().map_err(SettingError::Scope)?
                }
                join::COORDINATOR => join.coordinator = Some(text(join::COORDINATOR, value)?),
                join::TOKEN => join.token = Some(text(join::TOKEN, value)?),
                join::SERVICE => join.service = Some(text(join::SERVICE, value)?),
                unknown => return Err(SettingError::Unknown(unknown.to_owned())),
            }
        }
        settings.join = join.whole()?;
        Ok(settings)
    }

    /// Refuses what only a program with the feature `sampling` can do: an event and a scope of
    /// samples, events that are counted, and targets of which `is_sampled` says that they are seen
    /// by samples alone.
    ///
    /// # Errors
    ///
    /// When one of these is asked for. The error names the first.
    #[doc(hidden)]
    pub fn refuse_sampling(&self, is_sampled: impl Fn(&str) -> bool) -> Result<(), SettingError> {
        let refuse = |name, value: &str| SettingError::NotBuilt { name, value: value.to_owned() };
        if let Some(target) = self.targets.iter().find(|target| is_sampled(target)) {
            return Err(refuse(TARGETS, target));
        }
        if self.event != Event::default() {
            return Err(refuse(EVENT, self.event.name()));
        }
        if let Some(event) = self.events.first() {
            return Err(refuse(EVENTS, event.name()));
        }
        if self.scope != Scope::default() {
            return Err(refuse(SCOPE, &self.scope.to_string()));
        }
        Ok(())
    }
}

/// A setting that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingError {
    /// No setting has this name.
    Unknown(String),
    /// An entry of the scope can't be used.
    Scope(ScopeError),
    /// The value of a setting is not of its form.
    Malformed {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// Form that the value should have.
        expected: &'static str,
    },
    /// One of the settings by which a program takes part in a run of several is there, and another
    /// one is not.
    Incomplete {
        /// The variable that is missing.
        missing: &'static str,
    },
    /// The setting asks for lines, functions or events, and the program is built without the
    /// feature `sampling`.
    NotBuilt {
        /// The variable.
        name: &'static str,
        /// The part of its value that asks for them.
        value: String,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown(name) => {
                write!(f, "no setting is named {}", plain::name(name))?;
                let alike = KNOWN.iter().filter(|known| known.len().abs_diff(name.len()) <= 3);
                let nearest = alike.min_by_key(|known| distance(known, name));
                if let Some(nearest) = nearest.filter(|known| distance(known, name) <= 3) {
                    write!(f, " (did you mean {nearest}?)")?;
                }
                write!(f, "; the settings are {}", KNOWN.join(", "))
            }
            SettingError::Scope(error) => write!(f, "{SCOPE}: {error}"),
            SettingError::Malformed { name, value, expected } => {
                write!(f, "{name} is `{}`, which is not {expected}", plain::name(value))
            }
            SettingError::Incomplete { missing } => write!(
                f,
                "{missing} is not set: a program that takes part in a run of several needs {}, {} and {}",
                join::COORDINATOR,
                join::TOKEN,
                join::SERVICE
            ),
            SettingError::NotBuilt { name, value } => write!(
                f,
                "{name}, `{}`: lines and functions as targets, and counts of events, need andweorc's feature `sampling`, which this program is built \
                 without (`default-features = false`): add it to andweorc's features in Cargo.toml, or leave {name} out",
                plain::name(value)
            ),
        }
    }
}

impl error::Error for SettingError {}

/// Somebody has asked the environment whether profiling is on.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether somebody has asked the environment whether profiling is on.
#[doc(hidden)]
#[inline]
pub fn is_asked() -> bool {
    // Relaxed: as above.
    ASKED.load(Ordering::Relaxed)
}

/// Whether `ANDWEORC_ENABLED` switches profiling on, and nobody has asked yet. True once at most.
#[doc(hidden)]
pub fn is_on_unasked() -> bool {
    // Relaxed: only one thread may be told that it is the first.
    !ASKED.swap(true, Ordering::Relaxed) && enabled(env::var_os(ENABLED)) == Ok(true)
}

fn malformed(name: &'static str, value: &str, expected: &'static str) -> SettingError {
    SettingError::Malformed { name, value: value.to_owned(), expected }
}

fn text(name: &'static str, value: OsString) -> Result<String, SettingError> {
    value.into_string().map_err(|value| malformed(name, &value.to_string_lossy(), "valid UTF-8"))
}

fn enabled(value: Option<OsString>) -> Result<bool, SettingError> {
    let value = text(ENABLED, value.unwrap_or_default())?;
    match value.trim() {
        "1" | "true" | "on" => Ok(true),
        "" | "0" | "false" | "off" => Ok(false),
        _ => Err(malformed(ENABLED, &value, "`1` (on) or `0` (off)")),
    }
}

fn duration(value: &str) -> Result<Duration, SettingError> {
    humantime::parse_duration(value.trim()).ok().filter(|duration| !duration.is_zero()).ok_or_else(
        || malformed(DURATION, value, "a time above zero with its unit, such as `20s` or `1m30s`"),
    )
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn speedups(value: &str) -> Result<Vec<Speedup>, SettingError> {
    let expected =
        "a list of fractions above 0 and up to 1, such as `0.25,0.5` (write 0.25 for 25 %)";
    let speedups: Option<Vec<Speedup>> = list(value)
        .iter()
        .map(|one| one.parse().ok().and_then(Speedup::new).filter(|s| *s > Speedup::ZERO))
        .collect();
    speedups.filter(|all| !all.is_empty()).ok_or_else(|| malformed(SPEEDUPS, value, expected))
}

fn slowdown(value: &str) -> Result<f64, SettingError> {
    let factor =
        value.trim().parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 1.0);
    factor.ok_or_else(|| malformed(SLOWDOWN, value, "a factor above 1, such as `2`"))
}

fn program_clock(value: &str) -> Result<ProgramClock, SettingError> {
    match value.trim() {
        "virtual" => Ok(ProgramClock::Virtual),
        "real" => Ok(ProgramClock::Real),
        _ => Err(malformed(CLOCK, value, "`virtual` or `real`")),
    }
}

fn event(value: &str) -> Result<Event, SettingError> {
    let expected = "`task-clock`, `cycles`, `instructions`, `cache-misses` or `branch-misses`";
    value.trim().parse().map_err(|()| malformed(EVENT, value, expected))
}

fn counted_events(value: &str) -> Result<Vec<CountedEvent>, SettingError> {
    let expected = "a list of `cycles`, `instructions`, `cache-misses`, `branch-misses`, `page-faults`, \
                    `minor-faults` and `cpu-clock`";
    let mut events = Vec::new();
    for name in list(value) {
        let event = name.parse().map_err(|()| malformed(EVENTS, &name, expected))?;
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Ok(events)
}

fn order(value: &str) -> Result<u64, SettingError> {
    value.trim().parse().map_err(|_| malformed(ORDER, value, "a whole number, such as `0` or `1`"))
}

fn long_poll(value: &str) -> Result<Option<Duration>, SettingError> {
    if value.trim() == "off" {
        return Ok(None);
    }
    let parsed = humantime::parse_duration(value.trim()).ok();
    let long_enough = parsed.filter(|duration| *duration >= MIN_LONG_POLL).map(Some);
    let expected = "a time of a millisecond or more with its unit, such as `10ms`, or `off`";
    long_enough.ok_or_else(|| malformed(LONG, value, expected))
}

/// Edit distance, for a guess at what was meant.
#[doc(hidden)]
pub fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn parse(vars: &[(&str, &str)]) -> Result<Settings, SettingError> {
        Settings::from_vars(vars.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn every_setting_is_read() {
        let settings = parse(&[
            ("PATH", "/bin"),
            (ENABLED, "1"),
            (OUT, "/tmp/x.jsonl"),
            (DURATION, "1m30s"),
            (TARGETS, "a, b,,"),
            (POINTS, "checkout"),
            (SPEEDUPS, "0.1, 1"),
            (SLOWDOWN, "1.5"),
            (ORDER, "3"),
            (EVENT, "cycles"),
            (SCOPE, "shop, !src/gen"),
            (CLOCK, "real"),
            (LONG, "25ms"),
        ])
        .unwrap();
        assert_eq!(settings.out.unwrap(), PathBuf::from("/tmp/x.jsonl"));
        assert_eq!(settings.duration, Duration::from_secs(90));
        assert_eq!(settings.targets, ["a", "b"]);
        assert_eq!(settings.points, ["checkout"]);
        assert_eq!(settings.max_slowdown, 1.5);
        assert_eq!(settings.clock, ProgramClock::Real);
        assert_eq!(settings.speedups, [0.1, 1.0].map(|s| Speedup::new(s).unwrap()));
        assert_eq!(settings.order, 3);
        assert_eq!(settings.long_poll, Some(Duration::from_millis(25)));
        assert_eq!(parse(&[(LONG, "off")]).unwrap().long_poll, None);
        assert_eq!(settings.event, Event::Cycles);
        assert_eq!(settings.scope.to_string(), "shop, !src/gen");
        assert_eq!(parse(&[]).unwrap(), Settings::default());
    }

    #[test]
    fn malformed_settings_are_named_with_what_they_should_be() {
        for (name, value) in [
            (DURATION, "20"),
            (DURATION, "0s"),
            (DURATION, "soon"),
            (SPEEDUPS, "25"),
            (SPEEDUPS, "0.25,x"),
            (SPEEDUPS, ""),
            (SPEEDUPS, "0"),
            (SPEEDUPS, "NaN"),
            (SLOWDOWN, "1"),
            (SLOWDOWN, "inf"),
            (SLOWDOWN, "2x"),
            (ENABLED, "maybe"),
            (ORDER, "-1"),
            (LONG, "10"),
            (LONG, "100us"),
            (EVENT, "heat"),
            (SCOPE, "re:("),
        ] {
            let message = parse(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(&format!("`{value}`")), "{message}");
        }
        let broken = (OsString::from(TARGETS), OsString::from_vec(vec![b'a', 0xff]));
        let error = Settings::from_vars([broken].into_iter()).unwrap_err();
        assert!(error.to_string().contains("UTF-8"));
    }

    #[test]
    fn without_sampling_the_setting_that_asks_for_it_is_named() {
        let is_sampled = |target: &str| target == "lines";
        let refused = |vars: &[(&str, &str)]| parse(vars).unwrap().refuse_sampling(is_sampled);
        assert_eq!(refused(&[(TARGETS, "stock,render"), (EVENT, "task-clock")]), Ok(()));
        for (name, value, part) in [
            (TARGETS, "stock,lines", "lines"),
            (EVENT, "cycles", "cycles"),
            (EVENTS, "page-faults,cycles", "page-faults"),
            (SCOPE, "shop", "shop"),
        ] {
            let message = refused(&[(name, value)]).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name}, `{part}`: ")), "{message}");
            assert!(message.contains("feature `sampling`"), "{message}");
        }
    }

    #[test]
    fn counted_events_are_each_there_once_and_unknown_ones_get_the_list() {
        let events = |value| parse(&[(EVENTS, value)]).map(|settings| settings.events);
        let known = CountedEvent::ALL.map(CountedEvent::name);
        let all = known.join(", ");
        assert_eq!(events(&all).unwrap(), CountedEvent::ALL);
        assert_eq!(events("cycles,cycles"), Ok(vec![CountedEvent::Cycles]));
        assert_eq!(events(""), Ok(Vec::new()));
        let message = events("cycles,context-switches").unwrap_err().to_string();
        assert!(message.starts_with("ANDWEORC_EVENTS is `context-switches`"), "{message}");
        assert!(known.iter().all(|name| message.contains(&format!("`{name}`"))), "{message}");
    }

    #[test]
    fn unknown_settings_are_named_with_what_was_meant() {
        let message = parse(&[("ANDWEORC_SPEEDUP", "0.5")]).unwrap_err().to_string();
        assert!(
            message.contains("ANDWEORC_SPEEDUP (did you mean ANDWEORC_SPEEDUPS?)"),
            "{message}"
        );
        let message = parse(&[("ANDWEORC_VERBOSE", "1")]).unwrap_err().to_string();
        assert!(!message.contains("did you mean") && message.contains(DURATION), "{message}");
    }

    #[test]
    fn setting_quoted_in_an_error_is_plain_and_short() {
        let unseen = "\u{202e}\u{9b}2J";
        let long = format!("{unseen}{}", "x".repeat(1_000_000));
        for (name, value) in [
            (DURATION, &*long),
            (ENABLED, &*long),
            (SCOPE, &*format!("re:({long}")),
            (SCOPE, &*format!("shop,[{long}")),
            (&*format!("ANDWEORC_{long}"), ""),
        ] {
            let message = parse(&[(name, value)]).unwrap_err().to_string();
            assert!(plain::is_plain(&message), "{message:?}");
            assert!(message.len() < 10_000, "{} bytes", message.len());
        }
    }

    #[test]
    fn on_and_off() {
        assert!(enabled(Some("1".into())).unwrap());
        assert!(!enabled(Some("0".into())).unwrap());
        assert!(!enabled(None).unwrap());
    }
}

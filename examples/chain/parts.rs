//! The services, their parts, and cases of a part that gets cheaper.

use crate::Result;
use andweorc_profile::TargetKind;
use std::fmt;

/// A service of the shop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    /// The point that tells how much it gets done.
    pub(crate) point: &'static str,
    parts: &'static [Part],
}

/// A part of a service, a span.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    name: &'static str,
    /// The part waits for the world outside, and does not work.
    is_wait: bool,
}

const fn work(name: &'static str) -> Part {
    Part { name, is_wait: false }
}

pub(crate) const GATEWAY: Service =
    Service { name: "gateway", point: "checkout", parts: &[work("quote"), work("render")] };

pub(crate) const INVENTORY: Service =
    Service { name: "inventory", point: "reserve", parts: &[work("lookup"), work("take")] };

pub(crate) const PAYMENTS: Service = Service {
    name: "payments",
    point: "pay",
    parts: &[work("check"), Part { name: "bank", is_wait: true }],
};

const SERVICES: [&Service; 3] = [&GATEWAY, &INVENTORY, &PAYMENTS];

impl Service {
    /// The service of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Service> {
        let found = SERVICES.into_iter().find(|service| service.name == name);
        found.ok_or_else(|| format!("there is no service `{name}`; --help names them").into())
    }

    /// Targets that the service tests for these cases, as `ANDWEORC_TARGETS` has them. A service
    /// without a case tests its first part, since it would choose among all of its spans otherwise.
    pub(crate) fn targets(&self, cases: &[Case]) -> String {
        let is_tested =
            |part: &&Part| cases.iter().any(|case| case.service == self && case.part == *part);
        let mut tested: Vec<String> =
            self.parts.iter().filter(is_tested).map(Part::target).collect();
        if tested.is_empty() {
            tested.extend(self.parts.first().map(Part::target));
        }
        tested.join(",")
    }
}

impl Part {
    /// Name of the part among the targets of its service.
    fn target(&self) -> String {
        if self.is_wait { format!("wait:{}", self.name) } else { self.name.to_owned() }
    }
}

/// A part that gets cheaper by so many percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) service: &'static Service,
    part: &'static Part,
    percent: u32,
}

impl Case {
    /// Reads `inventory.lookup=25`.
    pub(crate) fn read(text: &str) -> Result<Case> {
        let parts = text.split_once('=').and_then(|(name, percent)| {
            let (service, part) = name.split_once('.')?;
            Some((service, part, percent))
        });
        let (service, part, percent) =
            parts.ok_or_else(|| format!("`{text}` is no SERVICE.PART=PERCENT"))?;
        let service = Service::named(service)?;
        let part = service.parts.iter().find(|known| known.name == part).ok_or_else(|| {
            let names: Vec<&str> = service.parts.iter().map(|part| part.name).collect();
            format!("the {} has no part `{part}`, but {}", service.name, names.join(" and "))
        })?;
        match percent.parse() {
            Ok(percent) if (1..=100).contains(&percent) => Ok(Case { service, part, percent }),
            _ => Err(format!("`{percent}` is no whole percentage from 1 to 100").into()),
        }
    }

    /// The fraction by which the part gets cheaper.
    pub(crate) fn speedup(&self) -> f64 {
        f64::from(self.percent) / 100.0
    }

    /// The variable that makes the part really cheaper, and its value.
    pub(crate) fn dial(&self) -> (String, String) {
        (dial(self.part.name), (1.0 - self.speedup()).to_string())
    }

    /// Kind and name of the target in the profile of the gateway.
    pub(crate) fn in_the_gateway(&self) -> (TargetKind, String) {
        if *self.service == GATEWAY {
            return (TargetKind::Span, self.part.name.to_owned());
        }
        (TargetKind::Remote, format!("{}/{}", self.service.name, self.part.target()))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} {} % cheaper", self.service.name, self.part.name, self.percent)
    }
}

/// The variable that reduces the cost of the part `name`.
pub(crate) fn dial(name: &str) -> String {
    format!("DIAL_{}", name.to_uppercase())
}

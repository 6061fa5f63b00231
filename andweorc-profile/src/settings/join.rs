//! How a program takes part in a run of several.

use super::{SettingError, malformed};
use std::fmt;

pub(super) const COORDINATOR: &str = "ANDWEORC_COORDINATOR";
pub(super) const TOKEN: &str = "ANDWEORC_TOKEN";
pub(super) const SERVICE: &str = "ANDWEORC_SERVICE";

/// Coordinator of a run of several programs, and the part that this program has in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Join {
    /// Where the coordinator listens, `host:port`. Nothing that is sent there is encrypted.
    pub coordinator: String,
    /// Secret of the run.
    pub token: String,
    /// Name of this program, one of its own in the run.
    pub service: String,
}

impl fmt::Debug for Join {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Join { coordinator, service, .. } = self;
        let mut whole = f.debug_struct("Join");
        whole.field("coordinator", coordinator).field("service", service).finish_non_exhaustive()
    }
}

/// The settings of [`Join`], as they are found.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) coordinator: Option<String>,
    pub(super) token: Option<String>,
    pub(super) service: Option<String>,
}

impl Parts {
    /// All of them; `None` where there is none.
    pub(super) fn whole(self) -> Result<Option<Join>, SettingError> {
        let given = |part: Option<String>| part.filter(|it| !it.trim().is_empty());
        let parts = [self.coordinator, self.token, self.service].map(given);
        if parts.iter().all(Option::is_none) {
            return Ok(None);
        }
        let [coordinator, token, service] = parts;
        let need = |part: Option<String>, missing| part.ok_or(SettingError::Incomplete { missing });
        let coordinator = need(coordinator, COORDINATOR)?;
        let is_address = coordinator.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if !is_address {
            let expected = "a host and a port, such as `127.0.0.1:7000`";
            return Err(malformed(COORDINATOR, &coordinator, expected));
        }
        let (token, service) = (need(token, TOKEN)?, need(service, SERVICE)?);
        Ok(Some(Join { coordinator, token, service: service.trim().to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn parse(vars: &[(&str, &str)]) -> Result<Option<Join>, SettingError> {
        let vars = vars.iter().map(|(name, value)| (name.into(), value.into()));
        Settings::from_vars(vars).map(|settings| settings.join)
    }

    #[test]
    fn a_coordinator_needs_a_token_and_a_name() {
        let all = [(COORDINATOR, "host:7000"), (TOKEN, "secret"), (SERVICE, "shop")];
        let join = parse(&all).unwrap().unwrap();
        assert_eq!((&*join.coordinator, &*join.service), ("host:7000", "shop"));
        assert!(!format!("{join:?}").contains("secret"));
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&[(TOKEN, ""), (SERVICE, " ")]), Ok(None));
        for left_out in 0..3 {
            let mut some = all.to_vec();
            let (missing, _) = some.remove(left_out);
            let message = parse(&some).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{missing} is not set")), "{message}");
        }
    }

    #[test]
    fn an_address_without_a_port_is_refused() {
        for bad in ["host", "host:", ":7000", "host:0", "host:70000"] {
            let error = parse(&[(COORDINATOR, bad), (TOKEN, "t"), (SERVICE, "s")]).unwrap_err();
            assert!(error.to_string().contains(&format!("`{bad}`")), "{error}");
        }
    }
}

//! Services that call services: what each request of a service asks of others.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Retries;

/// A call of another service that requests of a service make after their own work. They hold their slots meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceCall {
    /// The service that is called.
    pub upstream: String,
    /// Calls of one step are made at once. The next step begins when all calls of this one have ended.
    #[serde(default)]
    pub step: u32,
    /// Share of the requests that make the call, 0..=1.
    #[serde(default = "all")]
    pub share: f64,
    /// Whether a request succeeds without the answer.
    #[serde(default)]
    pub optional: bool,
    /// Longest wait for the answer of an attempt.
    #[serde(default = "one_second", with = "humantime_serde")]
    pub deadline: Duration,
    /// What the service does about a failed attempt.
    #[serde(default)]
    pub retries: Option<Retries>,
}

/// What a service passes on with its calls, and back to its callers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PassedOn {
    /// The criticality of a request goes with its calls.
    pub criticality: bool,
    /// A call lasts no longer than what is left of the request's deadline. No call is made if nothing is left.
    pub deadline: bool,
    /// A request whose call was shed is answered as overloaded (503 with `retry-after`), not as failed (503).
    pub sheds: bool,
}

impl PassedOn {
    /// Whether it is the default, which files leave out.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

const fn all() -> f64 {
    1.0
}

const fn one_second() -> Duration {
    Duration::from_secs(1)
}

//! Adversaries: callers and services that do harm, each in a few words.
//!
//! An adversary is written as its kind, its rate and the few parameters of its kind. [`Scenario::cast`] turns each into a
//! client with [`ClientProfile::adversary`] set, and changes what its upstream does with its path where the kind needs that.
//! From then on it is a client like any other, except that its requests are not scored: they count neither as good nor as
//! missed, for the score and for the oracle.
//!
//! The oracle serves it like any caller, since its requests cannot be told from others before they have done harm. What
//! costs the service no work (a failing path, a lie, an upload that never ends, what is over a quota) costs the oracle
//! none either, and the others get all they ask for. What costs work takes its part: beyond the capacity each request
//! has the same chance, and what the others get is their fair share, the capacity times their part of all requests.
//!
//! [`ClientProfile::adversary`]: super::ClientProfile::adversary

mod cast;
mod check;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{STANDARD_UPSTREAM, Scenario};
use crate::profile::Lie;

/// What an adversary does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdversaryKind {
    /// Sends more than the service grants it, and is answered with 429 and a long `retry-after`.
    OverQuota,
    /// Asks for a path that always fails.
    CrashingPath,
    /// Claims to be a health checker by its `user-agent`.
    ForgedAgent,
    /// Begins uploads that never end.
    StalledUpload,
    /// Reads a body that holds a slot as slowly as it can, and goes away in the middle.
    SlowReader,
    /// Cancels its requests in bulk as soon as they are sent (HTTP/2 rapid reset).
    BulkReset,
    /// Waits for a few milliseconds only, or asks the proxy to.
    ShortDeadline,
    /// Claims to be more important than all others.
    ForgedCriticality,
    /// Has chosen a cohort that is served first.
    ForgedCohort,
    /// Sends more than its share, under a cohort of its own.
    Flood,
    /// Retries at once and without end, and does not mark retries.
    EndlessRetries,
    /// A service that lies in its answers, and a caller that asks for them.
    LyingUpstream,
}

impl AdversaryKind {
    /// Every kind, in the order of tables.
    pub const ALL: [Self; 12] = [
        Self::OverQuota,
        Self::CrashingPath,
        Self::ForgedAgent,
        Self::StalledUpload,
        Self::SlowReader,
        Self::BulkReset,
        Self::ShortDeadline,
        Self::ForgedCriticality,
        Self::ForgedCohort,
        Self::Flood,
        Self::EndlessRetries,
        Self::LyingUpstream,
    ];

    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OverQuota => "over_quota",
            Self::CrashingPath => "crashing_path",
            Self::ForgedAgent => "forged_agent",
            Self::StalledUpload => "stalled_upload",
            Self::SlowReader => "slow_reader",
            Self::BulkReset => "bulk_reset",
            Self::ShortDeadline => "short_deadline",
            Self::ForgedCriticality => "forged_criticality",
            Self::ForgedCohort => "forged_cohort",
            Self::Flood => "flood",
            Self::EndlessRetries => "endless_retries",
            Self::LyingUpstream => "lying_upstream",
        }
    }
}

impl fmt::Display for AdversaryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a caller with a short deadline enforces it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// It goes away.
    #[default]
    Cancel,
    /// It asks the proxy for it (`x-envoy-upstream-rq-timeout-ms`), which then ends the request as timed out.
    Header,
}

/// An adversary as it is written. A parameter that its kind does not have is a fault; one that is left out has the default
/// of [`Scenario::cast`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adversary {
    /// What it does.
    pub kind: AdversaryKind,
    /// The upstream that it calls.
    #[serde(default = "standard_upstream_name")]
    pub upstream: String,
    /// Rate as a multiple of what the upstream can serve of such requests. Either this or `rps`.
    pub x: Option<f64>,
    /// Requests a second. Either this or `x`.
    pub rps: Option<f64>,
    /// From when on.
    #[serde(default, with = "humantime_serde")]
    pub start: Duration,
    /// Until when; none: to the end.
    #[serde(default, with = "humantime_serde")]
    pub stop: Option<Duration>,
    /// It sends in spells of its rate, and nothing in between.
    pub spells: Option<Spells>,
    /// The path that it asks for (crashing path, slow reader, lying upstream).
    pub path: Option<String>,
    /// Status of the refusal or failure (over quota, crashing path).
    pub status: Option<u16>,
    /// Requests a second that the service grants it (over quota).
    pub granted: Option<f64>,
    /// Seconds of the refusal's `retry-after` (over quota).
    pub retry_after: Option<u32>,
    /// Its `user-agent` (forged agent).
    pub agent: Option<String>,
    /// Its cohort (forged cohort, flood).
    pub cohort: Option<String>,
    /// Its criticality (forged criticality).
    pub criticality: Option<String>,
    /// For how long it waits or reads (stalled upload, slow reader, bulk reset, short deadline, lying upstream).
    #[serde(default, with = "humantime_serde")]
    pub after: Option<Duration>,
    /// How it cuts a request short (short deadline).
    pub cut: Option<Cut>,
    /// Pause between two attempts (endless retries).
    #[serde(default, with = "humantime_serde")]
    pub backoff: Option<Duration>,
    /// The upstream's lie (lying upstream).
    pub lie: Option<Lie>,
}

/// Regular spells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spells {
    /// Distance between the beginnings of two.
    #[serde(with = "humantime_serde")]
    pub every: Duration,
    /// Length of one.
    #[serde(with = "humantime_serde")]
    pub length: Duration,
}

fn standard_upstream_name() -> String {
    STANDARD_UPSTREAM.to_owned()
}

impl Adversary {
    /// One that sends `x` of what the upstream can serve of such requests, with the defaults of its kind.
    #[must_use]
    pub fn of(kind: AdversaryKind, x: f64) -> Self {
        Self {
            kind,
            upstream: standard_upstream_name(),
            x: Some(x),
            rps: None,
            start: Duration::ZERO,
            stop: None,
            spells: None,
            path: None,
            status: None,
            granted: None,
            retry_after: None,
            agent: None,
            cohort: None,
            criticality: None,
            after: None,
            cut: None,
            backoff: None,
            lie: None,
        }
    }
}

impl Scenario {
    /// The kind of the adversary that a client is; none for an honest one.
    #[must_use]
    pub fn adversary(&self, client: usize) -> Option<AdversaryKind> {
        self.clients.get(client)?.adversary
    }
}

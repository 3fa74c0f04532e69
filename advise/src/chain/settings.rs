//! Settings in the form that the checks need. The program that reads files converts to it.

use std::fmt;
use std::time::Duration;

use tidegate_core::config::Pattern;

use crate::recommend::ObjectiveInForce;

/// The object that contains a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingOrigin {
    /// Kind, namespace and name.
    pub object: String,
    /// File, line and column.
    pub place: String,
}

/// Timeout and retries of the calls of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteTerms {
    /// The object that sets them.
    pub origin: SettingOrigin,
    /// The service that is called, as [`qualified_host`] writes it.
    pub host: String,
    /// Whether only gateways use the route, and no sidecar.
    pub is_for_gateways: bool,
    /// The longest time for a request with all its retries; `None`: no bound.
    pub timeout: Option<Duration>,
    /// How often a failed request is tried again.
    pub retries: u32,
    /// The longest time for each try; `None`: that of the timeout.
    pub per_try: Option<Duration>,
}

/// A static bound on the requests in flight of one proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticPool {
    /// The object that sets it.
    pub origin: SettingOrigin,
    /// The host, with `*` for any text, as [`qualified_host`] writes it.
    pub host: String,
    /// Maximum of requests in flight.
    pub in_flight: u64,
    /// The field that bounds them.
    pub field: String,
}

/// The terms of a policy for an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyTerms {
    /// The policy.
    pub origin: SettingOrigin,
    /// The objective.
    pub objective: ObjectiveInForce,
    /// Least concurrency limit of a proxy.
    pub min_limit: u32,
    /// Greatest concurrency limit per endpoint.
    pub max_limit: u32,
}

/// Two policies that compete for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOverlap {
    /// The policy that wins.
    pub winner: String,
    /// The policy that loses.
    pub loser: String,
    /// What they compete for.
    pub target: String,
    /// Whether the loser has no effect at all there.
    pub is_whole: bool,
}

impl RouteTerms {
    /// The longest time that all tries together take, if each try is bounded.
    #[must_use]
    pub fn all_tries(&self) -> Option<Duration> {
        let tries = self.retries.saturating_add(1);
        Some(self.per_try?.saturating_mul(tries))
    }

    /// The longest time that a caller waits; `None`: no bound.
    #[must_use]
    pub fn longest_wait(&self) -> Option<Duration> {
        match (self.timeout, self.all_tries()) {
            (Some(timeout), Some(tries)) => Some(timeout.min(tries)),
            (timeout, tries) => timeout.or(tries),
        }
    }
}

/// The limit of a policy that a static pool is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitAbovePool {
    /// `limit.min`, for a proxy: the policy has no effect.
    Min(u32),
    /// `limit.max`, per endpoint: the pool limits before the policy may.
    Max(u32),
}

impl fmt::Display for LimitAbovePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Min(limit) => write!(f, "limit.min {limit} of a proxy"),
            Self::Max(limit) => write!(f, "limit.max {limit} per endpoint"),
        }
    }
}

impl StaticPool {
    /// Which of a policy's limits it is below.
    #[must_use]
    pub fn limit_above(&self, min: u32, max: u32) -> Option<LimitAbovePool> {
        let is_below = |limit: u32| self.in_flight < u64::from(limit);
        if is_below(min) {
            Some(LimitAbovePool::Min(min))
        } else {
            is_below(max).then_some(LimitAbovePool::Max(max))
        }
    }

    /// Whether it holds for a service.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        Pattern::parse(&self.host).is_some_and(|pattern| pattern.matches(host))
    }
}

/// A host of Istio as `service.namespace`: a short name is one of `namespace`, and what follows `.svc` is left out.
#[must_use]
pub fn qualified_host(host: &str, namespace: &str) -> String {
    let host = host.to_ascii_lowercase();
    if !host.contains(['.', '*']) {
        return format!("{host}.{namespace}");
    }
    let mut labels = host.splitn(4, '.');
    match (labels.next(), labels.next(), labels.next()) {
        (Some(service), Some(namespace), Some("svc")) => format!("{service}.{namespace}"),
        _ => host,
    }
}

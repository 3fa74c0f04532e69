//! How an upstream behaves, as plain data.
//!
//! A [`Behaviour`] is what an upstream does at one moment: how many requests it
//! serves at once, how long each takes, which share fails. A [`Change`] names the
//! fields that become different at some time. Neither knows of sockets: the
//! testbed's server and the simulated world follow it, and the oracle in
//! [`crate::oracle`] computes with it.

mod body;
mod capacity;
pub(crate) mod check;
mod crowding;
mod lie;
mod pauses;
mod service;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use body::{Body, HeaderTiming};
pub use crowding::{Connections, Contention};
pub use lie::Lie;
pub use pauses::{PauseClock, Pauses};
pub use service::ServiceTime;

/// What an upstream does with requests at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// Endpoints in rotation, each of which behaves like this.
    pub endpoints: u32,
    /// Requests that an endpoint serves at the same time; the others wait in order of arrival.
    pub slots: u32,
    /// How long the work of a request takes; it holds its slot for this time, and for its body where that says so.
    pub service: ServiceTime,
    /// Service times of single paths, instead of `service`.
    pub paths: BTreeMap<String, ServiceTime>,
    /// Body of the responses 200; none: they end with their headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Bodies of single paths, instead of `body`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bodies: BTreeMap<String, Body>,
    /// When the headers of responses are sent.
    #[serde(skip_serializing_if = "HeaderTiming::is_default")]
    pub headers: HeaderTiming,
    /// Paths that always fail, at once and without a slot, with this status.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failing: BTreeMap<String, u16>,
    /// Paths that are answered with a lie.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lies: BTreeMap<String, Lie>,
    /// Stalls of a whole endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
    /// How requests in slots slow each other down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
    /// Bound of the requests that are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Bound of the waiting line; none: it grows without end.
    pub queue: Option<QueueBound>,
    /// Whether it answers at all.
    pub mode: UpstreamMode,
    /// Failures that do not depend on load.
    pub errors: Option<Errors>,
    /// Answers that arrive late without holding a slot (a slow neighbor downstream of the service).
    pub delay: Option<Delay>,
    /// What happens to the work of a caller that went away.
    pub abandoned: Abandoned,
}

/// The standard upstream: 16 slots, 40 ms on average, 400 requests a second.
impl Default for Behaviour {
    fn default() -> Self {
        Self {
            endpoints: 1,
            slots: 16,
            service: ServiceTime::Lognormal {
                mean: Duration::from_millis(40),
                sigma: 0.5,
            },
            paths: BTreeMap::new(),
            body: None,
            bodies: BTreeMap::new(),
            headers: HeaderTiming::AfterWork,
            failing: BTreeMap::new(),
            lies: BTreeMap::new(),
            pauses: None,
            contention: None,
            connections: None,
            queue: None,
            mode: UpstreamMode::Serve,
            errors: None,
            delay: None,
            abandoned: Abandoned::Finish,
        }
    }
}

/// Whether and how an upstream answers at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamMode {
    /// Serves as described.
    Serve,
    /// Answers every request at once with 500 (gRPC: UNAVAILABLE).
    Fail,
    /// Accepts requests and never answers; the callers have to give up.
    Hang,
    /// Refuses connections and closes those there are.
    Refuse,
    /// Accepts a request, then closes its connection.
    Reset,
}

impl UpstreamMode {
    /// Whether it answers at all.
    #[must_use]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Serve)
    }
}

/// Bound of the waiting line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueBound {
    /// Most requests that wait; one more is answered with `status` at once.
    pub max: u32,
    /// Status of that answer.
    #[serde(default = "unavailable")]
    pub status: u16,
    /// Value of its `retry-after` header in seconds, where it has one.
    #[serde(default)]
    pub retry_after: Option<u32>,
}

const fn unavailable() -> u16 {
    503
}

const fn internal_error() -> u16 {
    500
}

/// Failures that do not depend on load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// Share of requests that fail, 0..=1.
    pub share: f64,
    /// Status of the failures.
    #[serde(default = "internal_error")]
    pub status: u16,
}

/// Answers that come late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Share of requests that are late, 0..=1.
    pub share: f64,
    /// By how much.
    #[serde(with = "humantime_serde")]
    pub by: Duration,
}

/// What happens to the work of a caller that went away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Abandoned {
    /// The work is done anyway, as in most servers with a pool of threads.
    Finish,
    /// The request leaves the line or its slot at once.
    Skip,
}

/// The fields of a [`Behaviour`] that become different; the others stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// New number of endpoints in rotation.
    pub endpoints: Option<u32>,
    /// New number of slots.
    pub slots: Option<u32>,
    /// New service time.
    pub service: Option<ServiceTime>,
    /// New mode.
    pub mode: Option<UpstreamMode>,
    /// New share of errors; a share of 0 ends them.
    pub errors: Option<Errors>,
    /// New delay; a share of 0 ends it.
    pub delay: Option<Delay>,
    /// New bound of the waiting line.
    pub queue: Option<QueueBound>,
    /// New body of the responses.
    pub body: Option<Body>,
    /// New paths that always fail, instead of those before; an empty table ends them.
    pub failing: Option<BTreeMap<String, u16>>,
    /// New stalls; a length of 0 ends them.
    pub pauses: Option<Pauses>,
    /// New contention; a slope of 0 ends it.
    pub contention: Option<Contention>,
}

impl Change {
    /// A change of the mode alone.
    #[must_use]
    pub fn mode(mode: UpstreamMode) -> Self {
        Self {
            mode: Some(mode),
            ..Self::default()
        }
    }

    /// A change of the number of slots alone.
    #[must_use]
    pub fn slots(slots: u32) -> Self {
        Self {
            slots: Some(slots),
            ..Self::default()
        }
    }
}

impl Behaviour {
    /// How long the work of a request for `path` takes.
    #[must_use]
    pub fn service_for(&self, path: &str) -> &ServiceTime {
        self.paths.get(path).unwrap_or(&self.service)
    }

    /// The body of a response to a request for `path`.
    #[must_use]
    pub fn body_for(&self, path: &str) -> Option<&Body> {
        self.bodies.get(path).or(self.body.as_ref())
    }

    /// Takes over the fields that `change` names.
    pub fn apply(&mut self, change: &Change) {
        let Change {
            endpoints,
            slots,
            service,
            mode,
            errors,
            delay,
            queue,
            body,
            failing,
            pauses,
            contention,
        } = change.clone();
        self.endpoints = endpoints.unwrap_or(self.endpoints);
        self.slots = slots.unwrap_or(self.slots);
        self.mode = mode.unwrap_or(self.mode);
        self.errors = errors.or(self.errors);
        self.delay = delay.or(self.delay);
        self.queue = queue.or(self.queue);
        self.body = body.or(self.body);
        self.pauses = pauses.or(self.pauses);
        self.contention = contention.or(self.contention);
        if let Some(failing) = failing {
            self.failing = failing;
        }
        if let Some(service) = service {
            self.service = service;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_upstream_serves_400_a_second() {
        assert!((Behaviour::default().capacity() - 400.0).abs() < 1e-9);
    }

    #[test]
    fn change_leaves_what_it_does_not_name() {
        let mut behaviour = Behaviour::default();
        behaviour.apply(&Change::slots(8));
        behaviour.apply(&Change::mode(UpstreamMode::Hang));
        assert_eq!(behaviour.slots, 8);
        assert_eq!(behaviour.mode, UpstreamMode::Hang);
        assert_eq!(behaviour.service, Behaviour::default().service);
    }
}

//! Envoy's circuit breakers: a number of requests in flight that somebody wrote down.
//!
//! Envoy's defaults are 1,024 connections, pending requests and requests for each cluster, counted for the whole
//! process. The tuned variant allows 32, twice the slots of the standard upstream: only somebody who knows the
//! capacity can set that. Every one of the three is at the same value, so that the least of them binds; on a real
//! Envoy with HTTP/1.1 the tuned setting was seen to hold 32 in flight, waiting ones included.
//!
//! Source: Envoy 1.40, `envoy.config.cluster.v3.CircuitBreakers`,
//! <https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/cluster/v3/circuit_breaker.proto>.

use super::limiter::{Limit, Limiter, Sample};
use crate::contender::{Kind, Made};
use crate::scenario::Scenario;

/// Envoy's defaults.
pub(super) const DEFAULT: Kind = Kind {
    name: "static-default",
    title: "Envoy circuit breakers, default 1,024",
    is_tuned: false,
    make: make_default,
};

/// Set by somebody who knows the capacity.
pub(super) const TUNED: Kind = Kind {
    name: "static-tuned",
    title: "Envoy circuit breakers, tuned to 32",
    is_tuned: true,
    make: make_tuned,
};

const DEFAULT_REQUESTS: f64 = 1_024.0;
/// The slots of the standard upstream and as many waiting.
const TUNED_REQUESTS: f64 = 32.0;

struct Static(f64);

impl Limit for Static {
    fn limit(&self) -> f64 {
        self.0
    }

    fn on_sample(&mut self, _sample: &Sample) {}
}

fn make(scenario: &Scenario, requests: f64) -> Limiter<Static> {
    let limits = scenario.upstreams.iter().map(|_| Static(requests));
    Limiter::new(limits.collect())
}

fn make_default(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(make(scenario, DEFAULT_REQUESTS)))
}

fn make_tuned(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(make(scenario, TUNED_REQUESTS)))
}

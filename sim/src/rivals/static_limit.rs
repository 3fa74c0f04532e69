//! Envoy's circuit breakers: a configured number of requests in flight.
//!
//! Envoy's defaults are 1,024 connections, pending requests and requests for each cluster, counted for the whole
//! process. The tuned variants are set to 32, twice the slots of the standard upstream, which
//! needs knowledge of the capacity. With HTTP/2 the bound on requests is what binds. With HTTP/1.1, where a request needs a
//! connection to itself, as many more wait for one: a real Envoy with every threshold at 32 holds 64.
//!
//! Source: Envoy 1.40, `envoy.config.cluster.v3.CircuitBreakers`,
//! <https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/cluster/v3/circuit_breaker.proto>.

use super::limiter::{LatencySample, LimitAlgorithm, LimitContender};
use crate::contender::{Contender, Made};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

/// Envoy's defaults.
pub(super) const DEFAULT: ContenderKind = ContenderKind {
    name: "static-default",
    title: "Envoy circuit breakers, default 1,024",
    make: Make::Published(make_default),
};

/// Tuned to the known capacity.
pub(super) const TUNED: ContenderKind = ContenderKind {
    name: "static-tuned",
    title: "Envoy circuit breakers, tuned to 32 requests",
    make: Make::Tuned(make_tuned),
};

/// The same where a request needs a connection to itself.
pub(super) const TUNED_HTTP1: ContenderKind = ContenderKind {
    name: "static-tuned-http1",
    title: "Envoy circuit breakers, tuned to 32 and 32 pending",
    make: Make::Tuned(make_tuned_http1),
};

const DEFAULT_REQUESTS: f64 = 1_024.0;
/// The slots of the standard upstream and as many waiting.
const TUNED_REQUESTS: f64 = 32.0;
/// Requests that wait for a connection.
const TUNED_PENDING: f64 = 32.0;

struct Static(f64);

impl LimitAlgorithm for Static {
    fn limit(&self) -> f64 {
        self.0
    }

    fn on_sample(&mut self, _sample: &LatencySample) {}
}

fn make(scenario: &Scenario, requests: f64) -> LimitContender<Static> {
    let limits = scenario.upstreams.iter().map(|_| Static(requests));
    LimitContender::new(limits.collect())
}

/// A contender with this limit on requests.
pub(super) fn fixed(scenario: &Scenario, requests: f64) -> Box<dyn Contender> {
    Box::new(make(scenario, requests))
}

fn make_default(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(make(scenario, DEFAULT_REQUESTS)))
}

fn make_tuned(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(make(scenario, TUNED_REQUESTS)))
}

fn make_tuned_http1(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(make(scenario, TUNED_REQUESTS + TUNED_PENDING)))
}

#[cfg(test)]
mod tests {
    use tidegate_core::Instant;

    use super::super::trial::first_ask;
    use super::*;
    use crate::contender::{Admission, Ask};

    #[test]
    fn refuses_what_would_exceed_the_number() {
        let mut limiter = LimitContender::new(vec![Static(TUNED_REQUESTS)]);
        let mut with = |in_flight| {
            let ask = Ask {
                in_flight,
                ..first_ask()
            };
            limiter.admit(&ask, Instant::ZERO)
        };
        assert_eq!(with(31), Admission::Admit);
        assert_eq!(with(32), Admission::shed("limit"));
    }
}

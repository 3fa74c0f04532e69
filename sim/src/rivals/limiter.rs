//! Concurrency limits as contenders: the code that all limit algorithms of this folder share.
//!
//! Netflix's `SimpleLimiter` keeps one limit for one service and refuses what would exceed it. Here every
//! upstream has one, shared by the workers of the proxy.
//!
//! Source: Netflix concurrency-limits, `SimpleLimiter` and `Limiter.Listener`,
//! <https://github.com/Netflix/concurrency-limits>.
//!
//! Edges: the library lets its user define a *drop*. Here it is any loss for the caller:
//! a failure, an overload signal, or a caller that went away because its deadline passed. Ignored
//! outcomes (a client error) are not samples, and neither are responses that their callers closed: the library's gRPC
//! server interceptor ignores canceled calls.

use std::time::Duration;

use tidegate_core::{Instant, Outcome};

use crate::contender::{Admission, Ask, Contender, ContenderView, Done};
use crate::number;

/// One completed request, as a limit algorithm sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatencySample {
    /// From admission to the end.
    pub(super) rtt: Duration,
    /// Requests in flight when it was admitted, itself included.
    pub(super) in_flight: u32,
    /// Whether it was lost.
    pub(super) is_drop: bool,
    /// When it ended.
    pub(super) now: Instant,
}

/// An algorithm that moves a concurrency limit.
pub(super) trait LimitAlgorithm {
    /// Most requests in flight; enforced rounded down.
    fn limit(&self) -> f64;

    /// Learns from one completed request.
    fn on_sample(&mut self, sample: &LatencySample);
}

/// A contender that enforces a limit for each upstream.
pub(super) struct LimitContender<L> {
    limits: Vec<L>,
}

impl<L: LimitAlgorithm> LimitContender<L> {
    /// One limit for each of the upstreams, by their index.
    pub(super) const fn new(limits: Vec<L>) -> Self {
        Self { limits }
    }
}

/// The sample of a completed request; none if its outcome does not count.
pub(super) fn sample(done: &Done, now: Instant) -> Option<LatencySample> {
    let is_drop = match done.outcome {
        Outcome::Success => false,
        Outcome::Cancelled if done.is_answered => return None,
        Outcome::Failure(_) | Outcome::Overload { .. } | Outcome::Cancelled => true,
        Outcome::Ignored => return None,
    };
    Some(LatencySample {
        rtt: done.latency,
        in_flight: done.in_flight_before,
        is_drop,
        now,
    })
}

impl<L: LimitAlgorithm> Contender for LimitContender<L> {
    fn admit(&mut self, ask: &Ask<'_>, _now: Instant) -> Admission {
        let limit = self.limits.get(ask.upstream).map_or(f64::MAX, L::limit);
        if number::float(u64::from(ask.in_flight)) < limit.floor() {
            Admission::Admit
        } else {
            Admission::shed("limit")
        }
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        if let (Some(limit), Some(sample)) = (self.limits.get_mut(done.upstream), sample(done, now))
        {
            limit.on_sample(&sample);
        }
    }

    fn view(&self, upstream: usize, _now: Instant) -> ContenderView {
        ContenderView {
            limit: self.limits.get(upstream).map(|l| l.limit().floor()),
            breaker: None,
        }
    }
}

//! What the tests of the limit share.

use core::time::Duration;

use super::window::WindowStats;
use super::{FloorCheckpoint, LimitCheckpoint, Limiter, Terms};
use crate::config::{Config, Policy, RuleIndex};
use crate::sample::Sample;
use crate::shed::ShedReason;
use crate::tally::Count;
use crate::time::Instant;
use crate::units::Seconds;

/// A window without a queue: 100 answers a second of 100 ms.
pub(super) const CALM: WindowStats = WindowStats {
    span: 1.0,
    throughput: 100.0,
    in_flight: 10.0,
    in_flight_at_end: 10.0,
    low: 0.1,
    mean: 0.1,
    delay: 0.0,
    cost: 0.0,
    odds: f32::INFINITY,
    is_delayed: false,
    is_busy: false,
    is_hidden: false,
    is_fast: true,
    is_refusing: false,
    is_draining: false,
    refused: 0.0,
    refused_share: 0.0,
    demand: 0.0,
    together: 0.0,
};

pub(super) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

#[track_caller]
pub(super) fn assert_close(found: f64, expected: f64, case: &str) {
    let error = (found - expected).abs();
    assert!(
        error <= 1e-6 * expected.abs().max(1.0),
        "{case}: {found}, not {expected}"
    );
}

/// An objective of 300 ms for 99 of 100, and limits from 1 to 1000 that begin at 20.
pub(super) fn policy() -> Policy {
    let text = r#"{
        "slo":{"latency":{"quantile":0.99,"target":"300ms"}},
        "stance":"failFast",
        "limit":{"min":1,"max":1000,"initial":20}
    }"#;
    let config = Config::from_json(text.as_bytes()).unwrap();
    config.policy(RuleIndex::TopLevel).clone()
}

pub(super) fn terms(policy: &Policy) -> Terms<'_> {
    Terms {
        slo: policy.slo(),
        limit: policy.limit(),
        stance: policy.stance(),
        ahead: Duration::ZERO,
    }
}

/// This latency without a queue, and this tail, seconds.
pub(super) const fn floor(mean: f64, tail: f64) -> FloorCheckpoint {
    FloorCheckpoint {
        low: Seconds::new(mean),
        mean: Seconds::new(mean),
        tail: Seconds::new(tail),
    }
}

/// `answers` of `ms` milliseconds each within `span_ms`, with the number in flight of Little's law.
pub(super) fn window(span_ms: u64, answers: u64, ms: u64) -> Sample {
    let mut sample = Sample::empty(Duration::from_millis(span_ms));
    sample.tally.add(Count::Arrivals, answers);
    for _ in 0..answers {
        sample.tally.add_success(Duration::from_millis(ms));
    }
    sample.holding(answers * ms / span_ms)
}

impl Sample {
    /// With this many in flight on average and at the end.
    pub(super) fn holding(mut self, in_flight: u64) -> Self {
        let micros = u64::try_from(self.span.as_micros()).unwrap() * in_flight;
        let counted = self.tally.get(Count::InFlightMicros);
        // Sums wrap, so this sets it.
        self.tally
            .add(Count::InFlightMicros, micros.wrapping_sub(counted));
        self.in_flight = u32::try_from(in_flight).unwrap();
        self
    }

    /// With this many more requests that were refused because of load.
    pub(super) fn refusing(mut self, refused: u64) -> Self {
        self.tally.add(Count::Arrivals, refused);
        for _ in 0..refused {
            self.tally.add_shed(ShedReason::Limit, true);
        }
        self
    }
}

/// A limiter, its policy and the time.
pub(super) struct Rig {
    pub(super) limiter: Limiter,
    pub(super) policy: Policy,
    pub(super) now: Instant,
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::resume(&LimitCheckpoint::default())
    }

    pub(super) fn resume(known: &LimitCheckpoint) -> Self {
        Self {
            limiter: Limiter::resume(known),
            policy: policy(),
            now: at(0),
        }
    }

    /// An upstream that has given 100 answers a second of 100 ms for three seconds.
    pub(super) fn calm() -> Self {
        let mut rig = Self::new();
        rig.rounds(30, &window(100, 10, 100));
        rig
    }

    /// The same while a queue stands.
    pub(super) fn held() -> Self {
        let mut rig = Self::calm();
        rig.rounds(5, &queue());
        assert!(rig.limiter.is_congested());
        rig
    }

    /// One round after another. Answers with the limits after the last.
    pub(super) fn rounds(&mut self, n: u32, sample: &Sample) -> (u32, u32) {
        for _ in 0..n {
            self.now = self.now + sample.span;
            self.limiter.update(sample, terms(&self.policy), self.now);
            self.limits();
        }
        self.limits()
    }

    pub(super) fn limits(&mut self) -> (u32, u32) {
        self.limiter.limits(terms(&self.policy))
    }

    /// Whether the floor may include a queue.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.limiter.is_in_doubt(self.policy.slo())
    }

    /// The limit for the marginal level.
    pub(super) fn limit(&mut self) -> u32 {
        self.limits().0
    }
}

/// A tenth of a second of that upstream behind a queue of 300 ms that refuses a third.
pub(super) fn queue() -> Sample {
    window(100, 10, 400).refusing(5)
}

//! What the control laws know of an upstream, in a form that travels and outlives them.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Slo;
use crate::time::Instant;

/// Most answers come within so many mean latencies.
const USUAL_OF_MEAN: u32 = 2;
/// Silence for so many mean latencies, and so many targets, is more than a bad moment.
const HANG_OF_MEAN: u32 = 5;
const HANG_OF_TARGET: u32 = 2;
/// Garbage collectors and schedulers pause for longer than a tight target.
const MIN_HANG: Duration = Duration::from_millis(500);

/// What the laws know of an upstream; outlives VMs and configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Low quantile of the no-load latency, seconds; 0 while unknown.
    pub baseline_low: f32,
    /// Mean no-load latency, seconds.
    pub baseline_mean: f32,
    /// The SLO's quantile of the no-load latency, seconds.
    pub baseline_tail: f32,
    /// The same low quantile now, seconds.
    pub sample_low: f32,
    /// The SLO's quantile now, seconds.
    pub sample_tail: f32,
    /// Answers a second it can give, as far as seen.
    pub capacity: f32,
    /// The limit while a queue stands; 0 when none does.
    pub hold: f32,
    /// Whether a queue stands.
    pub congested: bool,
    /// Endpoints the limits were learned with, 0 when unknown.
    pub endpoints: u32,
    /// Share of outcomes that usually fail, 0..=1.
    pub failure_rate: f32,
    /// Outcomes a second.
    pub rate: f32,
    /// When the outage under way began.
    pub outage_since: Instant,
    /// The open interval in force, milliseconds; 0 when closed.
    pub open_interval_ms: u32,
    /// Most in flight for failures that load causes; 0 when there are none.
    pub ceiling: f32,
    /// Whether failures became rarer under it.
    pub ceiling_proven: bool,
    /// How much of what the objective leaves bursts may wait for, above 0 and up to 2; 0 while nothing is known.
    pub burst_gain: f32,
}

/// Why the limit is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitReason {
    /// Nothing is known yet.
    #[default]
    WarmUp,
    /// No queue stands: as much as the SLO's latency affords.
    Burst,
    /// A queue stands: the knee.
    Knee,
    /// Load-caused failures put a ceiling.
    LoadFailures,
    /// The policy's bounds.
    Bounds,
    /// No queue stands, and no shedding makes most answers be in time.
    Unreachable,
}

impl LimitReason {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::WarmUp,
        Self::Burst,
        Self::Knee,
        Self::LoadFailures,
        Self::Bounds,
        Self::Unreachable,
    ];

    /// The reason's name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Burst => "burst",
            Self::Knee => "knee",
            Self::LoadFailures => "load_failures",
            Self::Bounds => "bounds",
            Self::Unreachable => "objective_unreachable",
        }
    }
}

impl Learned {
    /// The share of outcomes that usually fail, 0..=1; `None` while nothing is known.
    pub(crate) fn usual_failure_rate(&self) -> Option<f64> {
        (self.rate > 0.0).then(|| f64::from(self.failure_rate))
    }

    /// How long a request must have waited for its caller's leaving to say something: longer than most answers take, or,
    /// where that is not known, the objective's `target`.
    pub(crate) fn usual_wait(&self, target: Duration) -> Duration {
        match self.usual_latency() {
            Duration::ZERO => target,
            mean => mean.saturating_mul(USUAL_OF_MEAN).min(target),
        }
    }

    /// How long a request may wait for its headers before it counts as hanging: longer than any queue within the objective,
    /// and than an upstream that is slow by nature usually takes.
    pub(crate) fn hang_after(&self, slo: &Slo) -> Duration {
        slo.latency_target()
            .saturating_mul(HANG_OF_TARGET)
            .max(self.usual_latency().saturating_mul(HANG_OF_MEAN))
            .max(MIN_HANG)
    }

    /// The mean no-load latency; zero while unknown.
    pub(crate) fn usual_latency(&self) -> Duration {
        Duration::try_from_secs_f32(self.baseline_mean).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, RuleIndex};

    /// Mean latency in seconds, objective in milliseconds, and how long a request may wait in milliseconds.
    #[test]
    fn a_hang_is_known_by_the_objective_and_by_what_answers_usually_take() {
        for (mean, target_ms, expected) in [
            (0.0, 300, 600),
            (0.0625, 300, 600),
            (0.5, 7_000, 14_000),
            (0.015_625, 200, 500),
            (0.5, 100, 2_500),
        ] {
            let text =
                format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"{target_ms}ms"}}}}}}"#);
            let config = Config::from_json(text.as_bytes()).unwrap();
            let learned = Learned {
                baseline_mean: mean,
                ..Learned::default()
            };
            let hang_after = learned.hang_after(config.policy(RuleIndex::TopLevel).slo());
            assert_eq!(
                hang_after,
                Duration::from_millis(expected),
                "{mean} {target_ms}"
            );
        }
    }

    #[test]
    fn who_leaves_sooner_than_answers_usually_come_says_nothing() {
        let target = Duration::from_millis(300);
        let wait = |mean| {
            Learned {
                baseline_mean: mean,
                ..Learned::default()
            }
            .usual_wait(target)
        };
        assert_eq!(wait(0.0), target);
        assert_eq!(wait(0.0625), Duration::from_millis(125));
        assert_eq!(wait(1.0), target);
    }
}

//! Figures of a run and the ranges in which they must lie.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A figure of a run that a scenario can expect something of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Good answers / oracle's good answers, over all upstreams.
    Score,
    /// The lowest score of a single upstream that the oracle could serve at all.
    ScoreWorstUpstream,
    /// The lowest score of an upstream that is up all the time.
    ScoreHealthy,
    /// Share of the most critical class that got a good answer.
    CriticalSuccess,
    /// Share of offered requests that were shed.
    ShedRatio,
    /// Sheds beyond those that an oracle would have made, as a share of the offered requests.
    FalseShedRatio,
    /// 99th percentile of the latency of admitted and answered requests, in milliseconds.
    AdmittedP99Ms,
    /// Longest settle time after a step, in seconds.
    SettleS,
    /// Longest recovery time after an outage, in seconds.
    RecoveryS,
    /// Longest time from a fall of the load to the last shed before the next mark, in seconds.
    CalmS,
    /// Attempts that reached an upstream while it was down, for each request offered to it then: above 1 where callers retry.
    ReachedWhileDownRatio,
    /// Attempts that reached the upstreams over what they can serve at the start in that time.
    ReachedOverCapacity,
    /// How often a breaker opened.
    BreakerOpened,
    /// How evenly good answers are spread over the proxies, by Jain's index.
    ProxyFairness,
    /// Share of the work for requests whose caller got no answer 200, where services call services.
    WastedWork,
}

impl Measure {
    /// Every figure, in the order of reports.
    pub const ALL: [Self; 15] = [
        Self::Score,
        Self::ScoreWorstUpstream,
        Self::ScoreHealthy,
        Self::CriticalSuccess,
        Self::ShedRatio,
        Self::FalseShedRatio,
        Self::AdmittedP99Ms,
        Self::SettleS,
        Self::RecoveryS,
        Self::CalmS,
        Self::ReachedWhileDownRatio,
        Self::ReachedOverCapacity,
        Self::BreakerOpened,
        Self::ProxyFairness,
        Self::WastedWork,
    ];
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Score => "score",
            Self::ScoreWorstUpstream => "score_worst_upstream",
            Self::ScoreHealthy => "score_healthy",
            Self::CriticalSuccess => "critical_success",
            Self::ShedRatio => "shed_ratio",
            Self::FalseShedRatio => "false_shed_ratio",
            Self::AdmittedP99Ms => "admitted_p99_ms",
            Self::SettleS => "settle_s",
            Self::RecoveryS => "recovery_s",
            Self::CalmS => "calm_s",
            Self::ReachedWhileDownRatio => "reached_while_down_ratio",
            Self::ReachedOverCapacity => "reached_over_capacity",
            Self::BreakerOpened => "breaker_opened",
            Self::ProxyFairness => "proxy_fairness",
            Self::WastedWork => "wasted_work",
        })
    }
}

/// A closed range; a missing bound does not bind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Smallest value that is as expected.
    #[serde(default)]
    pub min: Option<f64>,
    /// Greatest value that is as expected.
    #[serde(default)]
    pub max: Option<f64>,
}

impl Range {
    /// Whether `value` lies in the range; NaN never does.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        !value.is_nan()
            && self.min.is_none_or(|min| value >= min)
            && self.max.is_none_or(|max| value <= max)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, "{min}..={max}"),
            (Some(min), None) => write!(f, ">= {min}"),
            (None, Some(max)) => write!(f, "<= {max}"),
            (None, None) => f.write_str("anything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_never_as_expected() {
        assert!(
            !Range {
                min: None,
                max: None
            }
            .contains(f64::NAN)
        );
        assert!(
            Range {
                min: Some(0.95),
                max: None
            }
            .contains(0.95)
        );
        assert!(
            !Range {
                min: Some(0.95),
                max: None
            }
            .contains(0.94)
        );
    }
}

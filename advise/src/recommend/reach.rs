//! Whether an objective in force can be met.
//!
//! The graph does not have the lowest latency. So an objective counts as out of reach if the median is longer than its target
//! for every caller: more than half of the requests miss it, and no objective allows that. The latency without load is not
//! known.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tidegate_graph::ObservationWindow;

use super::call::SoundCall;
use crate::interval::wilson;
use crate::observed::ObservedUpstream;

/// The quantile below which no objective can be.
const MEDIAN: f64 = 0.5;

/// An objective that a policy in force has for an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveInForce {
    /// The policy, and where in it.
    pub policy: String,
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The latency within which that share of requests must be answered.
    pub target: Duration,
    /// The share of requests that must not fail, from 0 to 1.
    pub success_rate: f64,
}

/// How the observations relate to an objective. The latencies are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "verdict"
)]
pub enum ReachVerdict {
    /// The median is longer than the target, for every caller.
    OutOfReach {
        /// The shortest median.
        fastest_median: f64,
    },
    /// Some caller's requests miss the target more often than the objective allows.
    LatencyMissed {
        /// The caller.
        caller: String,
        /// A quantile that the objective wants within its target, from 0 to 1.
        quantile: f64,
        /// Its latency.
        seconds: f64,
    },
    /// More requests fail than the objective allows, by more than chance explains.
    SuccessMissed {
        /// Upper end of the interval of the share that did not fail.
        success_at_most: f64,
    },
}

impl ReachVerdict {
    /// Whether most requests miss the target, for every caller.
    #[must_use]
    pub const fn is_out_of_reach(&self) -> bool {
        matches!(self, Self::OutOfReach { .. })
    }
}

/// How the observations contradict an objective; nothing if they agree with it or do not suffice.
#[must_use]
pub fn reach(
    upstream: &ObservedUpstream<'_>,
    observed: ObservationWindow,
    objective: &ObjectiveInForce,
) -> Vec<ReachVerdict> {
    let sound: Vec<SoundCall<'_>> = upstream
        .calls
        .iter()
        .filter_map(|call| SoundCall::of(*call, observed).ok())
        .collect();
    let target = objective.target.as_secs_f64();
    let medians: Vec<f64> = sound.iter().filter_map(|call| call.at(MEDIAN)).collect();
    let fastest = medians.iter().copied().reduce(f64::min);
    let is_whole = medians.len() == sound.len();
    let mut verdicts = Vec::new();
    match fastest.filter(|fastest| is_whole && *fastest > target) {
        Some(fastest_median) => verdicts.push(ReachVerdict::OutOfReach { fastest_median }),
        None => verdicts.extend(missed(&sound, objective, target)),
    }
    let samples: f64 = sound.iter().map(|call| call.samples).sum();
    let good: f64 = sound.iter().map(|call| call.samples * call.success).sum();
    if samples > 0.0 {
        let success_at_most = wilson((good / samples).clamp(0.0, 1.0), samples).high;
        if success_at_most < objective.success_rate {
            verdicts.push(ReachVerdict::SuccessMissed { success_at_most });
        }
    }
    verdicts
}

/// The caller that misses the target by most.
fn missed(
    sound: &[SoundCall<'_>],
    objective: &ObjectiveInForce,
    target: f64,
) -> Option<ReachVerdict> {
    let late = sound.iter().filter_map(|call| {
        let (quantile, seconds) = call
            .known
            .iter()
            .rfind(|(level, seconds)| *level <= objective.quantile && *seconds > target)?;
        Some((call, *quantile, *seconds))
    });
    late.max_by(|a, b| a.2.total_cmp(&b.2))
        .map(|(call, quantile, seconds)| ReachVerdict::LatencyMissed {
            caller: call.call.caller.to_string(),
            quantile,
            seconds,
        })
}

impl fmt::Display for ReachVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |seconds: &f64| seconds * 1_000.0;
        match self {
            Self::OutOfReach { fastest_median } => write!(
                f,
                "half of the requests take longer than {:.1} ms, for every caller",
                millis(fastest_median)
            ),
            Self::LatencyMissed {
                caller,
                quantile,
                seconds,
            } => write!(
                f,
                "for {caller} the quantile {quantile} is {:.1} ms",
                millis(seconds)
            ),
            Self::SuccessMissed { success_at_most } => {
                write!(f, "at most {success_at_most:.5} of the requests succeed")
            }
        }
    }
}

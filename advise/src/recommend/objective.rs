//! The objective, its bounds, and the observations behind it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tidegate_graph::ObservationWindow;

use super::AdviceTerms;
use super::call::SoundCall;
use super::refusal::AdviceRefusal;
use crate::interval::{LatencyInterval, ShareInterval, latency_interval, wilson};
use crate::observed::ObservedUpstream;
use crate::quantity::{rounded_budget, rounded_up, success_range, tidy};

/// An objective for an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct RecommendedObjective {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The latency within which that share of requests must be answered.
    pub target: Duration,
    /// The share of requests that must not fail, from 0 to 1.
    pub success_rate: f64,
    /// The range in which an objective makes sense.
    pub bounds: ObjectiveBounds,
    /// The observations behind it.
    pub evidence: ObjectiveEvidence,
}

/// The range in which an objective makes sense.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveBounds {
    /// A shorter target is missed at the load of the window.
    pub lowest_target: Duration,
    /// With a longer target, answers several times as slow as in the window still count as good.
    pub highest_target: Duration,
    /// With a lower rate, several times the failures of the window are still acceptable.
    pub lowest_success: f64,
    /// A higher rate may be missed without any change.
    pub highest_success: f64,
}

/// The observations behind an objective.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectiveEvidence {
    /// Length of the window, in seconds.
    pub window_seconds: u32,
    /// How much slower than observed is still good.
    pub margin: f64,
    /// The caller for which the upstream is slowest: its latencies set the target.
    pub slowest_caller: String,
    /// Requests of that caller.
    pub samples: f64,
    /// The latency at the quantile, in seconds.
    pub observed_seconds: f64,
    /// Where the true one lies.
    pub latency_interval: LatencyInterval,
    /// The share of that caller's requests that took longer than the target is below this, with a confidence of 95 %.
    pub missed_at_most: f64,
    /// Share of the requests of all callers that did not fail.
    pub success: f64,
    /// Where the true share lies.
    pub success_interval: ShareInterval,
    /// Requests of all callers.
    pub all_samples: f64,
    /// How many edges of the graph this is about.
    pub calls: usize,
    /// Edges that were left out, and why.
    pub left_out: Vec<String>,
}

/// The objective for an upstream.
pub(super) fn objective(
    upstream: &ObservedUpstream<'_>,
    observed: ObservationWindow,
    margin: f64,
) -> Result<RecommendedObjective, AdviceRefusal> {
    if !upstream.is_known {
        return Err(AdviceRefusal::NotNamed);
    }
    let margin = margin.clamp(1.0, AdviceTerms::MAX_MARGIN);
    let mut sound: Vec<SoundCall<'_>> = Vec::new();
    let mut refused: Vec<(f64, String, AdviceRefusal)> = Vec::new();
    for call in &upstream.calls {
        match SoundCall::of(*call, observed) {
            Ok(found) => sound.push(found),
            Err(reason) => {
                let samples = call.traffic.samples.unwrap_or_default();
                let edge = format!("{} -> {}", call.caller, call.callee);
                refused.push((samples, edge, reason));
            }
        }
    }
    let Some((quantile, seconds, slowest)) = slowest(&sound) else {
        refused.sort_by(|a, b| b.0.total_cmp(&a.0));
        let first = refused.into_iter().next();
        return Err(first.map_or(AdviceRefusal::NoLatency, |(_, _, reason)| reason));
    };
    let too_slow = |seconds: f64| AdviceRefusal::TooSlow { seconds };
    let target = rounded_up(seconds * margin).ok_or_else(|| too_slow(seconds * margin))?;
    let lowest_target = rounded_up(seconds).ok_or_else(|| too_slow(seconds))?;
    // Beyond the range of targets, the longest one is the bound.
    let highest_target = rounded_up(seconds * AdviceTerms::MAX_MARGIN)
        .unwrap_or_else(|| crate::quantity::target_range().1);

    let all_samples: f64 = sound.iter().map(|call| call.samples).sum();
    let good: f64 = sound.iter().map(|call| call.samples * call.success).sum();
    let success = (good / all_samples).clamp(0.0, 1.0);
    let success_interval = wilson(success, all_samples);
    let (success_rate, bounds) = success_rate(success, success_interval, margin)?;
    let (lowest_success, highest_success) = bounds;
    Ok(RecommendedObjective {
        quantile,
        target,
        success_rate,
        bounds: ObjectiveBounds {
            lowest_target,
            highest_target,
            lowest_success,
            highest_success,
        },
        evidence: ObjectiveEvidence {
            window_seconds: observed.window_seconds,
            margin,
            slowest_caller: slowest.call.caller.to_string(),
            samples: slowest.samples,
            observed_seconds: seconds,
            latency_interval: latency_interval(&slowest.known, quantile, slowest.samples),
            missed_at_most: missed_at_most(slowest, target),
            success,
            success_interval,
            all_samples,
            calls: upstream.calls.len(),
            left_out: refused
                .into_iter()
                .map(|(_, edge, reason)| format!("{edge}: {reason}"))
                .collect(),
        },
    })
}

/// The quantile that the caller with the most samples supports, its highest latency, and the caller that has it.
fn slowest<'a, 'b>(sound: &'b [SoundCall<'a>]) -> Option<(f64, f64, &'b SoundCall<'a>)> {
    let most = sound
        .iter()
        .max_by(|a, b| a.samples.total_cmp(&b.samples))?;
    let (quantile, _) = most.supported()?;
    let supporting = sound
        .iter()
        .filter(|call| call.supported().is_some_and(|(level, _)| level >= quantile));
    supporting
        .filter_map(|call| Some((quantile, call.at(quantile)?, call)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Upper end of the interval of the share that took longer than `target`: at most the share beyond the highest quantile within
/// it.
fn missed_at_most(call: &SoundCall<'_>, target: Duration) -> f64 {
    let within = call
        .known
        .iter()
        .rfind(|(_, seconds)| *seconds <= target.as_secs_f64());
    let beyond = within.map_or(1.0, |(level, _)| 1.0 - level);
    wilson(beyond, call.samples).high
}

/// The success rate, and the lowest and highest one that make sense.
fn success_rate(
    success: f64,
    interval: ShareInterval,
    margin: f64,
) -> Result<(f64, (f64, f64)), AdviceRefusal> {
    let (min, max) = success_range();
    if success < min {
        return Err(AdviceRefusal::MostlyFailing { success });
    }
    let failures = 1.0 - interval.low;
    let bound = |failures: f64| tidy(1.0 - failures).clamp(min, max);
    let (lowest, highest) = (bound(failures * AdviceTerms::MAX_MARGIN), bound(failures));
    let rate = bound(rounded_budget(failures * margin)).clamp(lowest, highest);
    Ok((rate, (lowest, highest)))
}

//! Whether the observations of one caller suffice, and which quantiles they support.

use tidegate_graph::{EdgeTraffic, ObservationWindow};

use super::refusal::AdviceRefusal;
use crate::observed::CallerTraffic;

/// A quantile needs this many samples beyond it.
const MIN_BEYOND: f64 = 10.0;
/// With data in less than this share of the points, a window says too little.
const MIN_POINTS: f64 = 0.5;
/// Tolerance for a count of samples, as the share beyond a quantile, such as 1 - 0.99, is rounded.
const ROUNDING: f64 = 1e-6;

/// A caller whose observations suffice.
#[derive(Clone, Debug)]
pub(super) struct SoundCall<'a> {
    pub(super) call: CallerTraffic<'a>,
    /// Requests in the window.
    pub(super) samples: f64,
    /// Share that did not fail.
    pub(super) success: f64,
    /// The known quantiles, as level and seconds, the lowest first.
    pub(super) known: Vec<(f64, f64)>,
}

impl<'a> SoundCall<'a> {
    pub(super) fn of(
        call: CallerTraffic<'a>,
        observed: ObservationWindow,
    ) -> Result<Self, AdviceRefusal> {
        let traffic = call.traffic;
        let samples = traffic
            .samples
            .filter(|samples| samples.is_finite())
            .ok_or(AdviceRefusal::SamplesUnknown)?;
        if traffic.too_few_samples {
            return Err(AdviceRefusal::TooFewSamples { found: samples });
        }
        if traffic.has_ended {
            return Err(AdviceRefusal::Ended);
        }
        let points = observed.points();
        if let Some(found) = traffic.points
            && f64::from(found) < f64::from(points) * MIN_POINTS
        {
            return Err(AdviceRefusal::MostlyGaps { found, points });
        }
        let known = quantiles(traffic)?;
        let found = Self {
            call,
            samples,
            success: traffic.success.ok_or(AdviceRefusal::SuccessUnknown)?,
            known,
        };
        match found.supported() {
            Some(_) => Ok(found),
            None => Err(AdviceRefusal::NoLatency),
        }
    }

    /// The highest known quantile that the samples support, as level and seconds.
    pub(super) fn supported(&self) -> Option<(f64, f64)> {
        let is_supported =
            |level: f64| self.samples.round() * (1.0 - level) + ROUNDING >= MIN_BEYOND;
        self.known
            .iter()
            .rfind(|(level, _)| is_supported(*level))
            .copied()
    }

    /// The latency at a level in seconds, if it is known.
    pub(super) fn at(&self, level: f64) -> Option<f64> {
        self.known
            .iter()
            .find(|(known, _)| known.total_cmp(&level).is_eq())
            .map(|(_, seconds)| *seconds)
    }
}

/// The known quantiles as level and seconds, the lowest first.
pub(super) fn quantiles(traffic: &EdgeTraffic) -> Result<Vec<(f64, f64)>, AdviceRefusal> {
    let all = [
        (0.5, traffic.p50_seconds),
        (0.95, traffic.p95_seconds),
        (0.99, traffic.p99_seconds),
    ];
    let mut known: Vec<(f64, f64)> = Vec::new();
    for (quantile, seconds) in all {
        let Some(seconds) = seconds.filter(|seconds| seconds.is_finite()) else {
            continue;
        };
        if let Some((_, lower_seconds)) = known.last().filter(|(_, lower)| *lower > seconds) {
            return Err(AdviceRefusal::QuantilesContradict {
                quantile,
                seconds,
                lower_seconds: *lower_seconds,
            });
        }
        known.push((quantile, seconds));
    }
    Ok(known)
}

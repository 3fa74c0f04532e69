//! Describes the observations behind a recommendation in sentences.

use std::fmt;
use std::time::Duration;

use tidegate_core::config::Readable;

use super::chain_rule::ChainHint;
use super::objective::RecommendedObjective;

/// Text for an unknown value.
const NOT_KNOWN: &str = "not known";

impl fmt::Display for ChainHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nearly every request of {} ({}) calls it: if it needs the answer, take {} or more",
            self.caller,
            Readable(self.caller_target),
            Readable(self.target)
        )
    }
}

impl RecommendedObjective {
    /// The observations behind it, one sentence after the other. Names in it may contain anything.
    #[must_use]
    pub fn reasoning(&self) -> Vec<String> {
        let (bounds, evidence) = (&self.bounds, &self.evidence);
        let interval = &evidence.latency_interval;
        let mut sentences = vec![
            format!(
                "Quantile {} within {}: {} x {} was observed for {}, in {:.0} requests within {} (with a confidence of 95 % from {} to {}).",
                self.quantile,
                Readable(self.target),
                millis(Some(evidence.observed_seconds)),
                evidence.margin,
                evidence.slowest_caller,
                evidence.samples,
                Readable(Duration::from_secs(evidence.window_seconds.into())),
                millis(interval.low_seconds),
                millis(interval.high_seconds),
            ),
            format!(
                "At most {:.2} % of these requests took longer. Targets from {} to {} make sense.",
                evidence.missed_at_most * 100.0,
                Readable(bounds.lowest_target),
                Readable(bounds.highest_target),
            ),
            format!(
                "Success {}: {:.5} of {:.0} requests succeeded (from {:.5} to {:.5}). Rates from {} to {} make sense.",
                self.success_rate,
                evidence.success,
                evidence.all_samples,
                evidence.success_interval.low,
                evidence.success_interval.high,
                bounds.lowest_success,
                bounds.highest_success,
            ),
        ];
        if !evidence.left_out.is_empty() {
            sentences.push(format!(
                "{} of {} edges were left out: {}.",
                evidence.left_out.len(),
                evidence.calls,
                evidence.left_out.join("; ")
            ));
        }
        sentences
    }
}

fn millis(seconds: Option<f64>) -> String {
    seconds.map_or_else(
        || NOT_KNOWN.to_owned(),
        |seconds| format!("{:.1} ms", seconds * 1_000.0),
    )
}

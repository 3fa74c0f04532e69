//! How long is too long for an answer, compared with the usual latency.

use core::time::Duration;

use super::FloorCheckpoint;
use crate::config::Slo;

/// Most answers come within this many mean latencies.
const USUAL_OF_MEAN: u32 = 2;
/// Silence for this many mean latencies, and this many latency targets, is a hang.
const HANG_OF_MEAN: u32 = 5;
const HANG_OF_TARGET: u32 = 2;
/// Silence for this many mean latencies is a hang if the limit is full, and at least this long: a whole endpoint may pause for a second or two.
const HANG_OF_MEAN_WHEN_FULL: u32 = 15;
const MIN_HANG_WHEN_FULL: Duration = Duration::from_secs(2);
/// The shortest wait that is a hang: garbage collectors and schedulers pause for longer than a tight target.
const MIN_HANG: Duration = Duration::from_millis(500);

impl FloorCheckpoint {
    /// How long a request must have waited before its caller's departure counts against the upstream: longer than most
    /// answers take, but at most the objective's `target`; the target if the usual latency is unknown.
    pub(crate) fn usual_wait(&self, target: Duration) -> Duration {
        match self.usual_latency() {
            Duration::ZERO => target,
            mean => mean.saturating_mul(USUAL_OF_MEAN).min(target),
        }
    }

    /// How long a request may wait for its headers before it counts as hanging: longer than any queue within the objective,
    /// and longer than a slow upstream usually takes.
    pub(crate) fn hang_after(&self, slo: &Slo) -> Duration {
        slo.latency_target()
            .saturating_mul(HANG_OF_TARGET)
            .max(self.hang_without_queue().unwrap_or(MIN_HANG))
    }

    /// The same for a request that is in no queue; `None` if the usual latency is unknown.
    pub(crate) fn hang_without_queue(&self) -> Option<Duration> {
        let mean = self.usual_latency();
        (!mean.is_zero()).then(|| mean.saturating_mul(HANG_OF_MEAN).max(MIN_HANG))
    }

    /// How long a full limit may go without an answer before its requests hang, by the usual latency alone; `None` if that is unknown. In a
    /// queue each request waits, but answers come.
    pub(crate) fn hang_when_full(&self) -> Option<Duration> {
        let mean = self.usual_latency();
        let wait = mean.saturating_mul(HANG_OF_MEAN_WHEN_FULL);
        (!mean.is_zero()).then(|| wait.max(MIN_HANG_WHEN_FULL))
    }

    /// The mean no-load latency; zero while unknown.
    pub(crate) fn usual_latency(&self) -> Duration {
        Duration::try_from_secs_f32(self.mean.into()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, RuleIndex};
    use crate::units::Seconds;

    fn of_mean(seconds: f64) -> FloorCheckpoint {
        FloorCheckpoint {
            mean: Seconds::new(seconds),
            ..FloorCheckpoint::default()
        }
    }

    /// Mean latency in seconds, latency target in milliseconds, and how long a request may wait in milliseconds.
    #[test]
    fn a_hang_is_measured_by_the_objective_and_by_the_usual_latency() {
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
            let slo = config.policy(RuleIndex::TopLevel).slo();
            let hang_after = of_mean(mean).hang_after(slo);
            assert_eq!(
                hang_after,
                Duration::from_millis(expected),
                "{mean} {target_ms}"
            );
        }
    }

    /// Mean latency in seconds, and how long a request may wait in milliseconds: in no queue, and in a full limit without an answer.
    #[test]
    fn without_the_objective_a_hang_is_measured_by_the_usual_latency() {
        for (mean, in_no_queue, when_full) in [
            (0.0, None, None),
            (0.0625, Some(500), Some(2_000)),
            (0.25, Some(1_250), Some(3_750)),
        ] {
            let floor = of_mean(mean);
            let expected = [in_no_queue, when_full].map(|ms| ms.map(Duration::from_millis));
            let found = [floor.hang_without_queue(), floor.hang_when_full()];
            assert_eq!(found, expected, "{mean}");
        }
    }

    #[test]
    fn a_caller_that_leaves_before_answers_usually_come_says_nothing() {
        let target = Duration::from_millis(300);
        let wait = |mean| of_mean(mean).usual_wait(target);
        assert_eq!(wait(0.0), target);
        assert_eq!(wait(0.0625), Duration::from_millis(125));
        assert_eq!(wait(1.0), target);
    }
}

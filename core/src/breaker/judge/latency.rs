//! How long an answer takes at present, and so how long no answer may come before the upstream hangs.
//!
//! The latency without a queue is learned while the breaker is closed. A service that takes longer than `hang_after` would
//! never be learned: the breaker would mistake it for a hang, and each probe would fail before its answer comes. So the last few
//! answers count here, also those to requests that were admitted before a transition of the breaker.

use core::time::Duration;

use super::Findings;
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;
use crate::units::Seconds;

/// Answers over which the latency is remembered.
const MEMORY: f64 = 10.0;
/// No answer for this many times the recent latency is a hang.
const HANG_OF_RECENT: u32 = 2;
/// No answer for this long is a hang of an upstream that has never answered, so that its latency is unknown: as long as no request
/// has failed and no caller has left. Callers that left get nothing from a slow answer, and their requests may still stand in a queue.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);

/// The latency of the last few answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RecentLatency {
    /// No answer has come yet.
    Unanswered {
        /// Whether a request has ended without one.
        has_failed: bool,
    },
    /// The mean, in seconds.
    Mean(f64),
}

impl Default for RecentLatency {
    fn default() -> Self {
        Self::Unanswered { has_failed: false }
    }
}

impl RecentLatency {
    /// Continues from the state of an earlier leader.
    pub(super) fn resume(known: Seconds) -> Self {
        let mean = known.get();
        if mean > 0.0 {
            Self::Mean(mean)
        } else {
            Self::default()
        }
    }

    /// The state for a successor; 0 before the first answer.
    pub(super) fn checkpoint(&self) -> Seconds {
        Seconds::new(self.mean().unwrap_or_default())
    }

    /// Learns from the answers of one round.
    pub(super) fn learn(&mut self, sample: &Sample) {
        let ended = sample.count(Count::Cancelled) + sample.count(Count::Failures);
        if let Self::Unanswered { has_failed } = self {
            *has_failed |= ended > 0.0;
        }
        let answers = sample.count(Count::Answers) + sample.count(Count::StaleAnswers);
        if answers <= 0.0 {
            return;
        }
        let micros = sample.count(Count::LatencyMicros) + sample.count(Count::StaleMicros);
        let latency = micros / 1e6 / answers;
        let before = self.mean().unwrap_or(latency);
        *self = Self::Mean(before + (latency - before) * answers / (answers + MEMORY));
    }

    const fn mean(&self) -> Option<f64> {
        match *self {
            Self::Unanswered { .. } => None,
            Self::Mean(mean) => Some(mean),
        }
    }

    /// How long a request may wait before it hangs, judged by the last few answers alone; zero before the first.
    pub(super) fn hang_after(&self) -> Duration {
        if is_off(Mechanism::StaleAnswers) {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(self.mean().unwrap_or_default())
            .unwrap_or_default()
            .saturating_mul(HANG_OF_RECENT)
    }

    /// How long no answer may come before the upstream hangs, at least [`Findings::hang_after`].
    pub(super) fn patience(&self, findings: &Findings<'_>) -> Duration {
        let knows_nothing =
            *self == Self::default() && findings.known.floor.usual_latency().is_zero();
        let recent = if knows_nothing && !is_off(Mechanism::StaleAnswers) {
            FIRST_PATIENCE
        } else {
            self.hang_after()
        };
        findings.hang_after.max(recent)
    }

    /// How long no answer may come while the limit is full before the upstream hangs. `None` where that is no shorter than [`Self::patience`],
    /// or where the usual latency is unknown.
    pub(super) fn patience_when_full(&self, findings: &Findings<'_>) -> Option<Duration> {
        let usual = findings.known.floor.hang_when_full()?;
        let patience = usual.max(self.hang_after());
        (patience < self.patience(findings)).then_some(patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{FloorCheckpoint, LimitCheckpoint};
    use crate::time::Instant;

    const HANG_AFTER: Duration = Duration::from_millis(600);

    /// The patience after rounds of so many answers and stale answers, each with this latency in milliseconds, for an upstream
    /// with this mean latency without a queue in seconds, 0 if unknown.
    fn patience(floor: f64, rounds: &[(u64, u64, u64)]) -> Duration {
        let mut recent = RecentLatency::default();
        for (answers, stale, millis) in rounds {
            let mut sample = Sample::empty(Duration::from_millis(100));
            sample.tally.add(Count::Answers, *answers);
            sample
                .tally
                .add(Count::LatencyMicros, answers * millis * 1_000);
            sample.tally.add(Count::StaleAnswers, *stale);
            sample.tally.add(Count::StaleMicros, stale * millis * 1_000);
            recent.learn(&sample);
        }
        let known = LimitCheckpoint {
            floor: FloorCheckpoint {
                mean: Seconds::new(floor),
                ..FloorCheckpoint::default()
            },
            ..LimitCheckpoint::default()
        };
        recent.patience(&Findings {
            sample: &Sample::empty(Duration::from_millis(100)),
            trips: &[],
            known: &known,
            target: Duration::from_millis(300),
            hang_after: HANG_AFTER,
            limit: 20,
            probes: 0,
            uniform: 0.0,
            now: Instant::ZERO,
        })
    }

    #[test]
    fn an_upstream_that_has_never_answered_has_no_more_patience_once_a_caller_has_left() {
        for lost in [Count::Cancelled, Count::Failures] {
            let mut recent = RecentLatency::default();
            let mut sample = Sample::empty(Duration::from_millis(100));
            sample.tally.add(lost, 1);
            recent.learn(&sample);
            let failed = RecentLatency::Unanswered { has_failed: true };
            assert_eq!(recent, failed, "{lost:?}");
        }
    }

    #[test]
    fn patience_follows_the_last_few_answers() {
        let fast = [(10, 0, 20); 20];
        let slow_then_fast: Vec<_> = [(0, 10, 10_000)].into_iter().chain(fast).collect();
        for (name, floor, rounds, expected) in [
            ("never answered", 0.0, &[][..], FIRST_PATIENCE),
            ("a new leader of a known upstream", 0.02, &[], HANG_AFTER),
            ("fast", 0.02, &fast, HANG_AFTER),
            ("one answer", 0.0, &[(1, 0, 2_000)], Duration::from_secs(4)),
            ("a stale one", 0.0, &[(0, 1, 2_000)], Duration::from_secs(4)),
            (
                "slower",
                0.02,
                &[(10, 0, 20), (0, 90, 2_000)],
                Duration::from_millis(3_604),
            ),
            ("after a hang of 10 s", 0.02, &slow_then_fast, HANG_AFTER),
        ] {
            let found = patience(floor, rounds);
            assert!(
                found.abs_diff(expected) < Duration::from_millis(1),
                "{name}: {found:?}"
            );
        }
    }
}

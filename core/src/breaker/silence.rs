//! How long does an upstream usually go without a success?
//!
//! Failures open the breaker only when successes have been missing for longer than usual, because one path or one caller can
//! cause nearly all outcomes of a moment. The formula and its reasons are in docs/laws/evidence.md.

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

/// Time over which a long gap is forgotten, seconds.
const MEMORY: f32 = 10.0;
/// Silence is a gap of this many times the longest recent one.
const USUAL_TIMES: f32 = 1.25;
/// The same while some requests are known to fail beside others that succeed. With n successes a second at random moments, one
/// gap in (10 n)^2.5 is as long.
const DOUBTED_TIMES: f32 = 2.5;
/// A shorter gap is never silence, however often successes come. Seconds.
const MIN_SILENCE: f32 = 0.05;
/// For this long after the first success the usual gap is unknown, and silence takes [`FIRST_SILENCE`]. Seconds.
const FIRST_WATCH: f32 = 2.0;
const FIRST_SILENCE: f32 = 1.0;
/// A gap of this length is silence in any case: after a night without requests the longest gap says nothing. Seconds.
const MAX_SILENCE: f32 = 5.0;

/// Gaps between good events of one kind, such as successes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Silence {
    /// When the last event came or the watch began; `None` before either.
    since: Option<Instant>,
    /// The longest gap lately, seconds; `None` while none is known.
    longest: Option<f32>,
    /// When the first event came.
    first: Option<Instant>,
    /// When a success came although failures were enough to trip.
    doubted_at: Option<Instant>,
}

impl Silence {
    /// A success at `now`.
    pub(crate) fn end(&mut self, now: Instant) {
        self.end_before(Duration::ZERO, now);
    }

    /// Successes in the last `span` before `now`, at unknown moments. The gap before them is taken to end when the span began.
    pub(crate) fn end_before(&mut self, span: Duration, now: Instant) {
        if let Some(since) = self.since {
            let passed = now.saturating_since(since);
            let gap = passed.saturating_sub(span).as_secs_f32().min(MAX_SILENCE);
            let kept = 1.0 - (passed.as_secs_f32() / MEMORY).min(1.0);
            let before = self.longest.unwrap_or_default() * kept;
            self.longest = Some(before.max(gap));
        }
        self.since = Some(now);
        self.first.get_or_insert(now);
    }

    /// The latest event came at `at`, which may be known already.
    pub(crate) fn end_at(&mut self, at: Instant) {
        if self.since.is_none_or(|since| at > since) {
            self.end(at);
        }
    }

    /// A success came although failures were enough to trip: only some requests fail.
    pub(crate) const fn doubt(&mut self, now: Instant) {
        self.doubted_at = Some(now);
    }

    /// The watch starts over: the time before says nothing about gaps.
    pub(crate) const fn restart(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Whether the gap up to `now` is longer than usual. If no success has ever come, the gap began at `asked_since`.
    ///
    /// Failures are often quicker than successes: a service that has just begun to answer may so far have answered only one
    /// caller whose requests fail. So silence takes a second until successes have been watched for a while.
    pub(crate) fn is_unusual(&self, asked_since: Instant, now: Instant) -> bool {
        let since = self.since.unwrap_or(asked_since);
        let gap = now.saturating_since(since).as_secs_f32();
        let is_doubted = self
            .doubted_at
            .is_some_and(|at| now.saturating_since(at).as_secs_f32() < MEMORY);
        let watched = self.first.map(|first| now.saturating_since(first));
        if watched.is_none_or(|watched| watched.as_secs_f32() < FIRST_WATCH) {
            return gap >= FIRST_SILENCE;
        }
        let longest = self.longest.unwrap_or_default();
        let times = if is_doubted && !is_off(Mechanism::DoubtedSilence) {
            DOUBTED_TIMES
        } else {
            USUAL_TIMES
        };
        gap >= (times * longest).clamp(MIN_SILENCE, MAX_SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Successes every `gap` milliseconds, between these times.
    fn successes(silence: &mut Silence, from: u64, to: u64, gap: usize) {
        (from..=to).step_by(gap).for_each(|ms| silence.end(at(ms)));
    }

    #[test]
    fn silence_is_a_little_more_than_the_longest_gap_within_bounds() {
        for (gap, expected) in [(1, 50), (100, 125), (1_000, 1_250), (4_500, 5_000)] {
            let mut silence = Silence::default();
            successes(&mut silence, 0, 36_000, gap);
            let found = (1..).find(|wait| silence.is_unusual(at(0), at(36_000 + wait)));
            let found = found.unwrap();
            assert!(
                found.abs_diff(expected) < 3,
                "{gap}: {found}, not {expected}"
            );
        }
    }

    #[test]
    fn silence_takes_a_second_while_gaps_are_unknown() {
        let mut silence = Silence::default();
        let is_unusual = |silence: &Silence, now| silence.is_unusual(at(500), at(now));
        assert!(!is_unusual(&silence, 1_490), "no success ever");
        assert!(is_unusual(&silence, 1_500));
        successes(&mut silence, 1_000, 2_900, 10);
        assert!(!is_unusual(&silence, 2_990));
        successes(&mut silence, 2_910, 3_000, 10);
        assert!(
            is_unusual(&silence, 3_050),
            "they have been watched for long"
        );
        silence.end(at(1_500));
        assert!(!silence.is_unusual(at(0), at(1_600)));
    }

    #[test]
    fn after_a_false_alarm_silence_takes_longer() {
        let mut silence = Silence::default();
        successes(&mut silence, 0, 1_900, 100);
        assert!(silence.is_unusual(at(0), at(2_050)));
        silence.doubt(at(1_900));
        assert!(!silence.is_unusual(at(0), at(2_100)));
        assert!(silence.is_unusual(at(0), at(2_160)));
        successes(&mut silence, 2_000, 14_900, 100);
        assert!(silence.is_unusual(at(0), at(15_050)), "long ago");
    }

    #[test]
    fn a_long_gap_is_forgotten_and_an_outage_is_none() {
        let mut silence = Silence::default();
        silence.end(at(0));
        successes(&mut silence, 3_000, 43_000, 100);
        assert!(silence.is_unusual(at(0), at(43_300)));
        silence.restart(at(103_000));
        silence.end(at(103_100));
        assert!(
            silence.is_unusual(at(0), at(103_400)),
            "the minute is no gap"
        );
    }

    #[test]
    fn a_gap_ends_where_the_span_of_the_next_successes_begins() {
        let mut silence = Silence::default();
        let round = Duration::from_millis(100);
        for tenth in 1..50 {
            silence.end_before(round, at(tenth * 100));
        }
        assert!(silence.is_unusual(at(0), at(5_000)), "a round without any");
        silence.end_before(round, at(5_200));
        assert!(
            !silence.is_unusual(at(0), at(5_300)),
            "there has been one before"
        );
    }

    #[test]
    fn callers_in_lockstep_are_no_silence() {
        let mut silence = Silence::default();
        for round in 0..20 {
            successes(&mut silence, round * 500, round * 500 + 50, 1);
        }
        assert!(!silence.is_unusual(at(0), at(10_000)));
    }

    #[test]
    fn a_clock_that_jumps_back_is_no_silence() {
        let mut silence = Silence::default();
        silence.end(at(100_000));
        silence.end(at(100_500));
        assert!(!silence.is_unusual(at(0), at(3_000)));
        silence.end(at(3_000));
        assert!(!silence.is_unusual(at(0), at(3_100)));
    }
}

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
/// A shorter gap is never silence, however often events come. Seconds.
const MIN_SILENCE: f32 = 0.05;
/// For this long after the first event the usual gap is unknown, and silence takes [`FIRST_SILENCE`]. Seconds.
const FIRST_WATCH: f32 = 2.0;
const FIRST_SILENCE: f32 = 1.0;
/// A gap of this length is silence in any case: after a night without requests the longest gap says nothing. Seconds.
const MAX_SILENCE: f32 = 5.0;
/// The most gaps that the mean is of.
const MEAN_OF: f32 = 32.0;

/// For answers of any kind, and for successes that failures replace.
const USUAL: Bounds = Bounds {
    mean_gaps: 0.0,
    most: MAX_SILENCE,
};
/// When successes are missing beside failures of other requests. With successes at random moments, one gap in 160,000 is as long as twelve
/// mean gaps.
const BESIDE_OTHERS: Bounds = Bounds {
    mean_gaps: 12.0,
    most: 60.0,
};
/// More failures than this for each missing success are those of other requests.
const REPLACING: f32 = 3.0;

/// Bounds of a gap that is silence.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Silence is at least this many mean gaps.
    mean_gaps: f32,
    /// A gap of this length is silence in any case, seconds.
    most: f32,
}

/// Gaps between good events of one kind, such as successes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Silence {
    /// When the last event came or the watch began; `None` before either.
    since: Option<Instant>,
    /// The longest gap lately, seconds; `None` while none is known.
    longest: Option<f32>,
    /// The mean of the last gaps, seconds, and how many there were.
    mean: f32,
    gaps: f32,
    /// When the first event came.
    first: Option<Instant>,
    /// When a success came although failures were enough to trip.
    doubted_at: Option<Instant>,
}

impl Silence {
    /// A success at `now`.
    pub(crate) fn end(&mut self, now: Instant) {
        let _ = self.end_before(Duration::ZERO, now);
    }

    /// Successes in the last `span` before `now`, at unknown moments. The gap before them is taken to end when the span began. Returns the
    /// share that is still remembered of what was known at the success before, 0..=1.
    pub(crate) fn end_before(&mut self, span: Duration, now: Instant) -> f32 {
        let mut kept = 0.0;
        if let Some(since) = self.since {
            let passed = now.saturating_since(since);
            let gap = passed.saturating_sub(span).as_secs_f32().min(MAX_SILENCE);
            kept = 1.0 - (passed.as_secs_f32() / MEMORY).min(1.0);
            let before = self.longest.unwrap_or_default() * kept;
            self.longest = Some(before.max(gap));
            self.gaps = (self.gaps + 1.0).min(MEAN_OF);
            self.mean += (gap - self.mean) / self.gaps;
        }
        self.since = Some(now);
        self.first.get_or_insert(now);
        kept
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

    /// The time since the last event. If none has ever come, since `asked_since`.
    pub(crate) fn gap(&self, asked_since: Instant, now: Instant) -> Duration {
        now.saturating_since(self.since.unwrap_or(asked_since))
    }

    /// Whether answers are missing for longer than usual. If none has ever come, the gap began at `asked_since`.
    pub(crate) fn lacks_answers(&self, asked_since: Instant, now: Instant) -> bool {
        self.is_silence(&USUAL, self.gap(asked_since, now), now)
    }

    /// Whether successes are missing for longer than usual beside this many failures. If none has ever come, the gap began at
    /// `asked_since`.
    ///
    /// In an outage there are about as many failures as successes are missing. More of them come from other requests, so that only the
    /// missing successes count.
    ///
    /// Failures are often quicker than successes: a service that has just begun to answer may so far have answered only one
    /// caller whose requests fail. So silence takes a second until successes have been watched for a while.
    pub(crate) fn lacks_successes(
        &self,
        failures: f32,
        asked_since: Instant,
        now: Instant,
    ) -> bool {
        let gap = self.gap(asked_since, now);
        let missing = gap.as_secs_f32() / self.mean;
        let bounds = if failures > missing * REPLACING && !is_off(Mechanism::MeanGap) {
            &BESIDE_OTHERS
        } else {
            &USUAL
        };
        self.is_silence(bounds, gap, now)
    }

    fn is_silence(&self, bounds: &Bounds, gap: Duration, now: Instant) -> bool {
        let gap = gap.as_secs_f32();
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
        let usual = (longest * times).max(self.mean * bounds.mean_gaps);
        gap >= usual.clamp(MIN_SILENCE, bounds.most)
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
            let found = (1..).find(|wait| silence.lacks_answers(at(0), at(36_000 + wait)));
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
        let lacks = |silence: &Silence, now| silence.lacks_answers(at(500), at(now));
        assert!(!lacks(&silence, 1_490), "no success ever");
        assert!(lacks(&silence, 1_500));
        successes(&mut silence, 1_000, 2_900, 10);
        assert!(!lacks(&silence, 2_990));
        successes(&mut silence, 2_910, 3_000, 10);
        assert!(lacks(&silence, 3_050), "they have been watched for long");
        silence.end(at(1_500));
        assert!(!silence.lacks_answers(at(0), at(1_600)));
    }

    #[test]
    fn beside_failures_of_other_requests_successes_must_be_missing_for_some_mean_gaps() {
        for (gap, failures, expected) in [
            (1, 8.0, 50),
            (100, 2.0, 125),
            (100, 8.0, 267),
            (100, 1e4, 1_200),
            (1_000, 1e4, 12_000),
            (6_000, 1e4, 60_000),
            (6_000, 2.0, 5_000),
        ] {
            let mut silence = Silence::default();
            successes(&mut silence, 0, 90_000, gap);
            let found = (1..)
                .find(|wait| silence.lacks_successes(failures, at(0), at(90_000 + wait)))
                .unwrap();
            assert!(
                found.abs_diff(expected) < 9,
                "{failures} failures beside a success in {gap} ms: {found}, not {expected}"
            );
        }
    }

    #[test]
    fn after_a_false_alarm_silence_takes_longer() {
        let mut silence = Silence::default();
        successes(&mut silence, 0, 1_900, 100);
        assert!(silence.lacks_answers(at(0), at(2_050)));
        silence.doubt(at(1_900));
        assert!(!silence.lacks_answers(at(0), at(2_100)));
        assert!(silence.lacks_answers(at(0), at(2_160)));
        successes(&mut silence, 2_000, 14_900, 100);
        assert!(silence.lacks_answers(at(0), at(15_050)), "long ago");
    }

    #[test]
    fn a_long_gap_is_forgotten_and_an_outage_is_none() {
        let mut silence = Silence::default();
        silence.end(at(0));
        successes(&mut silence, 3_000, 43_000, 100);
        assert!(silence.lacks_answers(at(0), at(43_300)));
        silence.restart(at(103_000));
        silence.end(at(103_100));
        assert!(
            silence.lacks_answers(at(0), at(103_400)),
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
        assert!(
            silence.lacks_answers(at(0), at(5_000)),
            "a round without any"
        );
        silence.end_before(round, at(5_200));
        assert!(
            !silence.lacks_answers(at(0), at(5_300)),
            "there has been one before"
        );
    }

    #[test]
    fn callers_in_lockstep_are_no_silence() {
        let mut silence = Silence::default();
        for round in 0..20 {
            successes(&mut silence, round * 500, round * 500 + 50, 1);
        }
        assert!(!silence.lacks_answers(at(0), at(10_000)));
    }

    #[test]
    fn a_clock_that_jumps_back_is_no_silence() {
        let mut silence = Silence::default();
        silence.end(at(100_000));
        silence.end(at(100_500));
        assert!(!silence.lacks_answers(at(0), at(3_000)));
        silence.end(at(3_000));
        assert!(!silence.lacks_answers(at(0), at(3_100)));
    }
}

//! How long does an upstream usually go without a success?
//!
//! One path that always fails, or one caller whose requests always fail, can make nearly all of the outcomes of a moment.
//! That is no outage: the successes of all others come as often as ever. In an outage they stop. So failures open the
//! breaker only when successes have been missing for longer than usual, by a factor that chance does not explain:
//!
//! ```text
//! usual    = longest gap between successes lately, forgotten over MEMORY
//! silent   when  no success for  USUAL_TIMES x usual,  at least MIN_SILENCE, at most MAX_SILENCE
//!                (DOUBTED_TIMES x usual while it was wrong lately: the failures were enough to trip, and then a success came)
//! ```
//!
//! Of successes at random moments, n a second, the longest gap in ten seconds is about ln(10 n) / n. That is about as
//! long as the trip test needs for its failures anyway, at any n: an outage turns each success into a failure.
//! A median or mean would not do: callers that come in lockstep leave gaps that are many times the mean.

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

/// Time over which a long gap is forgotten, seconds.
const MEMORY: f32 = 10.0;
/// Silence is so many times the longest gap.
const USUAL_TIMES: f32 = 1.25;
/// The same while some requests are known to fail beside others that succeed. Of gaps at random moments, n a second, one in
/// (10 n)^2.5 is as long.
const DOUBTED_TIMES: f32 = 2.5;
/// No success for less than this is a moment, however often they come. Seconds.
const MIN_SILENCE: f32 = 0.05;
/// After a night without requests the longest gap says nothing: so long without a success is silence anyway. Seconds.
const MAX_SILENCE: f32 = 5.0;

/// Gaps between good events of one kind, such as successes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Silence {
    /// When the last came, or the watch began; `None` before either.
    since: Option<Instant>,
    /// The longest gap lately, seconds; `None` while none is known.
    longest: Option<f32>,
    /// When a success came although failures were enough to trip.
    doubted_at: Option<Instant>,
}

impl Silence {
    /// A success at `now`.
    pub(crate) fn end(&mut self, now: Instant) {
        self.end_before(Duration::ZERO, now);
    }

    /// Successes in the last `span` before `now`; when each of them came is not known. The gap before them ended when the
    /// span began.
    pub(crate) fn end_before(&mut self, span: Duration, now: Instant) {
        if let Some(since) = self.since {
            let passed = now.saturating_since(since);
            let gap = passed.saturating_sub(span).as_secs_f32().min(MAX_SILENCE);
            let kept = 1.0 - (passed.as_secs_f32() / MEMORY).min(1.0);
            let before = self.longest.unwrap_or_default() * kept;
            self.longest = Some(before.max(gap));
        }
        self.since = Some(now);
    }

    /// The latest came at `at`, which may be known already.
    pub(crate) fn end_at(&mut self, at: Instant) {
        if self.since.is_none_or(|since| at > since) {
            self.end(at);
        }
    }

    /// A success came although failures were enough to trip: some requests fail, and others do not.
    pub(crate) const fn doubt(&mut self, now: Instant) {
        self.doubted_at = Some(now);
    }

    /// The watch begins anew: what came in between says nothing of gaps.
    pub(crate) const fn restart(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Whether the gap up to `now` is longer than usual. Where no gap is known any is.
    pub(crate) fn is_unusual(&self, now: Instant) -> bool {
        let (Some(since), Some(longest)) = (self.since, self.longest) else {
            return true;
        };
        let gap = now.saturating_since(since).as_secs_f32();
        let is_doubted = self
            .doubted_at
            .is_some_and(|at| now.saturating_since(at).as_secs_f32() < MEMORY);
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

    fn at(seconds: f32) -> Instant {
        Instant::ZERO + Duration::from_secs_f32(seconds)
    }

    /// After successes every `gap` seconds for 20 s, how long must none come?
    fn silent_after(gap: f32) -> f32 {
        let mut silence = Silence::default();
        let mut now = 0.0;
        while now < 20.0 {
            silence.end(at(now));
            now += gap;
        }
        let last = now - gap;
        (1..)
            .map(|step| step as f32 * 0.01)
            .find(|wait| silence.is_unusual(at(last + wait)))
            .unwrap()
    }

    #[test]
    fn silence_is_a_little_more_than_the_longest_gap_within_bounds() {
        for (gap, expected) in [(0.001, 0.05), (0.1, 0.13), (1.0, 1.25), (4.5, 5.0)] {
            let found = silent_after(gap);
            assert!(
                (found - expected).abs() < 0.02,
                "{gap}: {found}, not {expected}"
            );
        }
    }

    #[test]
    fn where_nothing_is_known_any_gap_is_silence() {
        let mut silence = Silence::default();
        assert!(silence.is_unusual(at(0.0)));
        silence.end(at(1.0));
        assert!(silence.is_unusual(at(1.0)), "one success is no gap");
        silence.end(at(1.5));
        assert!(!silence.is_unusual(at(1.6)));
    }

    #[test]
    fn after_an_alarm_that_was_false_more_is_asked_for() {
        let mut silence = Silence::default();
        (0..20).for_each(|tenth| silence.end(at(tenth as f32 * 0.1)));
        assert!(silence.is_unusual(at(1.9 + 0.15)));
        silence.doubt(at(1.9));
        assert!(!silence.is_unusual(at(1.9 + 0.2)));
        assert!(silence.is_unusual(at(1.9 + 0.26)));
        (20..150).for_each(|tenth| silence.end(at(tenth as f32 * 0.1)));
        assert!(silence.is_unusual(at(14.9 + 0.15)), "long ago");
    }

    #[test]
    fn a_long_gap_is_forgotten_and_an_outage_is_none() {
        let mut silence = Silence::default();
        silence.end(at(0.0));
        silence.end(at(3.0));
        (1..400).for_each(|step| silence.end(at(3.0 + step as f32 * 0.1)));
        let last = 3.0 + 39.9;
        assert!(silence.is_unusual(at(last + 0.3)));
        silence.restart(at(last + 60.0));
        silence.end(at(last + 60.1));
        assert!(silence.is_unusual(at(last + 60.4)), "the minute is no gap");
    }

    #[test]
    fn callers_in_lockstep_are_no_silence() {
        let mut silence = Silence::default();
        for round in 0..20 {
            (0..50).for_each(|nth| silence.end(at(round as f32 * 0.5 + nth as f32 * 0.001)));
        }
        assert!(!silence.is_unusual(at(19.0 * 0.5 + 0.5)));
    }

    #[test]
    fn a_clock_that_jumps_back_is_no_silence() {
        let mut silence = Silence::default();
        silence.end(at(100.0));
        silence.end(at(100.5));
        assert!(!silence.is_unusual(at(3.0)));
        silence.end(at(3.0));
        assert!(!silence.is_unusual(at(3.1)));
    }
}

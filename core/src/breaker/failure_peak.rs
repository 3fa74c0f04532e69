//! How many failures usually come beside successes?
//!
//! An outage turns successes into failures, so failures come more often than before. Requests of one path or one caller that always
//! fail come as often as before, also while the other requests happen to stop. The formula and its reasons are in
//! docs/laws/evidence.md.

use core::time::Duration;

use crate::time::Instant;

/// Failures are counted in spans of this length. In a shorter time as many are usual, because callers may send them together.
const SPAN: Duration = Duration::from_secs(1);
/// More failures than usual are more by this many standard deviations of a Poisson count.
const CHANCE: f32 = 3.0;

/// The most failures a second that came beside successes lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FailurePeak {
    /// When the span began in which failures are counted; `None` before the first.
    began: Option<Instant>,
    /// Failures in that span.
    count: u32,
    /// The most in a span that ended since the last success.
    pending: u32,
    /// Failures since the last success.
    run: u32,
    /// The most in a span that was followed by a success.
    peak: f32,
}

impl FailurePeak {
    /// So many failures came.
    pub(crate) fn fail(&mut self, failures: u32, now: Instant) {
        self.end_span(now);
        self.count = self.count.saturating_add(failures);
        self.run = self.run.saturating_add(failures);
    }

    /// A success came: the failures before it were no outage. `kept` of the peak is remembered, 0..=1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count that is compared within three deviations"
    )]
    pub(crate) fn succeed(&mut self, kept: f32, now: Instant) {
        self.end_span(now);
        self.peak = (self.peak * kept).max(self.pending as f32);
        self.pending = 0;
        self.run = 0;
    }

    /// The watch starts over with the peak that is known.
    pub(crate) fn restart(&mut self) {
        *self = Self {
            peak: self.peak,
            ..Self::default()
        };
    }

    /// Failures since the last success.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count that is compared within three deviations"
    )]
    pub(crate) const fn run(&self) -> f32 {
        self.run as f32
    }

    /// Whether more failures have come since the last success than usually come in such a `gap`.
    pub(crate) fn is_exceeded(&self, gap: Duration) -> bool {
        let usual = self.peak * gap.max(SPAN).as_secs_f32();
        self.run() > usual + CHANCE * usual.sqrt()
    }

    /// Begins another span if this one is over, or if the clock jumped back.
    fn end_span(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        if now.saturating_since(began) >= SPAN || now < began {
            self.pending = self.pending.max(self.count);
            self.count = 0;
            self.began = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Failures every `gap` milliseconds, between these times.
    fn failures(peak: &mut FailurePeak, from: u64, to: u64, gap: usize) {
        (from..to).step_by(gap).for_each(|ms| peak.fail(1, at(ms)));
    }

    /// Twenty failures a second, and a success in every second, for ten seconds.
    fn beside_successes() -> FailurePeak {
        let mut peak = FailurePeak::default();
        for second in 0..10 {
            failures(&mut peak, second * 1_000, (second + 1) * 1_000, 50);
            peak.succeed(0.9, at((second + 1) * 1_000));
        }
        peak
    }

    #[test]
    fn without_failures_before_any_failure_is_more_than_usual() {
        let mut peak = FailurePeak::default();
        peak.succeed(0.9, at(0));
        assert!(!peak.is_exceeded(Duration::ZERO), "none");
        peak.fail(1, at(100));
        assert!(peak.is_exceeded(Duration::from_millis(100)));
    }

    #[test]
    fn as_many_failures_as_usual_are_no_outage_however_long_successes_are_missing() {
        let mut peak = beside_successes();
        failures(&mut peak, 10_000, 40_000, 50);
        assert!(!peak.is_exceeded(Duration::from_secs(30)));
    }

    #[test]
    fn failures_instead_of_successes_are_more_than_usual() {
        // Twenty a second fail as before, and twenty more that succeeded before.
        let mut peak = beside_successes();
        let exceeded = (1..=3_000).find(|ms| {
            if ms % 25 == 0 {
                peak.fail(1, at(10_000 + ms));
            }
            peak.is_exceeded(Duration::from_millis(*ms))
        });
        assert_eq!(exceeded, Some(850), "more than 20 and three deviations");
    }

    #[test]
    fn a_pack_of_failures_is_usual_where_there_were_such_packs() {
        let mut peak = FailurePeak::default();
        for second in 0..5 {
            peak.fail(30, at(second * 1_000));
            peak.succeed(0.9, at(second * 1_000 + 500));
        }
        peak.fail(30, at(5_000));
        assert!(!peak.is_exceeded(Duration::from_millis(10)));
        peak.fail(30, at(5_020));
        assert!(peak.is_exceeded(Duration::from_millis(30)));
    }

    #[test]
    fn a_peak_is_forgotten_and_an_outage_is_none() {
        let mut peak = beside_successes();
        (100..=400).for_each(|tenth| peak.succeed(0.99, at(tenth * 100)));
        peak.fail(5, at(40_050));
        assert!(
            peak.is_exceeded(Duration::from_millis(50)),
            "half a minute ago"
        );
        let mut peak = beside_successes();
        failures(&mut peak, 10_000, 20_000, 2);
        peak.restart();
        peak.succeed(0.9, at(20_100));
        failures(&mut peak, 20_100, 20_200, 2);
        assert!(peak.is_exceeded(Duration::from_millis(100)), "500 a second");
        let mut peak = beside_successes();
        peak.restart();
        failures(&mut peak, 70_000, 71_000, 50);
        assert!(
            !peak.is_exceeded(Duration::from_secs(1)),
            "a minute of outage"
        );
    }

    #[test]
    fn a_clock_that_jumps_back_begins_another_span() {
        let mut peak = FailurePeak::default();
        failures(&mut peak, 100_000, 101_000, 50);
        failures(&mut peak, 3_000, 5_000, 50);
        peak.succeed(0.9, at(5_000));
        failures(&mut peak, 5_000, 6_000, 50);
        assert!(!peak.is_exceeded(Duration::from_secs(1)));
    }
}

//! Grants requests one by one, at a rate that keeps a limit below one.
//!
//! A limit below one cannot be a number of places. But by Little's law, `limit / latency` requests a second have `limit` requests in
//! flight on average. So time earns grants at this rate, and each request that is admitted claims one. (Swift paces packets in
//! the same way where its congestion window is below one: Kumar et al., "Swift: Delay is Simple and Effective for Congestion
//! Control in the Datacenter", SIGCOMM 2020.)

use core::time::Duration;

/// Grants that are saved for up to this many seconds, and one more. Workers follow a ceiling, and report what they claimed, a
/// round later.
const SAVED_FOR: f64 = 0.2;

/// The grants of one upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    /// Grants that are not claimed; below 0 while important requests have claimed more than were earned.
    saved: f64,
    /// The count of claimed grants in the last round.
    used: u64,
}

impl Pacer {
    /// Begins with one grant. So far `used` were claimed.
    pub(super) const fn new(used: u64) -> Self {
        Self { saved: 1.0, used }
    }

    /// One round of this `span`, with `rate` grants a second. Returns the count of claimed grants up to which requests are admitted;
    /// `used` are claimed now.
    pub(super) fn ceiling(&mut self, rate: f64, span: Duration, used: u64) -> u64 {
        // A count that was read for the first time, or that starts over, is no claim of this round, so the debt is bounded.
        #[expect(
            clippy::cast_precision_loss,
            reason = "claims of one round stay far below 2^53"
        )]
        let claimed = used.saturating_sub(self.used) as f64;
        self.used = used;
        let most = 1.0 + rate * SAVED_FOR;
        let saved = self.saved - claimed + rate * span.as_secs_f64();
        self.saved = saved.clamp(-most, most);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "grants of a fifth of a second, and at least 0"
        )]
        let whole = self.saved.max(0.0) as u64;
        used.saturating_add(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(100);

    /// Grants claimed in so many rounds at this rate, if callers claim up to `wanted` in each round.
    fn claimed(pacer: &mut Pacer, rate: f64, rounds: u32, wanted: u64) -> u64 {
        let before = pacer.used;
        let mut used = before;
        for _ in 0..rounds {
            let ceiling = pacer.ceiling(rate, ROUND, used);
            used = ceiling.min(used + wanted).max(used);
        }
        used - before
    }

    #[test]
    fn as_many_are_granted_as_the_rate_earns() {
        for (rate, wanted, expected) in [
            (0.5, 9, 5 + 1),
            (2.0, 9, 20 + 1),
            (50.0, 9, 500 + 1),
            (50.0, 3, 300),
            (0.0, 9, 1),
        ] {
            let found = claimed(&mut Pacer::new(7), rate, 100, wanted);
            assert_eq!(found, expected, "{rate} a second, {wanted} wanted a round");
        }
    }

    #[test]
    fn a_time_without_requests_saves_what_two_rounds_earn_and_one_more() {
        for (rate, expected) in [(0.5, 1), (10.0, 3), (50.0, 11)] {
            let mut pacer = Pacer::new(0);
            claimed(&mut pacer, rate, 100, 0);
            assert_eq!(pacer.ceiling(rate, ROUND, 0), expected, "{rate} a second");
        }
    }

    #[test]
    fn requests_that_claim_more_than_was_earned_delay_the_next_grant() {
        let mut pacer = Pacer::new(0);
        let ceilings = [3, 3, 3, 3].map(|used| pacer.ceiling(5.0, ROUND, used) - used);
        assert_eq!(ceilings, [0, 0, 0, 0], "two claimed too many");
        assert_eq!(claimed(&mut pacer, 5.0, 10, 9), 5);
    }

    #[test]
    fn a_count_that_jumps_stops_no_request_for_long() {
        for to in [1_000_000, 0] {
            let mut pacer = Pacer::new(500);
            pacer.ceiling(10.0, ROUND, to);
            let granted = (0..10).find(|_| pacer.ceiling(10.0, ROUND, to) > to);
            assert!(granted.is_some(), "{to}");
        }
    }
}

//! Callers that left without an answer.
//!
//! A hang shows in requests that get old. Where callers have less patience than that, none ever does: they leave, and
//! others come. So those who waited for longer than answers usually take are counted until an answer comes.

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

/// Callers that left since the last answer to this worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GivenUp {
    count: u32,
    at: Instant,
}

impl GivenUp {
    /// A caller left that had waited long enough.
    pub(super) const fn see(&mut self, now: Instant) {
        self.count = self.count.saturating_add(1);
        self.at = now;
    }

    /// Somebody was answered: it is no hang.
    pub(super) const fn see_answer(&mut self) {
        self.count = 0;
    }

    /// How many there are, if the last of them left within `recent`. Other workers may have had answers since.
    pub(super) fn since(&self, recent: Duration, now: Instant) -> u32 {
        if self.count > 0 && now.saturating_since(self.at) < recent && !is_off(Mechanism::GivenUp) {
            self.count
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECENT: Duration = Duration::from_millis(500);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn callers_that_left_count_until_somebody_is_answered_or_long_ago() {
        let mut given_up = GivenUp::default();
        assert_eq!(given_up.since(RECENT, at(0)), 0);
        (0..5).for_each(|tenth| given_up.see(at(1_000 + tenth * 100)));
        assert_eq!(given_up.since(RECENT, at(1_500)), 5);
        assert_eq!(given_up.since(RECENT, at(1_900)), 0, "nobody asks any more");
        given_up.see_answer();
        given_up.see(at(2_000));
        assert_eq!(given_up.since(RECENT, at(2_000)), 1);
    }
}

//! Callers that left without an answer.
//!
//! A hang shows in requests that wait for too long. If callers give up sooner, no request ever does: they leave, and others
//! come. So callers that left after a longer wait than answers usually take are counted until an answer comes.

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
    /// A caller left after a long enough wait.
    pub(super) const fn see(&mut self, now: Instant) {
        self.count = self.count.saturating_add(1);
        self.at = now;
    }

    /// A request was answered: there is no hang.
    pub(super) const fn see_answer(&mut self) {
        self.count = 0;
    }

    /// The number of such callers, if the last one left within `recent`; else 0, because other workers may have had answers.
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
    fn departed_callers_count_until_an_answer_comes_or_for_a_limited_time() {
        let mut given_up = GivenUp::default();
        assert_eq!(given_up.since(RECENT, at(0)), 0);
        (0..5).for_each(|tenth| given_up.see(at(1_000 + tenth * 100)));
        assert_eq!(given_up.since(RECENT, at(1_500)), 5);
        assert_eq!(given_up.since(RECENT, at(1_900)), 0, "too long ago");
        given_up.see_answer();
        given_up.see(at(2_000));
        assert_eq!(given_up.since(RECENT, at(2_000)), 1);
    }
}

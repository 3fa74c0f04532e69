//! How much of the wait is used where requests in flight slow each other down.
//!
//! The formula takes the capacity to be the same however many requests are in flight. Behind a contended lock it is not: each request
//! beyond some number makes all of them slower, so a wait costs throughput. A test that finds more throughput with fewer requests in
//! flight halves the wait, in either state of the limit. It grows back beat by beat, because locks and load change.

use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

use super::hold::BEAT;

/// The part of the wait that each finding leaves, and the least part of the whole.
const LEFT: f64 = 0.5;
const LEAST: f64 = 0.05;
/// How the part grows back with each beat.
const FORGIVEN: f64 = 1.1;

/// The part of the wait in use, from [`LEAST`] to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitInUse {
    share: f64,
    /// Beats of the common clock that have passed.
    beats: u64,
}

impl Default for WaitInUse {
    fn default() -> Self {
        Self {
            share: 1.0,
            beats: 0,
        }
    }
}

impl WaitInUse {
    /// The part of the wait in use.
    pub(super) const fn share(self) -> f64 {
        self.share
    }

    /// The same for bursts, while no queue stands.
    pub(super) fn share_of_bursts(self) -> f64 {
        if is_off(Mechanism::ContendedBurst) {
            1.0
        } else {
            self.share
        }
    }

    /// Whether less than the whole wait is in use.
    pub(super) fn is_shortened(self) -> bool {
        self.share < 1.0
    }

    /// Fewer requests in flight achieved more.
    pub(super) const fn shorten(&mut self) {
        self.share = (self.share * LEFT).max(LEAST);
    }

    /// Grows back with each beat of the clock that all proxies share.
    pub(super) fn pass(&mut self, clock: Instant) {
        let beats = clock.saturating_since(Instant::ZERO).as_secs() / BEAT.as_secs();
        let passed = beats.saturating_sub(core::mem::replace(&mut self.beats, beats));
        if passed > 0 && !is_off(Mechanism::Forgiven) {
            let passed = u32::try_from(passed).unwrap_or(u32::MAX);
            self.share = (self.share * libm::pow(FORGIVEN, f64::from(passed))).min(1.0);
        }
    }
}

/// A wait after a finding, if it was `wait` before.
pub(super) const fn shortened(wait: f64) -> f64 {
    wait * LEFT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{assert_close, at};

    #[test]
    fn each_finding_halves_the_wait_down_to_a_twentieth() {
        let mut wait = WaitInUse::default();
        assert!(!wait.is_shortened());
        for expected in [0.5, 0.25, 0.125, 0.0625, 0.05, 0.05] {
            wait.shorten();
            assert!(wait.is_shortened());
            assert_close(wait.share(), expected, "in Hold");
            assert_close(wait.share_of_bursts(), expected, "in Cruise");
        }
    }

    #[test]
    fn the_wait_grows_back_by_a_tenth_with_each_beat() {
        let mut wait = WaitInUse::default();
        wait.pass(at(4_000));
        wait.shorten();
        for (ms, expected) in [
            (4_000, 0.5),
            (7_999, 0.5),
            (8_000, 0.55),
            (8_100, 0.55),
            (12_300, 0.605),
        ] {
            wait.pass(at(ms));
            assert_close(wait.share(), expected, "grown back");
        }
        wait.pass(at(20_000));
        assert_close(wait.share(), 0.605 * 1.21, "two beats without a window");
        wait.pass(at(16_000));
        assert_close(wait.share(), 0.605 * 1.21, "the clock was put back");
        wait.pass(at(9_000_000));
        assert_close(wait.share(), 1.0, "the whole wait");
        assert!(!wait.is_shortened());
    }
}

//! Learns from packs of requests how many the upstream serves at once.
//!
//! A cron job, a page with many parts or a deployment of a caller sends many requests at once, and then none for a while. The limit
//! grows by a quarter with each window that refuses requests without a queue. A pack has only a few such windows, and until
//! the next one that growth has faded. So most of each pack would be refused for good, however idle the upstream is.
//!
//! An overload goes on until a queue shows. A pack ends by itself: at least as many requests were refused as the limit admits at a
//! time, and then the requests in flight were answered without a queue. So twice as many may come the next time. This
//! lasts until there is a queue, because the next pack may come a minute later.

use super::window::WindowStats;
use crate::ablation::{Mechanism, is_off};

/// The factor by which a pack raises the limit.
const RAISE: f64 = 2.0;
/// A pack is over when fewer requests than this share of the limit are in flight.
const OVER: f64 = 0.5;

/// The limit that packs have shown to make no queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Packs {
    /// Requests refused in the pack under way.
    refused: f64,
    /// 0 while there was no pack since the last queue.
    limit: f64,
}

impl Packs {
    pub(super) const fn limit(&self) -> f64 {
        self.limit
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.limit *= factor;
    }

    /// Learns from a window without a queue. `in_force` is the limit that refused.
    pub(super) fn learn(&mut self, window: &WindowStats, in_force: f64) {
        if window.is_refusing {
            self.refused += window.refused;
        } else if window.in_flight_at_end < in_force * OVER {
            let refused = core::mem::take(&mut self.refused);
            if refused >= in_force && !is_off(Mechanism::Packs) {
                self.limit = self.limit.max(in_force * RAISE);
            }
        } else if !window.is_draining {
            // The limit is enough for requests that go on coming.
            self.refused = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{CALM, assert_close};

    const EMPTY: WindowStats = WindowStats {
        in_flight_at_end: 0.0,
        ..CALM
    };

    fn refusing(refused: f64) -> WindowStats {
        WindowStats {
            is_refusing: true,
            refused,
            ..EMPTY
        }
    }

    /// The limit after these windows, with 20 in force.
    fn limit_after(windows: &[WindowStats]) -> f64 {
        let mut packs = Packs::default();
        windows.iter().for_each(|window| packs.learn(window, 20.0));
        packs.limit()
    }

    #[test]
    fn a_pack_of_twice_the_limit_doubles_it_when_it_is_over() {
        let steady = WindowStats {
            in_flight_at_end: 10.0,
            ..CALM
        };
        let draining = WindowStats {
            is_draining: true,
            ..steady
        };
        for (name, windows, expected) in [
            ("none", &[EMPTY][..], 0.0),
            ("under way", &[refusing(500.0)], 0.0),
            ("over", &[refusing(20.0), EMPTY], 40.0),
            ("small", &[refusing(19.0), EMPTY], 0.0),
            (
                "of two windows",
                &[refusing(12.0), refusing(8.0), EMPTY],
                40.0,
            ),
            ("not over", &[refusing(20.0), draining], 0.0),
            ("over later", &[refusing(20.0), draining, EMPTY], 40.0),
            ("goes on", &[refusing(20.0), steady, EMPTY], 0.0),
            (
                "two small ones",
                &[refusing(12.0), EMPTY, refusing(12.0), EMPTY],
                0.0,
            ),
        ] {
            assert_close(limit_after(windows), expected, name);
        }
    }

    #[test]
    fn packs_count_for_all_endpoints() {
        let mut packs = Packs::default();
        [refusing(20.0), EMPTY]
            .iter()
            .for_each(|window| packs.learn(window, 20.0));
        packs.scale(1.5);
        assert_close(packs.limit(), 60.0, "three endpoints instead of two");
    }
}

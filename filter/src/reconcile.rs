//! Puts a gauge right that a dead VM left wrong.
//!
//! The gauge of requests in flight is the process's, the requests are their VMs': when a VM traps, what it had in
//! flight is never counted down. The leader knows what every live worker has in flight, a moment old, and the gauge
//! as it is now, so it can see the difference, but must not take traffic for a leak: between a worker's report and
//! the leader's look, requests come and go.
//!
//! So a look at the gauge is judged a round later, when every worker has reported from before the look and from
//! after it. What was really in flight lies between the two sums as long as it only rose or only fell in that tenth of
//! a second; the gauge is wrong by at least what it lies outside of them. A fluctuation within the tenth can still
//! deceive one look, but not ten in a row in the same direction; of those the smallest is put right. What
//! is left comes with the next ten. The same upwards, for a gauge that fell too low.

use std::collections::BTreeMap;

/// Looks in a row that must agree: about a second.
const ROUNDS: u32 = 10;

/// The gauges under watch, by upstream hash.
#[derive(Clone, Debug, Default)]
pub struct Reconciler {
    watches: BTreeMap<u64, Watch>,
}

/// One upstream's last look, and how long it has been wrong in the same direction.
#[derive(Clone, Copy, Debug)]
struct Watch {
    gauge: i64,
    sum: i64,
    rounds: u32,
    /// The smallest difference of these rounds: positive when the gauge is too high.
    least: i64,
}

impl Reconciler {
    /// One round of one upstream: the gauge now, and the sum of what live workers reported. Answers what to add.
    pub fn observe(&mut self, upstream: u64, gauge: i64, sum: i64) -> i64 {
        let watch = self.watches.entry(upstream).or_insert(Watch {
            gauge,
            sum,
            rounds: 0,
            least: 0,
        });
        let (low, high) = (watch.sum.min(sum), watch.sum.max(sum));
        let excess = watch.gauge.saturating_sub(watch.gauge.clamp(low, high));
        if excess == 0 || excess.signum() != watch.least.signum() {
            watch.rounds = 0;
            watch.least = excess;
        }
        if excess != 0 {
            watch.rounds += 1;
            watch.least = if excess > 0 {
                watch.least.min(excess)
            } else {
                watch.least.max(excess)
            };
        }
        let correction = if watch.rounds >= ROUNDS {
            watch.rounds = 0;
            -core::mem::take(&mut watch.least)
        } else {
            0
        };
        watch.gauge = gauge.saturating_add(correction);
        watch.sum = sum;
        correction
    }

    /// Upstreams to look at though nobody reports them: their gauge was not zero at the last look.
    pub fn unsettled(&self) -> impl Iterator<Item = u64> {
        self.watches
            .iter()
            .filter(|(_, watch)| watch.gauge != 0)
            .map(|(upstream, _)| *upstream)
    }

    /// Forgets upstreams at rest.
    pub fn settle(&mut self) {
        self.watches
            .retain(|_, watch| watch.gauge != 0 || watch.sum != 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: u64 = 1;

    /// The sum of all corrections over `looks` of (gauge without corrections, sum).
    fn run(looks: impl IntoIterator<Item = (i64, i64)>) -> i64 {
        let mut reconciler = Reconciler::default();
        looks.into_iter().fold(0, |done, (gauge, sum)| {
            done + reconciler.observe(WEB, gauge + done, sum)
        })
    }

    #[test]
    fn what_a_dead_vm_had_in_flight_is_taken_off() {
        assert_eq!(run((0..30).map(|_| (12, 5))), -7);
    }

    #[test]
    fn a_leak_shows_through_traffic_that_comes_and_goes() {
        let wave = [3, 9, 4, 0, 7, 2, 8, 5];
        let looks = (0..200).map(|i| (wave[i % 8] + 6, wave[(i + 7) % 8]));
        assert_eq!(run(looks), -6);
    }

    #[test]
    fn a_rising_flood_is_no_leak() {
        // Every report is a tenth of a second older than the look at the gauge.
        assert_eq!(run((0..100).map(|i| (50 * i + 50, 50 * i))), 0);
        assert_eq!(run((0..100).map(|i| (5_000 - 50 * i, 5_050 - 50 * i))), 0);
    }

    #[test]
    fn a_few_wrong_looks_are_forgiven() {
        let looks = (0..100).map(|i| if i % 10 == 0 { (5, 5) } else { (9, 5) });
        assert_eq!(run(looks), 0);
    }

    #[test]
    fn a_gauge_too_low_is_raised() {
        assert_eq!(run((0..30).map(|_| (-3, 2))), 5);
    }

    #[test]
    fn upstreams_at_rest_are_not_looked_at() {
        let mut reconciler = Reconciler::default();
        reconciler.observe(WEB, 4, 0);
        assert_eq!(reconciler.unsettled().count(), 1);
        reconciler.observe(WEB, 0, 0);
        reconciler.settle();
        assert_eq!(reconciler.unsettled().count(), 0);
    }
}

//! Corrects a gauge that a dead VM left wrong.
//!
//! The gauge of requests in flight belongs to the process, the requests to their VMs: when a VM traps, its requests in
//! flight are never counted down. The leader knows what every live worker had in flight a moment ago, and reads the gauge
//! now. So it can see a difference, but must not take traffic for a leak: requests come and go between a worker's report and
//! the leader's reading.
//!
//! So a reading of the gauge is judged a round later, when every worker has reported from before the reading and from after
//! it. The reading is compared with the middle of the two sums. A flood that rises or falls evenly then leaves no
//! difference, and other traffic leaves differences that are as often positive as negative. Over many readings the mean
//! difference is the leak, within the error of the mean. Only the part that is certain beyond four standard errors is
//! corrected, so a single outlier, which raises the error more than the mean, corrects nothing. Later readings correct the
//! rest.
//!
//! Traffic in step with the ticks, such as ten requests a second from a pacemaker, distorts every reading in the same way,
//! and no number of readings tells it from a leak. Arrivals do: the gauge that an arrival meets, minus the requests in
//! flight of its own worker, is the requests of other workers plus the leak. So the smallest value that any arrival met is
//! an upper bound of the leak. If it is below zero, the gauge is too low by at least as much. Nothing is corrected beyond
//! this bound. Without arrivals there is no traffic to distort the readings.
//!
//! While another version of the module runs, its requests count in the same gauge and are reported to another leader. Then
//! every round counts as one in which a worker was lost, and no reading is judged.
//!
//! A gauge below zero is certainly too low, and is raised at once. Otherwise, for a while after a worker was lost or this
//! worker became the leader, a gauge is lowered after the first judgment, and at other times only after the longest. A gauge
//! that is too low admits too many requests, but one that is too high would shed until the process ends.

use std::collections::BTreeMap;

use core::time::Duration;

use tidegate_core::{Instant, RequestsUnderWay};

/// Numbers of readings after which there is a judgment; after the last one they start over.
const JUDGMENTS: [u32; 4] = [20, 50, 100, 200];
/// A difference within this many standard errors may be chance (1 in 30,000).
const CERTAINTY: f64 = 4.0;
/// For how long after the loss of a worker gauges are lowered at every judgment.
const SUSPICION: Duration = Duration::from_secs(60);

/// The gauge of an upstream at rest is read once in this many rounds: a reading is a host call.
const RESTING_EVERY: u64 = 10;

/// The gauges under watch, by upstream hash.
#[derive(Clone, Debug)]
pub struct Reconciler {
    watches: BTreeMap<u64, Watch>,
    suspicious_until: Instant,
    rounds: u64,
}

/// One reading: the gauge, and what live workers reported before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaugeReading {
    /// The gauge; below zero if it was lowered too often.
    pub gauge: i64,
    /// The sum of the live workers' requests in flight.
    pub sum: i64,
    /// The fewest requests of other workers that an arrival met by the gauge; below zero if the gauge was too low, `None` if no
    /// request came.
    pub others: Option<i64>,
}

/// One upstream's last reading, and the differences so far: their number, mean, and sum of squared deviations
/// (Welford's algorithm); with the fewest requests of other workers that an arrival met since.
#[derive(Clone, Copy, Debug)]
struct Watch {
    last: GaugeReading,
    /// Whether the last reading is from before a worker was lost, and must not be judged.
    is_of_old: bool,
    looks: u32,
    mean: f64,
    squares: f64,
    others: Option<i64>,
}

impl Reconciler {
    /// Begins to watch, without knowledge of the time before.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            watches: BTreeMap::new(),
            suspicious_until: now + SUSPICION,
            rounds: 0,
        }
    }

    /// A worker was lost: earlier readings say nothing about what it left in the gauge.
    pub fn suspect(&mut self, now: Instant) {
        self.suspicious_until = self.suspicious_until.max(now + SUSPICION);
        for watch in self.watches.values_mut() {
            *watch = Watch {
                is_of_old: true,
                ..Watch::new(watch.last)
            };
        }
    }

    /// One round of one upstream. Returns the correction to add to the gauge.
    pub fn observe(&mut self, upstream: u64, look: GaugeReading, now: Instant) -> i64 {
        let is_suspicious = now < self.suspicious_until;
        let Some(watch) = self.watches.get_mut(&upstream) else {
            self.watches.insert(upstream, Watch::new(look));
            return 0;
        };
        watch.note(look);
        let correction = if look.gauge < 0 {
            look.gauge.saturating_neg()
        } else {
            watch.judge(is_suspicious)
        };
        if correction != 0 {
            *watch = Watch::new(GaugeReading {
                gauge: look.gauge.saturating_add(correction),
                ..look
            });
        }
        correction
    }

    /// Whether to read the gauge of an upstream for which workers report this. Without any report, only if its gauge was not
    /// zero at the last reading.
    #[must_use]
    pub fn needs_look(&self, upstream: u64, under_way: Option<&RequestsUnderWay>) -> bool {
        let watch = self.watches.get(&upstream);
        match under_way {
            None => watch.is_some_and(|watch| watch.last.gauge != 0),
            Some(under_way) => {
                let is_at_rest = under_way.in_flight == 0 && under_way.others.is_none();
                // Spread over the rounds.
                let is_due = self
                    .rounds
                    .wrapping_add(upstream)
                    .is_multiple_of(RESTING_EVERY);
                !is_at_rest || watch.is_some() || is_due
            }
        }
    }

    /// The end of a round. Forgets upstreams at rest.
    pub fn settle(&mut self) {
        self.rounds = self.rounds.wrapping_add(1);
        self.watches
            .retain(|_, watch| (watch.last.gauge, watch.last.sum) != (0, 0));
    }
}

impl Watch {
    const fn new(last: GaugeReading) -> Self {
        Self {
            last,
            is_of_old: false,
            looks: 0,
            mean: 0.0,
            squares: 0.0,
            others: None,
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "requests in flight stay far below 2^53"
    )]
    fn note(&mut self, look: GaugeReading) {
        if std::mem::take(&mut self.is_of_old) {
            self.last = look;
            return;
        }
        let middle = (self.last.sum as f64 + look.sum as f64) / 2.0;
        let difference = self.last.gauge as f64 - middle;
        self.last = look;
        self.others = [self.others, look.others].into_iter().flatten().min();
        self.looks += 1;
        let deviation = difference - self.mean;
        self.mean += deviation / f64::from(self.looks);
        self.squares += deviation * (difference - self.mean);
    }

    /// The correction; starts over after the last judgment.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "truncation towards zero is meant, and the cast saturates"
    )]
    fn judge(&mut self, is_suspicious: bool) -> i64 {
        if !JUDGMENTS.contains(&self.looks) {
            return 0;
        }
        let is_last = JUDGMENTS.last() == Some(&self.looks);
        let looks = f64::from(self.looks);
        let error = (self.squares / (looks - 1.0) / looks).sqrt();
        let certain = (self.mean.abs() - CERTAINTY * error).max(0.0);
        let too_high = self.within_bounds(certain.copysign(self.mean) as i64);
        if is_last {
            *self = Self::new(self.last);
        }
        if too_high > 0 && !is_suspicious && !is_last {
            return 0;
        }
        too_high.saturating_neg()
    }

    /// Limits a correction to what arrivals support; `too_high` is by how much readings say the gauge is too high, below zero if
    /// it is too low.
    fn within_bounds(&self, too_high: i64) -> i64 {
        match self.others {
            Some(others) if too_high > 0 => too_high.min(others.max(0)),
            Some(others) => too_high.max(others.min(0)),
            None => too_high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: u64 = 1;
    const TICK: Duration = Duration::from_millis(100);

    /// The sum of all corrections over `looks` of (gauge without corrections, sum), one each tick.
    fn run(reconciler: &mut Reconciler, looks: impl IntoIterator<Item = (i64, i64)>) -> i64 {
        let mut now = Instant::ZERO;
        looks.into_iter().fold(0, |done, (gauge, sum)| {
            now = now + TICK;
            let gauge = gauge + done;
            done + reconciler.observe(WEB, look(gauge, sum), now)
        })
    }

    /// A reading without arrivals.
    fn look(gauge: i64, sum: i64) -> GaugeReading {
        GaugeReading {
            gauge,
            sum,
            others: None,
        }
    }

    fn fresh() -> Reconciler {
        Reconciler::new(Instant::ZERO)
    }

    /// Readings of changing traffic, reported a tick late, plus `leak`. The pattern repeats after 997 ticks, far longer than
    /// any test.
    fn traffic(leak: i64) -> impl Iterator<Item = (i64, i64)> {
        let in_flight = |tick: i64| 20 + (tick * 7_919 % 997) % 11 - (tick * 104_729 % 997) % 11;
        (1..).map(move |tick| (in_flight(tick) + leak, in_flight(tick - 1)))
    }

    #[test]
    fn requests_of_a_dead_vm_leave_the_gauge_in_two_seconds() {
        assert_eq!(run(&mut fresh(), (0..22).map(|_| (12, 5))), -7);
    }

    #[test]
    fn a_leak_shows_through_changing_traffic() {
        let corrected = run(&mut fresh(), traffic(30).take(500));
        assert!((-30..=-27).contains(&corrected), "{corrected}");
    }

    #[test]
    fn traffic_without_a_leak_is_not_corrected() {
        assert_eq!(run(&mut fresh(), traffic(0).take(590)), 0);
    }

    #[test]
    fn a_rising_and_a_falling_flood_are_no_leak() {
        // Every report is a tenth of a second older than the reading of the gauge.
        assert_eq!(
            run(&mut fresh(), (0..500).map(|i| (50 * i + 25, 50 * i))),
            0
        );
        assert_eq!(
            run(
                &mut fresh(),
                (0..500).map(|i| (30_000 - 50 * i, 30_025 - 50 * i))
            ),
            0
        );
    }

    #[test]
    fn a_few_outliers_correct_nothing() {
        for wild in 1..=8 {
            let looks = (0..22).map(|i| if i < wild { (500, 5) } else { (5, 5) });
            assert_eq!(run(&mut fresh(), looks), 0, "{wild} wild looks");
        }
    }

    #[test]
    fn without_the_loss_of_a_worker_a_correction_takes_longer() {
        let mut reconciler = fresh();
        let long_after = Instant::ZERO + Duration::from_secs(100);
        let looks_until_right = |reconciler: &mut Reconciler| {
            let mut gauge = 12;
            (0..400)
                .take_while(|_| {
                    gauge += reconciler.observe(WEB, look(gauge, 5), long_after);
                    gauge != 5
                })
                .count()
        };
        assert_eq!(looks_until_right(&mut reconciler), 200);
        reconciler.suspect(long_after);
        assert_eq!(looks_until_right(&mut reconciler), 20);
    }

    #[test]
    fn readings_from_before_a_loss_do_not_hide_the_leak() {
        let mut reconciler = fresh();
        let others = Some(0);
        for _ in 0..10 {
            let before = GaugeReading {
                others,
                ..look(5, 5)
            };
            assert_eq!(reconciler.observe(WEB, before, Instant::ZERO), 0);
        }
        reconciler.suspect(Instant::ZERO);
        let after = GaugeReading {
            others: Some(7),
            ..look(12, 5)
        };
        let corrected: i64 = (0..=20)
            .map(|_| reconciler.observe(WEB, after, Instant::ZERO))
            .sum();
        assert_eq!(corrected, -7);
    }

    /// A pack of requests comes with every tick: readings find it in flight, and reports are from before it came or after it
    /// ended, or the other way round.
    #[test]
    fn traffic_in_step_with_the_ticks_is_no_leak() {
        for (gauge, sum) in [(50, 0), (0, 50)] {
            let mut reconciler = fresh();
            let in_step = GaugeReading {
                gauge,
                sum,
                others: Some(0),
            };
            for _ in 0..500 {
                assert_eq!(reconciler.observe(WEB, in_step, Instant::ZERO), 0);
            }
        }
    }

    #[test]
    fn arrivals_bound_the_correction() {
        for (gauge, others, expected) in [(50, 7, -7), (50, -7, 0), (5, -7, 7), (5, 7, 0)] {
            let mut reconciler = fresh();
            let met = GaugeReading {
                gauge,
                sum: 20,
                others: Some(others),
            };
            let corrected: i64 = (0..=20)
                .map(|_| reconciler.observe(WEB, met, Instant::ZERO))
                .sum();
            assert_eq!(corrected, expected, "{gauge} {others}");
        }
    }

    #[test]
    fn a_gauge_too_low_is_raised_at_any_time() {
        let mut reconciler = fresh();
        let long_after = Instant::ZERO + Duration::from_secs(100);
        let raised: i64 = (0..22)
            .map(|_| reconciler.observe(WEB, look(2, 5), long_after))
            .sum();
        assert_eq!(raised, 3);
    }

    #[test]
    fn a_gauge_below_zero_is_raised_at_once() {
        let mut reconciler = fresh();
        assert_eq!(reconciler.observe(WEB, look(4, 4), Instant::ZERO), 0);
        let busy = GaugeReading {
            others: Some(9),
            ..look(-3, 40)
        };
        assert_eq!(reconciler.observe(WEB, busy, Instant::ZERO), 3);
    }

    #[test]
    fn the_gauge_of_an_unreported_upstream_is_read_until_it_is_zero() {
        let mut reconciler = fresh();
        reconciler.observe(WEB, look(4, 0), Instant::ZERO);
        assert!(reconciler.needs_look(WEB, None));
        reconciler.observe(WEB, look(0, 0), Instant::ZERO);
        reconciler.settle();
        assert!(!reconciler.needs_look(WEB, None));
    }

    #[test]
    fn gauges_at_rest_are_read_now_and_then_and_others_in_every_round() {
        let rounds = |under_way: RequestsUnderWay| {
            let mut reconciler = fresh();
            let looks = (0..100).filter(|_| {
                let looks = reconciler.needs_look(WEB, Some(&under_way));
                reconciler.settle();
                looks
            });
            looks.count()
        };
        let at_rest = RequestsUnderWay::default();
        let busy = RequestsUnderWay {
            in_flight: 1,
            ..at_rest
        };
        let met = RequestsUnderWay {
            others: Some(0),
            ..at_rest
        };
        assert_eq!([at_rest, busy, met].map(rounds), [10, 100, 100]);
    }

    #[test]
    fn a_leak_of_an_upstream_at_rest_is_watched_from_the_first_reading_on() {
        let mut reconciler = fresh();
        let at_rest = RequestsUnderWay::default();
        reconciler.observe(WEB, look(4, 0), Instant::ZERO);
        let looks = (0..30).filter(|_| {
            reconciler.settle();
            reconciler.needs_look(WEB, Some(&at_rest))
        });
        assert_eq!(looks.count(), 30);
    }
}

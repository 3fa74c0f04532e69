//! Puts a gauge right that a dead VM left wrong.
//!
//! The gauge of requests in flight is the process's, the requests are their VMs': when a VM traps, what it had in
//! flight is never counted down. The leader knows what every live worker had in flight a moment ago, and the gauge
//! as it is now, so it can see the difference, but must not take traffic for a leak: between a worker's report and
//! the leader's look, requests come and go.
//!
//! So a look at the gauge is judged a round later, when every worker has reported from before the look and from
//! after it, against the middle of the two sums: a flood that rises or falls evenly then leaves no difference, and
//! what comes and goes leaves one that is as often positive as negative. Over many looks the mean difference is the
//! leak, within the error of the mean; only what is certain beyond four standard errors is corrected, so that a
//! single wild look, which raises the error more than the mean, corrects nothing. What is left comes with more looks.
//!
//! Traffic in step with the ticks, ten requests a second from a pacemaker, deceives every look in the same way, and
//! no number of looks tells it from a leak. What arrivals meet does: the gauge, less what their own worker has in
//! flight, is what others have in flight and the leak. So the fewest that any arrival met bounds the leak from above,
//! and where that is below zero the gauge is too low by at least as much. Nothing is corrected beyond this bound.
//! Without arrivals there is no traffic to be deceived by.
//!
//! While another version of the module runs, whose requests count in the same gauge and are told to another leader, every
//! round is one in which a worker was lost: no look says anything.
//!
//! A gauge below zero is too low for certain, and is raised at once. Otherwise a gauge is lowered after the first
//! judgement for a while after a worker was lost or this worker became the leader, and else only after the longest:
//! one below the truth lets too many in, but one above it would shed until the process ends.

use std::collections::BTreeMap;

use core::time::Duration;

use tidegate_core::{Instant, RequestsUnderWay};

/// Numbers of looks after which there is a judgement; the last one starts anew.
const JUDGEMENTS: [u32; 4] = [20, 50, 100, 200];
/// What is within so many standard errors may be chance (1 in 30,000).
const CERTAINTY: f64 = 4.0;
/// How long after the loss of a worker gauges are lowered at every judgement.
const SUSPICION: Duration = Duration::from_secs(60);

/// The gauge of an upstream at rest is looked at once in so many rounds: a look is a call of the host.
const RESTING_EVERY: u64 = 10;

/// The gauges under watch, by upstream hash.
#[derive(Clone, Debug)]
pub struct Reconciler {
    watches: BTreeMap<u64, Watch>,
    suspicious_until: Instant,
    rounds: u64,
}

/// One look: the gauge, and what live workers reported before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaugeReading {
    /// The gauge; below zero when it was lowered too often.
    pub gauge: i64,
    /// The sum of what they have in flight.
    pub sum: i64,
    /// The fewest requests of other workers that an arrival met by the gauge, less than none when it was too low;
    /// `None` when nobody came.
    pub others: Option<i64>,
}

/// One upstream's last look, and the differences so far: their number, mean, and sum of squared deviations
/// (Welford's algorithm); with the fewest others that an arrival met since.
#[derive(Clone, Copy, Debug)]
struct Watch {
    last: GaugeReading,
    /// The last look is from before a worker was lost, and not to be judged.
    is_of_old: bool,
    looks: u32,
    mean: f64,
    squares: f64,
    others: Option<i64>,
}

impl Reconciler {
    /// Begins to watch; nothing is known of what was before.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            watches: BTreeMap::new(),
            suspicious_until: now + SUSPICION,
            rounds: 0,
        }
    }

    /// A worker was lost: what was seen before says nothing about what it left.
    pub fn suspect(&mut self, now: Instant) {
        self.suspicious_until = self.suspicious_until.max(now + SUSPICION);
        for watch in self.watches.values_mut() {
            *watch = Watch {
                is_of_old: true,
                ..Watch::new(watch.last)
            };
        }
    }

    /// One round of one upstream. Answers what to add to the gauge.
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

    /// Whether to look at an upstream of which workers report this, or nothing: then only if its gauge was not zero at the
    /// last look.
    #[must_use]
    pub fn needs_look(&self, upstream: u64, under_way: Option<&RequestsUnderWay>) -> bool {
        let watch = self.watches.get(&upstream);
        match under_way {
            None => watch.is_some_and(|watch| watch.last.gauge != 0),
            Some(under_way) => {
                let is_at_rest = under_way.in_flight == 0 && under_way.others.is_none();
                // Not all of them in the same round.
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

    /// What to add; starts anew after the last judgement.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "truncation towards zero is meant, and the cast saturates"
    )]
    fn judge(&mut self, is_suspicious: bool) -> i64 {
        if !JUDGEMENTS.contains(&self.looks) {
            return 0;
        }
        let is_last = JUDGEMENTS.last() == Some(&self.looks);
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

    /// So much of what looks say the gauge is too high by, less than nothing when it is too low, as arrivals bear out.
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

    /// A look while nobody comes.
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

    /// Looks at traffic that comes and goes, reported a tick late, with `leak` on top. The pattern repeats after
    /// 997 ticks, far longer than any test.
    fn traffic(leak: i64) -> impl Iterator<Item = (i64, i64)> {
        let in_flight = |tick: i64| 20 + (tick * 7_919 % 997) % 11 - (tick * 104_729 % 997) % 11;
        (1..).map(move |tick| (in_flight(tick) + leak, in_flight(tick - 1)))
    }

    #[test]
    fn what_a_dead_vm_had_in_flight_is_taken_off_in_two_seconds() {
        assert_eq!(run(&mut fresh(), (0..22).map(|_| (12, 5))), -7);
    }

    #[test]
    fn a_leak_shows_through_traffic_that_comes_and_goes() {
        let corrected = run(&mut fresh(), traffic(30).take(500));
        assert!((-30..=-27).contains(&corrected), "{corrected}");
    }

    #[test]
    fn traffic_without_a_leak_is_left_alone() {
        assert_eq!(run(&mut fresh(), traffic(0).take(590)), 0);
    }

    #[test]
    fn a_rising_and_a_falling_flood_are_no_leak() {
        // Every report is a tenth of a second older than the look at the gauge.
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
    fn a_few_wild_looks_are_forgiven() {
        for wild in 1..=8 {
            let looks = (0..22).map(|i| if i < wild { (500, 5) } else { (5, 5) });
            assert_eq!(run(&mut fresh(), looks), 0, "{wild} wild looks");
        }
    }

    #[test]
    fn without_the_loss_of_a_worker_it_takes_longer() {
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
    fn what_was_seen_before_a_worker_was_lost_hides_nothing() {
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

    /// A pack of requests comes with every tick: looks find it in flight, and reports are from before it came or from
    /// after it went, or the other way round.
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
    fn no_more_is_corrected_than_arrivals_bear_out() {
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
    fn upstreams_that_nobody_reports_are_looked_at_until_their_gauge_is_zero() {
        let mut reconciler = fresh();
        reconciler.observe(WEB, look(4, 0), Instant::ZERO);
        assert!(reconciler.needs_look(WEB, None));
        reconciler.observe(WEB, look(0, 0), Instant::ZERO);
        reconciler.settle();
        assert!(!reconciler.needs_look(WEB, None));
    }

    #[test]
    fn upstreams_at_rest_are_looked_at_now_and_then_and_others_in_every_round() {
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
    fn a_leak_of_an_upstream_at_rest_is_watched_from_the_first_look_on() {
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

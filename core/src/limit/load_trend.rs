//! Whether latency grows with the load that requests meet.
//!
//! A queue takes longer the more requests are in it; a slow service takes as long at any load. Each round gives one point: its mean load at
//! admission and its mean latency, weighed by its answers. The line through the points is that of ordinary least squares. Nothing is counted for it in
//! addition. It answers two questions:
//!
//! - A proxy that starts under overload fills the queue of the upstream before the first answer comes, so the mean of the first latencies is no
//!   latency without a queue. If the line rises, its value at no load is one.
//! - Later, all requests take longer than before. If the line is flat, they do not wait for each other: the service has become slower. If it rises,
//!   there is a queue.

use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;

/// The fewest rounds with answers that show how latencies vary around the line.
const LEAST_ROUNDS: f64 = 4.0;
/// Two of them are needed for the line itself.
const LINE: f64 = 2.0;
/// The latency grows with load if the slope is above zero by this many standard errors.
const SURE: f64 = 4.0;
/// The latency at no load is at most this share of the mean, or the queue is short.
const MOST_OF_MEAN: f64 = 0.7;
/// The least variance of the loads, requests squared. Loads that are alike show no trend.
const LEAST_VARIANCE: f64 = 0.25;
/// How much more latency twice the load means in a queue that this proxy alone fills is as much again, a share of 1. Other proxies' requests are a
/// part of the queue that this one's load does not show, so the share is less. Below the first figure latencies are flat, above the second
/// they rise: in either case by this many standard errors.
const FLAT: f64 = 0.1;
const RISING: f64 = 0.25;
const SURELY: f64 = 2.0;

/// Sums over rounds, weighed by answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadTrend {
    rounds: f64,
    answers: f64,
    failures: f64,
    loads: f64,
    latencies: f64,
    loads_squared: f64,
    latencies_squared: f64,
    products: f64,
}

/// What the line says about requests that take longer than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    /// They take as long at any load: the service is slower.
    Flat,
    /// They take longer under load: there is a queue.
    Rising,
    /// It may be chance, or both.
    Unsure,
}

/// The line through the rounds.
#[derive(Clone, Copy, Debug)]
struct LoadLine {
    /// The mean load, requests, and the mean latency, seconds.
    load: f64,
    latency: f64,
    /// Seconds for each additional request, and the standard error of that.
    slope: f64,
    error: f64,
}

impl LoadTrend {
    /// Adds the answers of one round.
    pub(super) fn add(&mut self, round: &Sample) {
        self.failures += round.failure_loads().n;
        let loads = round.success_loads();
        let Some(latency) = round.mean_latency().filter(|_| loads.n > 0.0) else {
            return;
        };
        let answers = round.count(Count::Answers);
        let load = loads.mean();
        self.rounds += 1.0;
        self.answers += answers;
        self.loads += answers * load;
        self.latencies += answers * latency;
        self.loads_squared += answers * load * load;
        self.latencies_squared += answers * latency * latency;
        self.products += answers * load * latency;
    }

    /// The line; `None` after too few rounds, or if their loads are alike.
    fn line(&self) -> Option<LoadLine> {
        if self.rounds < LEAST_ROUNDS {
            return None;
        }
        let (load, latency) = (self.loads / self.answers, self.latencies / self.answers);
        let loads = self.loads_squared - self.answers * load * load;
        let latencies = self.latencies_squared - self.answers * latency * latency;
        let both = self.products - self.answers * load * latency;
        if loads < self.answers * LEAST_VARIANCE {
            return None;
        }
        let slope = both / loads;
        let unexplained = (latencies - slope * both).max(0.0) / (self.rounds - LINE);
        Some(LoadLine {
            load,
            latency,
            slope,
            error: (unexplained / loads).sqrt(),
        })
    }

    /// The latency of a request that meets no other, seconds, 0 or more. `None` unless latencies surely grow with load.
    pub(super) fn latency_without_load(&self) -> Option<f64> {
        let line = self.line().filter(|_| !is_off(Mechanism::LoadTrend))?;
        // The load at admission includes the request itself.
        let alone = (line.latency - line.slope * (line.load - 1.0)).max(0.0);
        let is_sure = line.slope > SURE * line.error && alone < line.latency * MOST_OF_MEAN;
        is_sure.then_some(alone)
    }

    /// Whether latencies depend on load. An upstream that refuses what its queue does not hold is as slow at any load, too: so latencies are
    /// flat only if at most the share `tolerated` of the requests has failed, 0..=1.
    pub(super) fn trend(&self, tolerated: f64) -> Trend {
        let Some(line) = self.line() else {
            return Trend::Unsure;
        };
        let scale = line.load / line.latency;
        let (share, error) = (line.slope * scale, SURELY * line.error * scale);
        let fails = self.failures > (self.answers + self.failures) * tolerated;
        if share.abs() + error < FLAT && !fails && !is_off(Mechanism::FlatLatency) {
            Trend::Flat
        } else if share - error > RISING && !is_off(Mechanism::RisingLatency) {
            Trend::Rising
        } else {
            Trend::Unsure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{assert_close, window};

    /// A tenth of a second with these answers, all of which met this load.
    fn round(answers: u64, load: u64, ms: u64) -> Sample {
        let mut round = window(100, answers, ms);
        round.tally.add(Count::Successes, answers);
        round.tally.add(Count::SuccessLoad, answers * load);
        round
    }

    fn trend(rounds: impl IntoIterator<Item = Sample>) -> LoadTrend {
        let mut trend = LoadTrend::default();
        rounds.into_iter().for_each(|round| trend.add(&round));
        trend
    }

    #[test]
    fn latencies_that_grow_with_load_tell_the_latency_at_no_load() {
        // 100 ms, and 20 ms more for each other request.
        let queue = trend((1..=8).map(|load| round(load, load, 80 + 20 * load)));
        assert_close(queue.latency_without_load().unwrap(), 0.1, "at no load");
    }

    #[test]
    fn a_line_that_crosses_zero_tells_no_negative_latency() {
        let queue = trend((10..20).map(|load| round(1, load, 50 * load - 400)));
        assert_close(queue.latency_without_load().unwrap(), 0.0, "at no load");
    }

    /// Load and latency, milliseconds, of each round.
    #[test]
    fn other_latencies_show_no_queue() {
        let slow = |load| (load, 500);
        let ten = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19];
        let cases: [(&str, Vec<(u64, u64)>); 6] = [
            ("as long at any load", ten.map(slow).to_vec()),
            (
                "shorter under load",
                ten.map(|load| (load, 500 - load * 20)).to_vec(),
            ),
            (
                "a little longer",
                ten.map(|load| (load, 500 + load * 4)).to_vec(),
            ),
            ("at one load", ten.map(|ms| (20, ms * 50)).to_vec()),
            ("in three rounds", vec![(1, 100), (2, 200), (3, 300)]),
            (
                "by chance",
                vec![
                    (1, 300),
                    (5, 900),
                    (9, 200),
                    (13, 500),
                    (17, 1_000),
                    (19, 400),
                ],
            ),
        ];
        for (name, rounds) in cases {
            let found = trend(rounds.iter().map(|(load, ms)| round(1, *load, *ms)));
            assert_eq!(found.latency_without_load(), None, "{name}");
        }
    }

    /// Load and latency, milliseconds, of rounds of ten answers each.
    fn tens(rounds: impl IntoIterator<Item = (u64, u64)>) -> LoadTrend {
        trend(rounds.into_iter().map(|(load, ms)| round(10, load, ms)))
    }

    #[test]
    fn latencies_are_flat_or_rise_with_load() {
        use Trend::{Flat, Rising, Unsure};
        let cases = [
            ("as long at any load", [2, 4, 6, 8], [500; 4], Flat),
            ("at one load", [5; 4], [500; 4], Unsure),
            ("a little longer", [2, 4, 6, 8], [494, 498, 502, 506], Flat),
            ("a queue", [2, 4, 6, 8], [200, 400, 600, 800], Rising),
            ("part of one", [2, 4, 6, 8], [410, 470, 530, 590], Rising),
            ("a small part", [2, 4, 6, 8], [470, 490, 510, 530], Unsure),
            ("shorter", [2, 4, 6, 8], [530, 510, 490, 470], Unsure),
            ("by chance", [2, 4, 6, 8], [550, 450, 450, 550], Unsure),
        ];
        for (name, loads, ms, expected) in cases {
            let trend = tens(loads.into_iter().zip(ms)).trend(0.01);
            assert_eq!(trend, expected, "{name}");
        }
        assert_eq!(tens([(2, 500), (4, 500), (6, 500)]).trend(0.01), Unsure);
    }

    #[test]
    fn an_upstream_that_refuses_requests_is_not_found_flat() {
        use Trend::{Flat, Unsure};
        for (failures, expected) in [(0, Flat), (1, Flat), (2, Unsure)] {
            let mut trend = tens([(2, 500), (4, 500), (6, 500), (8, 500)]);
            // A round may have failures only.
            let mut failed = window(100, 0, 0);
            failed.tally.add(Count::Failures, failures);
            trend.add(&failed);
            assert_eq!(trend.trend(0.025), expected, "{failures} of 40");
        }
    }

    #[test]
    fn a_round_without_an_answer_counts_for_nothing() {
        let mut queue = trend((1..=3).map(|load| round(1, load, 100 * load)));
        queue.add(&window(100, 0, 0));
        assert_eq!(queue.latency_without_load(), None, "three rounds");
        queue.add(&round(1, 4, 400));
        assert!(queue.latency_without_load().is_some());
    }
}

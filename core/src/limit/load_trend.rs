//! Whether the first answers took long because of the load that their requests met.
//!
//! A proxy that starts under overload fills the queue of the upstream before the first answer comes. Most of the first latencies include that
//! queue, so their mean is no latency without a queue. But the first requests met little load, and later ones more. If the latency grows
//! with the load at admission, the line through both (ordinary least squares) gives the latency at no load. A slow service takes as long at any
//! load.
//!
//! Each round gives one point, its mean load and its mean latency, weighed by its answers. Nothing is counted for it in addition.

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

/// Sums over rounds, weighed by answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadTrend {
    rounds: f64,
    answers: f64,
    loads: f64,
    latencies: f64,
    loads_squared: f64,
    latencies_squared: f64,
    products: f64,
}

impl LoadTrend {
    /// Adds the answers of one round.
    pub(super) fn add(&mut self, round: &Sample) {
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

    /// The latency of a request that meets no other, seconds, 0 or more. `None` unless latencies surely grow with load.
    pub(super) fn latency_without_load(&self) -> Option<f64> {
        if self.rounds < LEAST_ROUNDS || is_off(Mechanism::LoadTrend) {
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
        let error = (unexplained / loads).sqrt();
        // The load at admission includes the request itself.
        let alone = (latency - slope * (load - 1.0)).max(0.0);
        (slope > SURE * error && alone < latency * MOST_OF_MEAN).then_some(alone)
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

    #[test]
    fn a_round_without_an_answer_counts_for_nothing() {
        let mut queue = trend((1..=3).map(|load| round(1, load, 100 * load)));
        queue.add(&window(100, 0, 0));
        assert_eq!(queue.latency_without_load(), None, "three rounds");
        queue.add(&round(1, 4, 400));
        assert!(queue.latency_without_load().is_some());
    }
}

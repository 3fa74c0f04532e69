//! The latency without a queue.
//!
//! Probing for it (Envoy's min-RTT windows) sheds healthy traffic, and a minimum over time depends on single answers.
//! Here every window without a standing queue counts: its latencies join a histogram that forgets slowly. While the
//! upstream is congested nothing is learned, so a long overload does not become normal.
//!
//! A queue delays *every* request, the fast ones too. So the sign of a queue is a low quantile that moved, as
//! CoDel judges by the minimum (Nichols and Jacobson, "Controlling Queue Delay", 2012). Slow routes, a brownout
//! of a fifth of the requests, and long tails do not move it. The mean is exact, because Little's law needs the mean.

use core::cell::Cell;

use serde::{Deserialize, Serialize};

use crate::ablation::{Mechanism, is_off};
use crate::by_bucket::ByBucket;
use crate::histogram::{Histogram, above_of, quantile_of};
use crate::sample::Sample;
use crate::tally::Count;
use crate::units::Seconds;

/// The quantile that shows a queue: low enough to be that of fast requests, not so low that one cached reply decides.
pub(crate) const LOW: f64 = 0.1;
/// After this many answers, older ones have lost two thirds of their weight ...
const MEMORY: f64 = 2_000.0;
/// ... or after the answers of this many seconds, if those are fewer. A service with few requests would take minutes to show
/// that it has become slower. [`ENOUGH`] answers count in any case.
const MEMORY_SPAN: f64 = 10.0;
/// With fewer answers than this, the earlier belief still counts.
const ENOUGH: f64 = 200.0;
/// Answers until half of a higher, or of a lower, share of requests without an answer is believed. A lower one is believed
/// sooner, because an outage leaves many such requests and then none.
const UNANSWERED_UP: f64 = 200.0;
const UNANSWERED_DOWN: f64 = 50.0;
/// The most that is believed of it, so that a caller that leaves on purpose raises the limit threefold at most.
const MOST_UNANSWERED: f64 = 2.0;
/// A window of few answers is faster than the floor if it is by this many standard errors. Latencies are taken to vary by at least this part
/// of their mean: a few of them show less than there is.
const SURE: f64 = 1.5;
const LEAST_VARIATION: f64 = 0.5;
/// The low quantile of at least so many answers is compared with that of the floor. Fewer are compared with the quantile that all of them
/// exceed by chance with this probability.
const MANY: f64 = 10.0;
const ALL_ABOVE: f64 = 0.25;
/// Seconds for which the first test is trusted, and the most; each test that agrees doubles them. They are powers of two, so
/// that a proxy that tests rarely does so at the same moments as one that tests often.
const TRUSTED: u32 = 4;
const MOST_TRUSTED: u32 = 64;

/// The latencies without a queue that a successor starts from; all zero while unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FloorCheckpoint {
    /// The low quantile that shows a queue.
    pub low: Seconds,
    /// The mean.
    pub mean: Seconds,
    /// The objective's quantile.
    pub tail: Seconds,
}

/// Latencies without a queue, seconds; all zero while unknown.
#[derive(Clone, Debug)]
pub(super) struct Floor {
    pub(super) low: f64,
    pub(super) mean: f64,
    pub(super) tail: f64,
    /// The time in flight of requests without an answer, as a multiple of that of requests with one.
    unanswered: f64,
    /// Answers by bucket, with less weight for older ones ...
    weights: ByBucket<f32>,
    /// ... and the exact sums of the same windows: answers, and their latencies in seconds.
    answers: f64,
    latencies: f64,
    /// More than 0: the floor is taken to have no queue in it, and the next test comes when the clock passes a multiple of this
    /// many seconds. 0: the floor is in doubt where it may do harm.
    trusted: u32,
    /// The last answer of [`Floor::tail_within`], which is asked some times in each round and changes with a window.
    tail_within: Cell<Option<TailWithin>>,
}

/// A question to [`Floor::tail_within`] and its answer.
#[derive(Clone, Copy, Debug)]
struct TailWithin {
    target: f64,
    quantile: f64,
    tail: Option<f64>,
}

impl Floor {
    /// Continues from the state of an earlier leader.
    pub(super) const fn resume(known: FloorCheckpoint) -> Self {
        Self::believed(known.low.get(), known.mean.get(), known.tail.get())
    }

    /// The state for a successor.
    pub(super) const fn checkpoint(&self) -> FloorCheckpoint {
        FloorCheckpoint {
            low: Seconds::new(self.low),
            mean: Seconds::new(self.mean),
            tail: Seconds::new(self.tail),
        }
    }

    /// A floor of these values, seconds; zeros while unknown.
    pub(super) const fn believed(low: f64, mean: f64, tail: f64) -> Self {
        Self {
            low,
            mean,
            tail,
            unanswered: 0.0,
            weights: ByBucket::EMPTY,
            answers: 0.0,
            latencies: 0.0,
            trusted: 0,
            tail_within: Cell::new(None),
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.mean > 0.0
    }

    /// Whether it was learned from so few answers that slow ones may be missing among them by chance.
    pub(super) fn is_young(&self) -> bool {
        self.answers < ENOUGH
    }

    /// Whether the floor may include a queue that does harm. A queue that stood from the first answer on looks like a slow
    /// service. So a mean above `harmless` seconds is in doubt until a test, or a long time without a refusal, confirms it.
    pub(super) fn is_in_doubt(&self, harmless: f64) -> bool {
        self.trusted == 0 && self.mean > harmless && !is_off(Mechanism::Proof)
    }

    /// Seconds of the common clock from one test to the next; `None` if the mean is not above `harmless` seconds.
    pub(super) fn test_period(&self, harmless: f64) -> Option<u64> {
        (self.mean > harmless && !is_off(Mechanism::Proof)).then(|| u64::from(self.trusted.max(1)))
    }

    /// How long requests are in flight for each answer, seconds: what Little's law needs. Requests that fail or whose callers
    /// leave are in flight as well, so it is the mean latency or more.
    pub(super) fn occupancy(&self) -> f64 {
        self.mean * (1.0 + self.unanswered)
    }

    /// What the low quantile of these latencies is compared with, seconds. If they are few, it is the fastest of them, and longer than
    /// that of many by chance.
    pub(super) fn low_beside(&self, latency: &Histogram) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of one window stay far below 2^53"
        )]
        let answers = latency.len() as f64;
        if answers >= MANY || is_off(Mechanism::FewAnswers) {
            return self.low;
        }
        let level = 1.0 - libm::pow(ALL_ABOVE, 1.0 / answers);
        quantile_of(self.weights(), level).map_or(self.low, |low| low.max(self.low))
    }

    /// The logarithm of the odds against all of these latencies being longer than `low` seconds by chance; infinite if they are
    /// [`MANY`]. What the floor has not seen yet is expected as often as the rule of succession says (Laplace, 1814): a young floor may
    /// lack the slow answers.
    pub(super) fn odds_against(&self, latency: &Histogram, low: f64) -> f32 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of one window stay far below 2^53"
        )]
        let answers = latency.len() as f64;
        if answers >= MANY {
            return f32::INFINITY;
        }
        let total: f64 = self.weights().map(|(_, weight)| weight).sum();
        let above = above_of(self.weights(), low);
        let odds = answers * libm::log((total + 2.0) / (above + 1.0));
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm")]
        return odds as f32;
    }

    /// Learns from a window without a queue. `quantile` is the objective's, for the tail.
    pub(super) fn learn(&mut self, window: &Sample, quantile: f64) {
        let answers = window.count(Count::Answers);
        let memory = if is_off(Mechanism::MemorySpan) {
            MEMORY
        } else {
            (window.throughput() * MEMORY_SPAN).clamp(ENOUGH, MEMORY)
        };
        let keep = libm::exp(-answers / memory);
        self.answers = self.answers * keep + answers;
        self.latencies = self.latencies * keep + window.count(Count::LatencyMicros) / 1e6;
        self.learn_unanswered(window);
        #[expect(clippy::cast_possible_truncation, reason = "a factor in 0..=1")]
        let keep = keep as f32;
        self.weights.iter_mut().for_each(|weight| *weight *= keep);
        for (bucket, count) in window.tally.latency.filled() {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "counts of one window stay below 2^24"
            )]
            if let Some(weight) = self.weights.at(bucket) {
                *weight += count as f32;
            }
        }
        self.derive(quantile);
    }

    /// Learns how much of the time in flight belongs to requests without an answer. While requests are refused, callers may
    /// leave because of a queue, so the share does not rise then.
    fn learn_unanswered(&mut self, window: &Sample) {
        let answered = window.count(Count::LatencyMicros);
        if answered <= 0.0 || is_off(Mechanism::Unanswered) {
            return;
        }
        let share = (window.count(Count::UnansweredMicros) / answered).min(MOST_UNANSWERED);
        let memory = if share < self.unanswered {
            UNANSWERED_DOWN
        } else if window.tally.refused_for_load() == 0 {
            UNANSWERED_UP
        } else {
            return;
        };
        let answers = window.count(Count::Answers);
        self.unanswered += (share - self.unanswered) * answers / (answers + memory);
    }

    /// Replaces the floor by this window. A test has shown that the window has no queue in it.
    pub(super) fn restart(&mut self, window: &Sample, quantile: f64, in_doubt: bool) {
        if !window.tally.latency.is_empty() {
            let trusted = match self.trusted {
                0 if in_doubt => TRUSTED,
                0 => MOST_TRUSTED,
                trusted => (trusted * 2).min(MOST_TRUSTED),
            };
            let unanswered = self.unanswered;
            *self = Self::believed(0.0, 0.0, 0.0);
            self.unanswered = unanswered;
            self.learn(window, quantile);
            self.trusted = trusted;
        }
    }

    /// Takes the floor to have no queue in it until a test shows one.
    pub(super) fn trust(&mut self) {
        if self.trusted == 0 && self.is_known() {
            self.trusted = TRUSTED;
        }
    }

    /// Replaces the floor by this window, which may still have a queue in it.
    pub(super) fn relearn(&mut self, window: &Sample, quantile: f64) {
        self.restart(window, quantile, true);
        self.trusted = 0;
    }

    /// The tail of the latencies up to `target` seconds. Answers that take longer are late however much is shed. `None` if
    /// most answers take longer.
    pub(super) fn tail_within(&self, target: f64, quantile: f64) -> Option<f64> {
        let is_same = |asked: &TailWithin| {
            (asked.target.to_bits(), asked.quantile.to_bits())
                == (target.to_bits(), quantile.to_bits())
        };
        if let Some(asked) = self.tail_within.get().filter(is_same) {
            return asked.tail;
        }
        let tail = self.find_tail_within(target, quantile);
        self.tail_within.set(Some(TailWithin {
            target,
            quantile,
            tail,
        }));
        tail
    }

    fn find_tail_within(&self, target: f64, quantile: f64) -> Option<f64> {
        let weights = self.weights();
        let total: f64 = weights.clone().map(|(_, weight)| weight).sum();
        if total <= 0.0 {
            return (self.tail > 0.0 && self.tail < target).then_some(self.tail);
        }
        let within = 1.0 - above_of(weights.clone(), target) / total;
        (within >= 0.5).then(|| quantile_of(weights, within * quantile))?
    }

    /// The share of the answers that takes longer than this many seconds, 0..=1; 0 while unknown.
    pub(super) fn share_above(&self, seconds: f64) -> f64 {
        let total: f64 = self.weights().map(|(_, weight)| weight).sum();
        if total > 0.0 {
            above_of(self.weights(), seconds) / total
        } else {
            0.0
        }
    }

    /// Whether a window with few answers is faster on average than the floor by more than chance.
    pub(super) fn is_surely_slower_than(&self, window: &Sample) -> bool {
        let mean = window.mean_latency().unwrap_or(self.mean);
        let latency = &window.tally.latency;
        let variation = latency.variation().unwrap_or(1.0).max(LEAST_VARIATION);
        let answers = 1.0 / window.count(Count::Answers).max(1.0) + 1.0 / self.answers.max(1.0);
        libm::log(self.mean / mean) > SURE * variation * answers.sqrt()
            && !is_off(Mechanism::FewerFaster)
    }

    /// Answers by bucket.
    fn weights(&self) -> impl Iterator<Item = (usize, f64)> + Clone {
        let weights = self.weights.iter();
        weights.map(|(bucket, weight)| (bucket, f64::from(weight)))
    }

    fn derive(&mut self, quantile: f64) {
        self.tail_within.set(None);
        let weights = self.weights();
        let total: f64 = weights.clone().map(|(_, weight)| weight).sum();
        let low = quantile_of(weights.clone(), LOW);
        let tail = quantile_of(weights, quantile);
        let share = if self.is_known() {
            (total / ENOUGH).min(1.0)
        } else {
            1.0
        };
        let blend = |old: f64, new: Option<f64>| new.map_or(old, |new| old + (new - old) * share);
        self.low = blend(self.low, low);
        self.tail = blend(self.tail, tail);
        let mean = (self.answers > 0.0).then(|| self.latencies / self.answers);
        self.mean = blend(self.mean, mean);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    impl Floor {
        /// The same, learned from enough answers.
        pub(in crate::limit) fn learned_well(self) -> Self {
            Self {
                answers: ENOUGH,
                latencies: self.mean * ENOUGH,
                ..self
            }
        }

        /// The same after a test that found no queue in it.
        pub(in crate::limit) fn tested(self) -> Self {
            Self {
                trusted: TRUSTED,
                ..self
            }
        }
    }

    fn window(ms: impl IntoIterator<Item = u64>) -> Sample {
        let mut sample = Sample::empty(Duration::from_secs(1));
        for ms in ms {
            sample.tally.add_success(Duration::from_millis(ms));
        }
        sample
    }

    #[test]
    fn few_answers_are_beyond_chance_if_the_floor_has_seldom_been_as_slow() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        let odds = |floor: &Floor, answers| {
            floor.odds_against(&window([400].repeat(answers)).tally.latency, 0.4)
        };
        floor.learn(&window([100; 8]), 0.99);
        let young = odds(&floor, 2);
        assert!((young - 4.605).abs() < 0.01, "{young}");
        floor.learn(&window([100; 90]), 0.99);
        assert!(odds(&floor, 2) > 8.0, "one that has seen no slower answer");
        floor.learn(&window([900; 100]), 0.99);
        assert!(odds(&floor, 2) < 1.5, "half of them are slower");
        assert!(odds(&floor, 10).is_infinite(), "many");
    }

    /// Of how many answers the floor is, of how many the window, and the share of the floor's that is faster than what the window is compared
    /// with.
    #[test]
    fn the_fastest_of_a_few_answers_is_compared_with_slower_ones_of_the_floor() {
        for (known, answers, level) in [
            (1_000, 1_000, 0.1),
            (1_000, 10, 0.1),
            (1_000, 9, 0.14),
            (1_000, 3, 0.37),
            (1_000, 1, 0.75),
            (100, 1, 0.75),
        ] {
            let mut floor = Floor::believed(0.0, 0.0, 0.0);
            floor.learn(&window((1..=known).map(|n| 1_000 * n / known)), 0.99);
            let compared = floor.low_beside(&window(vec![500; answers]).tally.latency);
            let faster = 1.0 - floor.share_above(compared);
            assert!((faster - level).abs() < 0.02, "{known} {answers}: {faster}");
        }
        let resumed = Floor::believed(0.1, 0.2, 0.3);
        let compared = resumed.low_beside(&window([500]).tally.latency);
        assert!((compared - 0.1).abs() < 1e-9, "its answers are unknown");
    }

    #[test]
    fn a_few_slow_requests_do_not_move_the_low_quantile() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window(vec![40; 100]), 0.99);
        let low = floor.low;
        for _ in 0..50 {
            floor.learn(&window(vec![40; 80].into_iter().chain(vec![540; 20])), 0.99);
        }
        assert!((floor.low / low - 1.0).abs() < 0.1);
        assert!(floor.mean > 0.12 && floor.tail > 0.4);
    }

    #[test]
    fn there_is_room_for_the_latencies_that_came() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window([40, 41, 100]), 0.99);
        assert_eq!(floor.weights.iter().count(), 7, "buckets from 40 to 100 ms");
    }

    #[test]
    fn the_mean_is_exact_whatever_the_buckets_are() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window(vec![41; 300]), 0.99);
        assert!((floor.mean - 0.041).abs() < 1e-9, "{}", floor.mean);
    }

    #[test]
    fn a_harmful_floor_is_in_doubt_until_a_test_and_then_tested_ever_more_rarely() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window(vec![200; 20]), 0.99);
        assert!(floor.is_in_doubt(0.15) && !floor.is_in_doubt(0.25));
        assert_eq!(floor.test_period(0.15), Some(1));
        assert_eq!(floor.test_period(0.25), None);
        for period in [4, 8, 16, 32, 64, 64] {
            floor.restart(&window(vec![200; 20]), 0.99, true);
            assert!(!floor.is_in_doubt(0.15));
            assert_eq!(floor.test_period(0.15), Some(period));
        }
        floor.relearn(&window(vec![180; 20]), 0.99);
        assert!(floor.is_in_doubt(0.15), "there was a queue");
        assert_eq!(floor.test_period(0.15), Some(1));
    }

    /// A second in which `ms` were answered, others were in flight for `unanswered` seconds in sum, and some were refused.
    fn with_unanswered(ms: Vec<u64>, unanswered: u64, refused: u64) -> Sample {
        let mut sample = window(ms);
        sample
            .tally
            .add(Count::UnansweredMicros, unanswered * 1_000_000);
        sample.refusing(refused)
    }

    /// The time in flight for each answer of 100 ms after windows of 100 answers, milliseconds.
    #[test]
    fn requests_without_an_answer_count_in_the_occupancy() {
        let half = || with_unanswered(vec![100; 100], 10, 0);
        let table: [(&str, Vec<Sample>, f64); 6] = [
            (
                "none",
                vec![with_unanswered(vec![100; 100], 0, 0); 9],
                100.0,
            ),
            ("as many, for one window", vec![half()], 133.3),
            ("for long", vec![half(); 40], 200.0),
            (
                "far more",
                vec![with_unanswered(vec![100; 100], 900, 0); 40],
                300.0,
            ),
            (
                "while requests are refused",
                vec![with_unanswered(vec![100; 100], 10, 1); 40],
                100.0,
            ),
            (
                "and then none",
                [
                    vec![half(); 40],
                    vec![with_unanswered(vec![100; 100], 0, 0); 2],
                ]
                .concat(),
                111.1,
            ),
        ];
        for (name, windows, expected) in table {
            let mut floor = Floor::believed(0.0, 0.0, 0.0);
            for window in &windows {
                floor.learn(window, 0.99);
            }
            let found = floor.occupancy() * 1e3;
            assert!((found - expected).abs() < 0.5, "{name}: {found}");
        }
    }

    #[test]
    fn one_window_does_not_replace_the_floor() {
        let mut floor = Floor::believed(0.02, 0.04, 0.1);
        floor.learn(&window([400, 400, 400]), 0.99);
        assert!(floor.mean < 0.05);
    }

    /// The mean after ten seconds of 200 ms instead of 100, for a service with so many answers a second; milliseconds.
    #[test]
    fn a_service_with_few_answers_forgets_as_soon_as_one_with_many() {
        for (a_second, expected) in [(5, 122.1), (20, 163.2), (100, 163.2), (400, 187.5)] {
            let mut floor = Floor::believed(0.0, 0.0, 0.0);
            for _ in 0..5_000 / a_second {
                floor.learn(&window(vec![100; a_second]), 0.99);
            }
            for _ in 0..10 {
                floor.learn(&window(vec![200; a_second]), 0.99);
            }
            let found = floor.mean * 1e3;
            assert!((found - expected).abs() < 1.0, "{a_second}: {found}");
        }
    }

    #[test]
    fn answers_that_are_late_without_a_queue_do_not_count_in_the_tail() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window(vec![40; 80].into_iter().chain(vec![540; 20])), 0.99);
        assert!(floor.tail_within(0.3, 0.99).unwrap() < 0.06);
        assert!(floor.tail_within(1.0, 0.99).unwrap() > 0.4);
        assert_eq!(floor.tail_within(0.02, 0.99), None, "most are late");
    }
}

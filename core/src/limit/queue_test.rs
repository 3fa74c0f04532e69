//! Tells a queue from a slower service by a cut of the limit.
//!
//! By Little's law, throughput times latency is the number in flight. If a queue is cut, throughput stays and latency falls
//! with the number in flight. If a slower service gets fewer requests, latency stays and throughput falls. The test looks at
//! both: a proxy with a small share of the load loses throughput to other proxies in either case, but it sees the latency
//! that all of them cause. The mark is half of the cut on a logarithmic scale; a change must pass it by more than chance.

use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;

/// Standard errors by which a change must pass the mark.
const SURE: f64 = 1.5;
/// Latencies are taken to vary by at least this part of their mean, whatever the histogram shows.
const MIN_VARIATION: f64 = 0.2;
/// Throughput that grows by less than this share counts as unchanged.
const MORE: f64 = 0.05;

/// What was measured at one limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement {
    /// Mean requests in flight.
    pub(super) in_flight: f64,
    /// Answers a second.
    pub(super) throughput: f64,
    /// Mean latency, seconds.
    pub(super) latency: f64,
    /// Answers.
    pub(super) answers: f64,
    /// Standard deviation of the latencies, divided by their mean.
    pub(super) variation: f64,
}

impl Measurement {
    /// `None` if nothing was answered or in flight.
    pub(super) fn of(measured: &Sample) -> Option<Self> {
        let latency = measured.mean_latency().filter(|latency| *latency > 0.0)?;
        let in_flight = measured.mean_in_flight();
        let throughput = measured.throughput();
        (in_flight > 0.0).then(|| Self {
            in_flight,
            throughput,
            latency,
            answers: throughput * measured.span.as_secs_f64(),
            variation: measured.tally.latency.variation().unwrap_or(1.0),
        })
    }
}

impl Measurement {
    /// Whether a step to this share of the number in flight can be judged, however many answers come after it.
    pub(super) fn can_judge(&self, step: f64) -> bool {
        let variation = self.variation.max(MIN_VARIATION);
        SURE * variation / self.answers.sqrt() < mark(step) || is_off(Mechanism::Chance)
    }

    /// Whether the throughput was higher than in another measurement by more than chance.
    pub(super) fn carries_more_than(&self, other: &Self) -> bool {
        let gain = libm::log(self.throughput / other.throughput);
        gain > MORE.max(error(self, other))
    }

    /// Whether a relevant difference of the throughputs would be more than chance.
    pub(super) fn tells(&self, other: &Self) -> bool {
        error(self, other) <= MORE
    }
}

/// The result of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// There was a queue.
    Queue,
    /// There was none: the service is slower.
    Slower,
    /// It may be chance.
    Undecided,
}

/// Judges the step down from one measurement to the other.
pub(super) fn judge(before: &Measurement, after: &Measurement) -> Finding {
    let mark = -mark(after.in_flight / before.in_flight);
    let throughput = libm::log(after.throughput / before.throughput);
    let latency = libm::log(after.latency / before.latency);
    let error = error(before, after);
    let kept = throughput > mark + error;
    let fell = latency < mark - error;
    let lost = throughput < mark - error;
    let stayed = latency > mark + error;
    if kept || fell {
        Finding::Queue
    } else if lost && stayed {
        Finding::Slower
    } else {
        Finding::Undecided
    }
}

/// Whether a queue explains the step down from one measurement to the other better than a slower service does, however certain
/// that is.
pub(super) fn is_rather_a_queue(before: &Measurement, after: &Measurement) -> bool {
    let mark = mark(after.in_flight / before.in_flight);
    libm::log(after.latency / before.latency) < -mark
}

/// Half of a step to this share of the number in flight, on a logarithmic scale.
fn mark(step: f64) -> f64 {
    -libm::log(step) / 2.0
}

/// How much of the logarithm of a ratio may be chance. The limit fixes the number in flight, so by Little's law throughput
/// is as certain as the mean latency.
fn error(one: &Measurement, other: &Measurement) -> f64 {
    if is_off(Mechanism::Chance) {
        return 0.0;
    }
    let variation = one.variation.max(other.variation).max(MIN_VARIATION);
    SURE * variation * (1.0 / one.answers + 1.0 / other.answers).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{assert_close, window};

    const BEFORE: Measurement = Measurement {
        in_flight: 20.0,
        throughput: 100.0,
        latency: 0.2,
        answers: 100.0,
        variation: 0.2,
    };

    /// Number in flight, throughput and latency after the step as shares of those before; the answers on either side; the
    /// variation of latencies; and the finding.
    #[test]
    fn a_queue_keeps_throughput_or_shortens_latency_and_a_slower_service_does_neither() {
        use Finding::{Queue, Slower, Undecided};
        let table = [
            ("a queue alone", [0.75, 1.0, 0.75], 100.0, 0.2, Queue),
            ("others take the room", [0.75, 0.5, 0.75], 100.0, 0.2, Queue),
            ("others fill the queue", [0.75, 1.0, 1.0], 100.0, 0.2, Queue),
            ("more comes out", [0.75, 1.5, 0.5], 100.0, 0.2, Queue),
            ("a slower service", [0.75, 0.75, 1.0], 100.0, 0.2, Slower),
            ("it slows down more", [0.75, 0.5, 1.5], 100.0, 0.2, Slower),
            ("half of each", [0.75, 0.866, 0.866], 100.0, 0.2, Undecided),
            ("one of two signs", [0.75, 0.7, 0.85], 100.0, 0.2, Undecided),
            ("few answers", [0.75, 0.75, 1.0], 8.0, 0.2, Undecided),
            ("few, a queue", [0.75, 1.0, 0.75], 8.0, 0.2, Undecided),
            ("few, a deep cut", [0.5, 0.5, 1.0], 8.0, 0.2, Slower),
            ("few, a deep queue", [0.5, 1.0, 0.5], 8.0, 0.2, Queue),
            ("latencies vary", [0.75, 0.75, 1.0], 100.0, 1.0, Undecided),
            ("vary, many answers", [0.75, 0.75, 1.0], 1e4, 1.0, Slower),
            (
                "alike, as in a bucket",
                [0.75, 0.75, 1.0],
                8.0,
                0.0,
                Undecided,
            ),
        ];
        for (name, [in_flight, throughput, latency], answers, variation, expected) in table {
            let before = Measurement {
                answers,
                variation,
                ..BEFORE
            };
            let after = Measurement {
                in_flight: before.in_flight * in_flight,
                throughput: before.throughput * throughput,
                latency: before.latency * latency,
                ..before
            };
            assert_eq!(judge(&before, &after), expected, "{name}");
        }
    }

    #[test]
    fn a_step_can_be_judged_if_it_is_larger_than_the_chance_in_the_measurement() {
        let found = [(100.0, 0.2), (42.0, 1.75), (1_000.0, 1.75), (8.0, 0.0)].map(
            |(answers, variation)| {
                let before = Measurement {
                    answers,
                    variation,
                    ..BEFORE
                };
                [before.can_judge(0.75), before.can_judge(0.95)]
            },
        );
        let expected = [[true, false], [false, false], [true, false], [true, false]];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_less_certain_measurement_decides() {
        let after = Measurement {
            in_flight: 15.0,
            throughput: 75.0,
            ..BEFORE
        };
        let few = Measurement {
            answers: 3.0,
            ..after
        };
        let varied = Measurement {
            variation: 1.5,
            ..after
        };
        assert_eq!(judge(&BEFORE, &after), Finding::Slower);
        assert_eq!(judge(&BEFORE, &few), Finding::Undecided);
        assert_eq!(judge(&BEFORE, &varied), Finding::Undecided);
    }

    #[test]
    fn throughput_must_grow_by_a_relevant_share_and_more_than_chance() {
        for (times, answers, expected) in [
            (0.9, 1e6, false),
            (1.0, 1e6, false),
            (1.04, 1e6, false),
            (1.06, 1e6, true),
            (1.2, 100.0, true),
            (1.2, 4.0, false),
        ] {
            let other = Measurement { answers, ..BEFORE };
            let this = Measurement {
                throughput: other.throughput * times,
                ..other
            };
            assert_eq!(
                this.carries_more_than(&other),
                expected,
                "{times} {answers}"
            );
        }
    }

    #[test]
    fn a_measurement_needs_answers_and_requests_in_flight() {
        assert!(
            Measurement::of(&window(1_000, 0, 0).holding(5)).is_none(),
            "no answer"
        );
        assert!(
            Measurement::of(&window(1_000, 9, 0).holding(5)).is_none(),
            "no time"
        );
        assert!(
            Measurement::of(&window(1_000, 9, 10).holding(0)).is_none(),
            "idle"
        );
        let point = Measurement::of(&window(2_000, 100, 200)).unwrap();
        assert_close(point.in_flight, 10.0, "in flight");
        assert_close(point.throughput, 50.0, "throughput");
        assert_close(point.latency, 0.2, "latency");
        assert_close(point.answers, 100.0, "answers");
        assert!(point.variation < 0.01, "all alike: {}", point.variation);
    }
}

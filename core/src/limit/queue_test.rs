//! Whether what was cut was a queue.
//!
//! By Little's law throughput, latency and what is in flight are bound: where a queue is cut, throughput stays and latency
//! falls with what is in flight; where a slower service is asked for less, latency stays and throughput falls. Both are
//! looked at: a proxy with a small share of the load loses throughput to others whatever it is, yet sees the latency of
//! all of them. Half of the cut, on a logarithmic scale, is the mark; it must be passed by more than chance.

use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;

/// Standard errors by which a mark must be passed.
const SURE: f64 = 1.5;
/// Latencies vary by this part of their mean at the least, whatever a histogram shows.
const MIN_VARIATION: f64 = 0.2;
/// Throughput that is greater by less than this share is the same.
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
    /// Standard deviation of the latencies by their mean.
    pub(super) variation: f64,
}

impl Measurement {
    /// None where nothing was answered or in flight.
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
    /// Whether more was carried than at another point, by more than chance.
    pub(super) fn carries_more_than(&self, other: &Self) -> bool {
        let gain = libm::log(self.throughput / other.throughput);
        gain > MORE.max(error(self, other))
    }
}

/// What a cut says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// There was a queue.
    Queue,
    /// There was none.
    Slower,
    /// It may be chance.
    Undecided,
}

/// What the step from one point down to the other says.
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

/// Half of a step to this share of what was in flight, on a logarithmic scale.
fn mark(step: f64) -> f64 {
    -libm::log(step) / 2.0
}

/// What may be chance in the logarithm of a ratio. What is in flight is held by the limit, so that by Little's law
/// throughput is as sure as the mean latency.
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

    /// What the step from one point down to another is: by what is in flight, throughput and latency after it by those
    /// before, the answers on either side, and how latencies vary.
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
    fn the_side_that_is_less_sure_decides() {
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
    fn throughput_is_greater_by_a_share_that_matters_and_is_no_chance() {
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
    fn a_point_needs_answers_and_requests_in_flight() {
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

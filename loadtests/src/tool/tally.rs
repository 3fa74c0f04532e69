//! Turns single requests into figures, and into points for each second.

use std::time::Duration;

use tidegate_sim::number::{float_len, floor, quantile};
use tidegate_sim::record::{Answer, Record};

use crate::result::{CellFigures, Point};

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Answered with success.
    Served,
    /// Shed by the proxy.
    Shed,
    /// Anything else.
    Failed,
}

/// A request and its outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TalliedRequest {
    /// When it was due, in seconds from the start of the load.
    pub at_s: f64,
    /// Time to its end, in milliseconds.
    pub latency_ms: f64,
    /// Its outcome.
    pub fate: Fate,
}

impl From<&Record> for TalliedRequest {
    fn from(record: &Record) -> Self {
        Self {
            at_s: record.arrival.at.as_secs_f64(),
            latency_ms: record.latency.as_secs_f64() * 1_000.0,
            fate: match record.answer {
                Answer::Ok => Fate::Served,
                Answer::Shed(_) => Fate::Shed,
                Answer::Failed(_) | Answer::GaveUp | Answer::Broken => Fate::Failed,
            },
        }
    }
}

/// Requests of one cell.
#[derive(Debug, Clone, Copy)]
pub struct RequestTally<'a> {
    /// The requests, in any order.
    pub requests: &'a [TalliedRequest],
    /// How long the load lasted.
    pub length: Duration,
    /// Latency within which an answer is good.
    pub objective: Duration,
}

impl RequestTally<'_> {
    fn is_good(&self, request: &TalliedRequest) -> bool {
        request.fate == Fate::Served && request.latency_ms <= self.objective.as_secs_f64() * 1_000.0
    }

    /// The figures; latencies are those of successful answers.
    #[must_use]
    pub fn figures(&self) -> CellFigures {
        let seconds = self.length.as_secs_f64();
        let all = float_len(self.requests.len());
        let count = |fate: Fate| {
            float_len(
                self.requests
                    .iter()
                    .filter(|request| request.fate == fate)
                    .count(),
            )
        };
        let good = float_len(
            self.requests
                .iter()
                .filter(|request| self.is_good(request))
                .count(),
        );
        let share = |part: f64| (all > 0.0).then(|| part / all);
        let served = latencies(self.requests.iter());
        let at = |of: f64| quantile(&served, of);
        let mean = served.iter().sum::<f64>() / float_len(served.len());
        CellFigures {
            seconds: Some(seconds),
            requests: Some(all),
            qps: Some(all / seconds),
            success_ratio: share(count(Fate::Served)),
            goodput_rps: Some(good / seconds),
            shed_ratio: share(count(Fate::Shed)),
            mean_ms: (!served.is_empty()).then_some(mean),
            p50_ms: at(0.5),
            p75_ms: at(0.75),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            ..CellFigures::default()
        }
    }

    /// A point for each second; requests count in the second in which they were due.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let count = floor(self.length.as_secs_f64().ceil());
        let mut seconds: Vec<Vec<&TalliedRequest>> = vec![Vec::new(); count];
        for request in self.requests {
            if let Some(second) = seconds.get_mut(floor(request.at_s)) {
                second.push(request);
            }
        }
        let point = |(index, requests): (usize, Vec<&TalliedRequest>)| {
            let of = |is: &dyn Fn(&TalliedRequest) -> bool| {
                float_len(requests.iter().filter(|request| is(request)).count())
            };
            Point {
                t: float_len(index),
                rps: float_len(requests.len()),
                good_rps: of(&|request| self.is_good(request)),
                shed_rps: of(&|request| request.fate == Fate::Shed),
                error_rps: of(&|request| request.fate == Fate::Failed),
                p95_ms: quantile(&latencies(requests.iter().copied()), 0.95),
            }
        };
        seconds.into_iter().enumerate().map(point).collect()
    }
}

/// Latencies of the successful answers, in order.
fn latencies<'a>(requests: impl Iterator<Item = &'a TalliedRequest>) -> Vec<f64> {
    let mut latencies: Vec<f64> = requests
        .filter(|request| request.fate == Fate::Served)
        .map(|request| request.latency_ms)
        .collect();
    latencies.sort_unstable_by(f64::total_cmp);
    latencies
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn request(at_s: f64, latency_ms: f64, fate: Fate) -> TalliedRequest {
        TalliedRequest {
            at_s,
            latency_ms,
            fate,
        }
    }

    #[test]
    fn late_answers_are_served_but_not_good() {
        let requests = [
            request(0.1, 10.0, Fate::Served),
            request(0.9, 400.0, Fate::Served),
            request(1.0, 0.5, Fate::Shed),
            request(1.5, 3_000.0, Fate::Failed),
        ];
        let length = Duration::from_secs(2);
        let tally = RequestTally {
            requests: &requests,
            length,
            objective: Duration::from_millis(300),
        };
        let figures = tally.figures();
        assert_eq!(
            (figures.success_ratio, figures.shed_ratio),
            (Some(0.5), Some(0.25))
        );
        assert_eq!(
            (figures.goodput_rps, figures.p50_ms, figures.p99_ms),
            (Some(0.5), Some(10.0), Some(400.0))
        );
        let points = tally.points();
        assert_eq!(
            (points[0].rps, points[0].good_rps, points[0].p95_ms),
            (2.0, 1.0, Some(400.0))
        );
        assert_eq!(
            (points[1].shed_rps, points[1].error_rps, points[1].p95_ms),
            (1.0, 1.0, None)
        );
    }

    #[test]
    fn nothing_has_no_latency() {
        let tally = RequestTally {
            requests: &[],
            length: Duration::from_secs(1),
            objective: Duration::ZERO,
        };
        assert_eq!(
            (tally.figures().mean_ms, tally.figures().success_ratio),
            (None, None)
        );
    }
}

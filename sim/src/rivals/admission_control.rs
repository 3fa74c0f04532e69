//! Envoy's filter `admission_control`: refuses with a probability that follows the success rate.
//!
//! Formula, for each request: `P = min(0.8, ((n - s / 0.95) / (n + 1)) ^ (1 / aggression))` with the `n` requests
//! and `s` successes of the last 30 s; aggression is 1. A success is any status below 500.
//!
//! Source: Envoy 1.40, `admission_control.cc` and `thread_local_controller.cc` in
//! <https://github.com/envoyproxy/envoy/tree/main/source/extensions/filters/http/admission_control>; its defaults
//! (30 s in buckets of 1 s, threshold 95 %, aggression 1, at most 80 %, no least rate).
//!
//! Edges: every worker has its own window, and all upstreams share it. Its own refusals are not counted, and
//! neither are requests whose caller went away. So a service that is too slow for its callers looks like one without
//! traffic. A status that says "too busy" counts as 503.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use tidegate_core::{Failure, Instant, Outcome};

use super::rolling::{OutcomeCounts, Rolling};
use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::rng::Generator;
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "admission-control",
    title: "Envoy admission_control",
    make: Make::Published(make),
};

const WINDOW: Duration = Duration::from_secs(30);
const BUCKET: Duration = Duration::from_secs(1);
const SUCCESS_RATE_THRESHOLD: f64 = 0.95;
const MAX_REJECTION: f64 = 0.8;

fn make(scenario: &Scenario, seed: u64) -> Made {
    Ok(Box::new(AdmissionControl::new(scenario, seed)))
}

/// The filter with a window for each worker.
pub(super) struct AdmissionControl {
    workers: Vec<Rolling>,
    rng: Generator,
}

/// The probability that a request is refused.
fn rejection(counts: OutcomeCounts) -> f64 {
    let requests = f64::from(counts.requests);
    let excess = requests - f64::from(counts.successes) / SUCCESS_RATE_THRESHOLD;
    (excess / (requests + 1.0)).clamp(0.0, MAX_REJECTION)
}

impl AdmissionControl {
    /// The filter without any history.
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        let workers = (0..scenario.workers).map(|_| Rolling::new(WINDOW, BUCKET));
        Self {
            workers: workers.collect(),
            rng: Generator::seed_from_u64(seed),
        }
    }

    /// Counts an answer that passes this filter on its way back.
    pub(super) fn record(&mut self, worker: usize, is_success: bool, now: Instant) {
        if let Some(window) = self.workers.get_mut(worker) {
            window.record(is_success, now);
        }
    }
}

impl Contender for AdmissionControl {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let window = self.workers.get_mut(ask.worker);
        let counts = window.map_or_else(OutcomeCounts::default, |window| window.counts(now));
        if self.rng.random::<f64>() < rejection(counts) {
            Admission::shed("admission_control")
        } else {
            Admission::Admit
        }
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        let is_success = match done.outcome {
            // Truncated: the filter looks at the headers, which said 200.
            Outcome::Success | Outcome::Ignored | Outcome::Failure(Failure::Truncated) => true,
            Outcome::Failure(_) | Outcome::Overload { .. } => false,
            Outcome::Cancelled => return,
        };
        self.record(done.worker, is_success, now);
    }

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{FAILURE, at, done, send};
    use super::*;

    fn probability(requests: u32, successes: u32) -> f64 {
        rejection(OutcomeCounts {
            requests,
            successes,
        })
    }

    #[test]
    fn probability_is_as_published() {
        assert!(probability(0, 0).abs() < 1e-12);
        assert!(probability(100, 100).abs() < 1e-12);
        assert!(
            probability(100, 95).abs() < 1e-12,
            "at the threshold nothing is refused"
        );
        // (99 - 57 / 0.95) / 100
        assert!((probability(99, 57) - 0.39).abs() < 1e-12);
        // 99 / 100, above the greatest
        assert!((probability(99, 0) - 0.8).abs() < 1e-12);
    }

    fn two_workers() -> AdmissionControl {
        let scenario = Scenario::parse(
            "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\nworkers=2\n[[clients]]\nload=[{at='0s',x=1.0}]",
            "test",
        );
        AdmissionControl::new(&scenario.unwrap(), 1)
    }

    #[test]
    fn refuses_four_of_five_of_a_dead_upstream() {
        let mut filter = two_workers();
        let admitted = (0..2_000).filter(|_| send(&mut filter, FAILURE, 0)).count();
        // 0.2 x 2,000 with a standard deviation of 18.
        assert!((320..480).contains(&admitted), "{admitted}");
    }

    #[test]
    fn callers_that_went_away_and_refused_requests_are_not_counted() {
        let mut filter = two_workers();
        for _ in 0..100 {
            filter.complete(&done(Outcome::Cancelled, 1_000), at(0));
        }
        assert_eq!(filter.workers[0].counts(at(0)), OutcomeCounts::default());
    }

    #[test]
    fn workers_do_not_share_a_window() {
        let mut filter = two_workers();
        filter.record(1, false, at(0));
        assert_eq!(filter.workers[0].counts(at(0)).requests, 0);
        assert_eq!(filter.workers[1].counts(at(0)).requests, 1);
    }
}

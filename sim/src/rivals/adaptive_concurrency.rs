//! Envoy's filter `adaptive_concurrency` with its gradient controller.
//!
//! Every minute it pins the limit to 3 until 50 requests have been answered; their 90th percentile is the time of a service
//! without load. In between, it compares the percentile of each 100 ms with that time.
//!
//! Formula: `gradient = clamp(1.25 x minRTT / sampleRTT, 0.5, 2)`, `limit = limit x gradient`,
//! `limit = floor(limit + sqrt(limit))`, clamped to 3..=1000. After five windows at 3 it measures minRTT again.
//! Requests that were admitted before a measurement began are not samples.
//!
//! Source: Envoy 1.40, `gradient_controller.cc` in
//! <https://github.com/envoyproxy/envoy/tree/main/source/extensions/filters/http/adaptive_concurrency>, with the
//! settings of its documentation's example (90th percentile, 100 ms, 60 s with 10 % jitter, 50 requests), which
//! the testbed uses as well; the percentile's default is 50.
//!
//! Edges: one controller for the whole filter, so for all upstreams. A request whose caller went away frees its place and
//! is not a sample. Without answers it learns nothing, and a measurement does not end. The
//! percentile here is exact, Envoy's comes from a histogram with two digits.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use tidegate_core::{Instant, Outcome};

use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::number;
use crate::rng::Generator;
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "adaptive-concurrency",
    title: "Envoy adaptive_concurrency",
    make: Make::Published(make),
};

const MIN_LIMIT: f64 = 3.0;
const MAX_LIMIT: f64 = 1_000.0;
const PERCENTILE: f64 = 0.9;
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);
const MIN_RTT_INTERVAL: Duration = Duration::from_secs(60);
/// The distance between two measurements is longer by a random share up to this.
const JITTER: f64 = 0.1;
const MIN_RTT_REQUESTS: usize = 50;
/// A latency up to this factor above minRTT is not a queue.
const BUFFER: f64 = 1.25;
const GRADIENT: (f64, f64) = (0.5, 2.0);
/// This many windows in a row at the least limit mean that minRTT may be wrong.
const MIN_LIMIT_WINDOWS: u32 = 5;

fn make(_scenario: &Scenario, seed: u64) -> Made {
    Ok(Box::new(Gradient::new(seed)))
}

/// What the controller is doing.
#[derive(Debug, Clone, Copy)]
enum ControllerState {
    /// Measuring minRTT; `resume` is the limit afterwards.
    Measuring { resume: f64 },
    /// Following the gradient; `measure_at` is when minRTT is measured again.
    Following {
        measure_at: Instant,
        update_at: Instant,
    },
}

/// The controller.
pub(super) struct Gradient {
    limit: f64,
    state: ControllerState,
    min_rtt: Option<Duration>,
    /// Latencies of the answers in this window.
    samples: Vec<Duration>,
    /// Requests admitted before this are not samples.
    epoch: Instant,
    outstanding: u32,
    windows_at_min: u32,
    rng: Generator,
}

/// The limit after a window.
fn next_limit(limit: f64, min_rtt: Duration, sample_rtt: Duration) -> f64 {
    let raw = BUFFER * min_rtt.as_secs_f64() / sample_rtt.as_secs_f64().max(f64::MIN_POSITIVE);
    let pulled = limit * raw.clamp(GRADIENT.0, GRADIENT.1);
    (pulled + pulled.sqrt()).floor().clamp(MIN_LIMIT, MAX_LIMIT)
}

impl Gradient {
    /// The controller at its start: it measures first.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            limit: MIN_LIMIT,
            state: ControllerState::Measuring { resume: MIN_LIMIT },
            min_rtt: None,
            samples: Vec::new(),
            epoch: Instant::ZERO,
            outstanding: 0,
            windows_at_min: 0,
            rng: Generator::seed_from_u64(seed),
        }
    }

    /// Runs the timers that are due.
    fn advance(&mut self, now: Instant) {
        let ControllerState::Following {
            measure_at,
            update_at,
        } = self.state
        else {
            return;
        };
        if now >= measure_at {
            self.begin_measuring(now);
        } else if now >= update_at {
            self.state = ControllerState::Following {
                measure_at,
                update_at: now + UPDATE_INTERVAL,
            };
            self.update(now);
        }
    }

    fn begin_measuring(&mut self, now: Instant) {
        self.state = ControllerState::Measuring { resume: self.limit };
        self.limit = MIN_LIMIT;
        self.windows_at_min = 0;
        self.samples.clear();
        self.epoch = now;
    }

    fn end_measuring(&mut self, resume: f64, now: Instant) {
        self.min_rtt = self.take_percentile();
        self.limit = resume;
        let interval = MIN_RTT_INTERVAL.as_secs_f64() * (1.0 + self.rng.random::<f64>() * JITTER);
        self.state = ControllerState::Following {
            measure_at: now + number::seconds(interval),
            update_at: now + UPDATE_INTERVAL,
        };
    }

    fn update(&mut self, now: Instant) {
        let (Some(min_rtt), Some(sample_rtt)) = (self.min_rtt, self.take_percentile()) else {
            return;
        };
        let next = next_limit(self.limit, min_rtt, sample_rtt);
        let is_stuck = next <= MIN_LIMIT && self.limit <= MIN_LIMIT;
        self.windows_at_min = if is_stuck { self.windows_at_min + 1 } else { 0 };
        self.limit = next;
        if self.windows_at_min >= MIN_LIMIT_WINDOWS {
            self.begin_measuring(now);
        }
    }

    fn take_percentile(&mut self) -> Option<Duration> {
        self.samples.sort_unstable();
        let percentile = number::quantile(&self.samples, PERCENTILE);
        self.samples.clear();
        percentile
    }

    #[cfg(test)]
    const fn is_measuring(&self) -> bool {
        matches!(self.state, ControllerState::Measuring { .. })
    }
}

impl Contender for Gradient {
    fn admit(&mut self, _ask: &Ask<'_>, now: Instant) -> Admission {
        self.advance(now);
        if f64::from(self.outstanding) < self.limit {
            self.outstanding += 1;
            Admission::Admit
        } else {
            Admission::shed("limit")
        }
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        self.advance(now);
        self.outstanding = self.outstanding.saturating_sub(1);
        if done.outcome == Outcome::Cancelled || now - done.latency < self.epoch {
            return;
        }
        self.samples.push(done.latency);
        if let ControllerState::Measuring { resume } = self.state
            && self.samples.len() >= MIN_RTT_REQUESTS
        {
            self.end_measuring(resume, now);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(UPDATE_INTERVAL)
    }

    fn tick(&mut self, now: Instant) {
        self.advance(now);
    }

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView {
            limit: Some(self.limit),
            breaker: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{at, complete_ok, first_ask};
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers")]
    fn moves_as_published() {
        // 1.25 x 40 / 50 = 1: 16 + 4.
        assert_eq!(next_limit(16.0, ms(40), ms(50)), 20.0);
        // 1.25 x 40 / 400 = 0.125, clamped to 0.5: 50 + 7.07.
        assert_eq!(next_limit(100.0, ms(40), ms(400)), 57.0);
        // 1.25 x 40 / 10 = 5, clamped to 2: 20 + 4.47.
        assert_eq!(next_limit(10.0, ms(40), ms(10)), 24.0);
        assert_eq!(next_limit(1_000.0, ms(40), ms(40)), 1_000.0);
        // 1.5 + 1.22 = 2.7 is below the least limit.
        assert_eq!(next_limit(3.0, ms(40), ms(400)), 3.0);
    }

    /// Answers requests one after the other, each after 40 ms.
    fn answer(gradient: &mut Gradient, requests: u64, from_ms: u64) -> u64 {
        let mut now = from_ms;
        for _ in 0..requests {
            assert_eq!(gradient.admit(&first_ask(), at(now)), Admission::Admit);
            now += 40;
            complete_ok(gradient, 40, now);
        }
        now
    }

    #[test]
    fn measures_first_and_admits_3_meanwhile() {
        let mut gradient = Gradient::new(1);
        for _ in 0..3 {
            assert_eq!(gradient.admit(&first_ask(), at(0)), Admission::Admit);
        }
        assert_eq!(
            gradient.admit(&first_ask(), at(0)),
            Admission::shed("limit")
        );
        for _ in 0..3 {
            complete_ok(&mut gradient, 40, 40);
        }
        let now = answer(&mut gradient, 46, 40);
        assert!(gradient.is_measuring(), "49 of 50 requests");
        answer(&mut gradient, 1, now);
        assert!(!gradient.is_measuring());
        assert_eq!(gradient.min_rtt, Some(ms(40)));
    }

    #[test]
    fn measures_again_after_a_minute_and_sheds_what_is_in_flight() {
        let mut gradient = Gradient::new(1);
        let mut now = answer(&mut gradient, 50, 0);
        while !gradient.is_measuring() {
            now = answer(&mut gradient, 1, now);
        }
        // 60 s to 66 s after the first, which took 2 s.
        assert!((62_000..=68_100).contains(&now), "{now}");
        assert!((gradient.limit - MIN_LIMIT).abs() < f64::EPSILON);
    }

    #[test]
    fn the_time_of_earlier_requests_is_no_sample_of_a_measurement() {
        let mut gradient = Gradient::new(1);
        gradient.begin_measuring(at(1_000));
        gradient.outstanding = 1;
        complete_ok(&mut gradient, 40, 1_010);
        assert!(gradient.samples.is_empty());
    }
}

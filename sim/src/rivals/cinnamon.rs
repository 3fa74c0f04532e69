//! A PID shedder like Uber's Cinnamon.
//!
//! A rejector in front of the service refuses the share of requests that a controller asks for, the least
//! important first. The controller compares what comes in with what goes out, and with how much of the in-flight
//! limit is free; an auto-tuner after TCP Vegas sets that limit.
//!
//! Formula, every 500 ms: `error = (in - (out + free)) / out` with the requests that passed the cut-off and those
//! that went out since the last time, and `free = limit - in flight`; `ratio = 0.1 x error + 0.25 x integral of error`,
//! 0..=1, where the integral stops growing at the ends. The cut-off is the priority below which that share of the last
//! 1,000 requests lies.
//!
//! Source: Uber, "PID Controller for Cinnamon", 2023, <https://www.uber.com/blog/pid-controller-for-cinnamon/>,
//! and "Cinnamon: Using Century Old Tech to Build a Mean Load Shedder", 2023. The code is not public: the target
//! function, the priorities (tier and one of 128 cohorts) and the Vegas-like tuner are the posts'; the tuner is
//! [`super::vegas`] in windows, and interval, gains and history are ours: greater gains swing at 5 x the capacity,
//! smaller ones are slower everywhere.
//!
//! Edges: Cinnamon runs in the server, and queues requests above the limit. A proxy has no such queue: requests above the
//! limit are refused at once, and count as incoming, as they would there.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_core::Instant;

use super::limiter::{self, LimitAlgorithm};
use super::priority::{self, PriorityHistogram};
use super::vegas::Vegas;
use super::windowed::Windowed;
use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::number;
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "cinnamon",
    title: "PID shedder (Cinnamon-like)",
    make: Make::Published(make),
};

const INTERVAL: Duration = Duration::from_millis(500);
const PROPORTIONAL_GAIN: f64 = 0.1;
/// Per second.
const INTEGRAL_GAIN: f64 = 0.25;
const HISTORY: usize = 1_000;

fn make(scenario: &Scenario, seed: u64) -> Made {
    let services = (0..).zip(&scenario.upstreams);
    let services = services.map(|(index, _)| CinnamonService::new(seed.wrapping_add(index)));
    Ok(Box::new(Cinnamon {
        services: services.collect(),
        update_at: Instant::ZERO + INTERVAL,
    }))
}

/// A controller with a proportional and an integral term.
#[derive(Debug, Clone, Copy, Default)]
struct Pid {
    integral: f64,
}

impl Pid {
    /// The share to be refused, 0..=1.
    fn update(&mut self, error: f64) -> f64 {
        let step = error * INTERVAL.as_secs_f64();
        self.integral = (self.integral + step).clamp(0.0, 1.0 / INTEGRAL_GAIN);
        (PROPORTIONAL_GAIN * error + INTEGRAL_GAIN * self.integral).clamp(0.0, 1.0)
    }
}

/// How far incoming requests exceed what can be served; negative when there is room.
fn error(came_in: f64, went_out: f64, free: f64, limit: f64) -> f64 {
    let out = if went_out > 0.0 { went_out } else { limit };
    (came_in - (went_out + free)) / out
}

/// One upstream.
struct CinnamonService {
    tuner: Windowed<Vegas>,
    pid: Pid,
    /// Lower priorities are refused.
    cut_off: usize,
    /// Priorities of the last requests that asked.
    history: VecDeque<usize>,
    came_in: f64,
    went_out: f64,
    in_flight: f64,
}

struct Cinnamon {
    services: Vec<CinnamonService>,
    update_at: Instant,
}

impl CinnamonService {
    fn new(seed: u64) -> Self {
        Self {
            tuner: Windowed::new(Vegas::new(seed)),
            pid: Pid::default(),
            cut_off: 0,
            history: VecDeque::new(),
            came_in: 0.0,
            went_out: 0.0,
            in_flight: 0.0,
        }
    }

    fn update(&mut self) {
        let limit = self.tuner.limit();
        let free = limit - self.in_flight;
        let ratio = self
            .pid
            .update(error(self.came_in, self.went_out, free, limit));
        let mut histogram = PriorityHistogram::new();
        for priority in &self.history {
            histogram.add(*priority);
        }
        let kept = (1.0 - ratio) * number::float_len(self.history.len());
        self.cut_off = if ratio > 0.0 {
            histogram.cut_off(kept)
        } else {
            0
        };
        (self.came_in, self.went_out) = (0.0, 0.0);
    }
}

impl Cinnamon {
    fn advance(&mut self, now: Instant) {
        if now >= self.update_at {
            self.update_at = now + INTERVAL;
            self.services.iter_mut().for_each(CinnamonService::update);
        }
    }
}

impl Contender for Cinnamon {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        self.advance(now);
        let Some(service) = self.services.get_mut(ask.upstream) else {
            return Admission::Admit;
        };
        let priority = priority::of(ask.criticality, ask.cohort);
        service.history.push_back(priority);
        if service.history.len() > HISTORY {
            service.history.pop_front();
        }
        if priority < service.cut_off {
            return Admission::shed("priority");
        }
        service.came_in += 1.0;
        if service.in_flight >= service.tuner.limit().floor() {
            return Admission::shed("limit");
        }
        service.in_flight += 1.0;
        Admission::Admit
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        self.advance(now);
        let Some(service) = self.services.get_mut(done.upstream) else {
            return;
        };
        service.went_out += 1.0;
        service.in_flight -= 1.0;
        if let Some(sample) = limiter::sample(done, now) {
            service.tuner.on_sample(&sample);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn tick(&mut self, now: Instant) {
        self.advance(now);
    }

    fn view(&self, upstream: usize, _now: Instant) -> ContenderView {
        ContenderView {
            limit: self.services.get(upstream).map(|s| s.tuner.limit()),
            breaker: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{at, first_ask};
    use super::*;

    #[test]
    fn error_is_as_published() {
        // 400 came in, 200 went out, 20 of 32 are free: (400 - 220) / 200.
        assert!((error(400.0, 200.0, 20.0, 32.0) - 0.9).abs() < 1e-12);
        // As much in as out, with room: negative.
        assert!((error(200.0, 200.0, 20.0, 32.0) + 0.1).abs() < 1e-12);
        // Nothing went out: over the limit.
        assert!((error(64.0, 0.0, 0.0, 32.0) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn ratio_is_a_sum_that_does_not_wind_up() {
        let mut pid = Pid::default();
        // 0.1 x 0.4 + 0.25 x 0.4 x 0.5
        assert!((pid.update(0.4) - 0.09).abs() < 1e-12);
        // 0.1 x 0 + 0.25 x 0.2
        assert!((pid.update(0.0) - 0.05).abs() < 1e-12);
        for _ in 0..1_000 {
            pid.update(9.0);
        }
        // One step of -1 takes 0.25 x 0.5 + 0.1 off the greatest.
        assert!((pid.update(-1.0) - 0.775).abs() < 1e-12);
    }

    #[test]
    fn refuses_the_least_important_cohorts_first() {
        let mut cinnamon = Cinnamon {
            services: vec![CinnamonService::new(1)],
            update_at: at(500),
        };
        let ask = |cohort| Ask {
            cohort,
            ..first_ask()
        };
        for cohort in 0..20 {
            assert_eq!(cinnamon.admit(&ask(cohort), at(0)), Admission::Admit);
        }
        for cohort in 20..128 {
            assert_eq!(
                cinnamon.admit(&ask(cohort), at(0)),
                Admission::shed("limit")
            );
        }
        // (128 - (0 + 0)) / 20 = 6.4: nearly everything is refused.
        assert_eq!(
            cinnamon.admit(&ask(0), at(500)),
            Admission::shed("priority")
        );
        cinnamon.services[0].in_flight = 0.0;
        cinnamon.services[0].cut_off = priority::of(first_ask().criticality, 64);
        assert_eq!(
            cinnamon.admit(&ask(63), at(501)),
            Admission::shed("priority")
        );
        assert_eq!(cinnamon.admit(&ask(64), at(501)), Admission::Admit);
    }
}

//! A cut-off by priority like WeChat's DAGOR.
//!
//! A service that finds its requests waiting too long raises the priority below which it refuses, and lowers it
//! again step by step. The histogram of the last window says how far.
//!
//! Formula, for each window of 1 s or 2,000 requests, whichever ends first: the window is overloaded when its
//! requests waited 20 ms on average; then `0.95 x N` of the `N` requests that were admitted are to be admitted in
//! the next one, else `1.01 x N`. The cut-off is the least at or above which at most that many have asked.
//!
//! Source: H. Zhou et al., "Overload Control for Scaling WeChat Microservices", SoCC 2018, sections 4.1 and 4.2,
//! <https://arxiv.org/abs/1806.04075> (threshold 20 ms, windows of 1 s or 2,000 requests, alpha 5 %, beta 1 %).
//!
//! Edges: DAGOR measures inside the server, and so does this one: the world tells it how long a request waited in the
//! upstream's queue, at most until its caller left. A window without waiting requests counts as not overloaded, as for an
//! idle server, and for one that hangs. When nothing at all was admitted, the
//! next window admits the most important of what was asked for. Callers are not told the cut-off to shed early.

use std::time::Duration;

use tidegate_core::Instant;

use super::priority::{self, PriorityHistogram};
use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "dagor",
    title: "DAGOR-like priority cut-off",
    make: Make::Published(make),
};

const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_REQUESTS: u32 = 2_000;
const OVERLOADED_WAIT: Duration = Duration::from_millis(20);
const ALPHA: f64 = 0.05;
const BETA: f64 = 0.01;

fn make(scenario: &Scenario, _seed: u64) -> Made {
    let services = scenario.upstreams.iter().map(|_| DagorService::new());
    Ok(Box::new(Dagor {
        services: services.collect(),
    }))
}

/// One upstream.
struct DagorService {
    /// Lower priorities are refused.
    cut_off: usize,
    /// The requests of this window, by priority.
    asked: PriorityHistogram,
    admitted: u32,
    waited: Duration,
    answered: u32,
    window_end: Instant,
}

struct Dagor {
    services: Vec<DagorService>,
}

/// Requests to be admitted in the next window.
fn expected(admitted: u32, is_overloaded: bool) -> f64 {
    let admitted = f64::from(admitted);
    if is_overloaded {
        admitted * (1.0 - ALPHA)
    } else {
        admitted * (1.0 + BETA)
    }
}

impl DagorService {
    fn new() -> Self {
        Self {
            cut_off: 0,
            asked: PriorityHistogram::new(),
            admitted: 0,
            waited: Duration::ZERO,
            answered: 0,
            window_end: Instant::ZERO + WINDOW,
        }
    }

    fn roll(&mut self, now: Instant) {
        if now < self.window_end && self.asked.total() < WINDOW_REQUESTS {
            return;
        }
        self.window_end = now + WINDOW;
        let average = self.waited.as_secs_f64() / f64::from(self.answered.max(1));
        let is_overloaded = average >= OVERLOADED_WAIT.as_secs_f64();
        if self.asked.total() > 0 && (is_overloaded || self.cut_off > 0) {
            let expected = expected(self.admitted, is_overloaded);
            self.cut_off = self.next_cut_off(expected, is_overloaded);
        }
        self.asked.clear();
        (self.admitted, self.answered) = (0, 0);
        self.waited = Duration::ZERO;
    }

    /// Every step moves the cut-off, but never so far that all requests are refused.
    fn next_cut_off(&self, expected: f64, is_overloaded: bool) -> usize {
        let wanted = self.asked.cut_off(expected.max(1.0));
        if is_overloaded {
            wanted
        } else {
            wanted.min(self.cut_off.saturating_sub(1))
        }
    }
}

impl Contender for Dagor {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let Some(service) = self.services.get_mut(ask.upstream) else {
            return Admission::Admit;
        };
        service.roll(now);
        let priority = priority::of(ask.criticality, ask.cohort);
        service.asked.add(priority);
        if priority < service.cut_off {
            return Admission::shed("priority");
        }
        service.admitted += 1;
        Admission::Admit
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        let service = self.services.get_mut(done.upstream);
        if let (Some(service), Some(waited)) = (service, done.waited) {
            service.roll(now);
            service.waited += waited;
            service.answered += 1;
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(WINDOW)
    }

    fn tick(&mut self, now: Instant) {
        for service in &mut self.services {
            service.roll(now);
        }
    }

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView::default()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Outcome;

    use super::super::trial::{at, done, first_ask};
    use super::*;

    #[test]
    fn steps_are_as_published() {
        assert!((expected(400, true) - 380.0).abs() < 1e-9);
        assert!((expected(400, false) - 404.0).abs() < 1e-9);
    }

    /// A window of 128 requests of as many cohorts, each of which waited; how many were admitted.
    fn window(dagor: &mut Dagor, waited_ms: u64, from_ms: u64) -> u64 {
        let mut admitted = 0;
        for cohort in 0..128 {
            let ask = Ask {
                cohort,
                ..first_ask()
            };
            if dagor.admit(&ask, at(from_ms)) == Admission::Admit {
                admitted += 1;
                let done = Done {
                    waited: Some(Duration::from_millis(waited_ms)),
                    ..done(Outcome::Success, 60)
                };
                dagor.complete(&done, at(from_ms));
            }
        }
        admitted
    }

    #[test]
    fn a_window_that_waited_20_ms_costs_a_twentieth() {
        let mut dagor = Dagor {
            services: vec![DagorService::new()],
        };
        assert_eq!(window(&mut dagor, 20, 0), 128);
        // 0.95 x 128 = 121.6, 0.95 x 121 = 114.95, and 1.01 x 114 = 115.1.
        assert_eq!(window(&mut dagor, 20, 1_000), 121);
        assert_eq!(window(&mut dagor, 19, 2_000), 114);
        assert_eq!(window(&mut dagor, 19, 3_000), 115);
    }

    #[test]
    fn critical_requests_stay_longest() {
        let mut dagor = Dagor {
            services: vec![DagorService::new()],
        };
        dagor.services[0].cut_off = priority::of(tidegate_core::Criticality::CriticalPlus, 0);
        assert_eq!(
            dagor.admit(&first_ask(), at(0)),
            Admission::shed("priority")
        );
        let ask = Ask {
            criticality: tidegate_core::Criticality::CriticalPlus,
            ..first_ask()
        };
        assert_eq!(dagor.admit(&ask, at(0)), Admission::Admit);
    }
}

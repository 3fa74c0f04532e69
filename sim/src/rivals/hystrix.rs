//! A breaker as Hystrix had it: half of at least 20 requests failed, closed again by one that succeeds 5 s later.
//!
//! ```text
//!            50 % of >= 20 requests failed in 10 s
//!   Closed ------------------------------------------> Open
//!     ^                                               |  ^
//!     | the probe succeeds (window forgotten)    5 s  |  | the probe fails
//!     +------------------- HalfOpen <----------------+  |
//!                              +-------------------------+
//! ```
//!
//! Source: Hystrix 1.5, `HystrixCircuitBreaker` and `HystrixCommandProperties` (rolling window 10 s in 10 buckets,
//! health looked at every 500 ms, volume 20, 50 %, sleep window 5 s, timeout of a call 1 s),
//! <https://github.com/Netflix/Hystrix>. Its thread pools are left out: they are static limits.
//!
//! Edges: refused requests are not counted. A caller that gives up after a second or later counts as Hystrix's timeout.
//! One that goes away earlier does not count, and ends a probe as a failure, as in Hystrix.

use std::time::Duration;

use tidegate_core::{BreakerPhase, Instant, Outcome};

use super::rolling::Rolling;
use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made, Note, RequestId};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "hystrix",
    title: "Hystrix-like breaker",
    make: Make::Published(make),
};

const WINDOW: Duration = Duration::from_secs(10);
const BUCKET: Duration = Duration::from_secs(1);
const HEALTH_INTERVAL: Duration = Duration::from_millis(500);
const MIN_REQUESTS: u32 = 20;
const ERROR_RATIO: f64 = 0.5;
const SLEEP: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(1);

fn make(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(Hystrix::new(scenario.upstreams.len())))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HystrixState {
    Closed,
    Open { since: Instant },
    HalfOpen { probe: RequestId },
}

struct Breaker {
    state: HystrixState,
    window: Rolling,
}

struct Hystrix {
    breakers: Vec<Breaker>,
    notes: Vec<Note>,
}

impl Hystrix {
    fn new(upstreams: usize) -> Self {
        let breaker = || Breaker {
            state: HystrixState::Closed,
            window: Rolling::new(WINDOW, BUCKET),
        };
        Self {
            breakers: (0..upstreams).map(|_| breaker()).collect(),
            notes: Vec::new(),
        }
    }

    fn note(&mut self, upstream: usize, breaker: BreakerPhase, reason: &'static str, at: Instant) {
        self.notes.push(Note {
            at,
            upstream,
            breaker,
            reason,
        });
    }
}

impl Breaker {
    /// Whether the window is a reason to open.
    fn is_unhealthy(&mut self, now: Instant) -> bool {
        let counts = self.window.counts(now);
        let failures = counts.requests - counts.successes;
        counts.requests >= MIN_REQUESTS
            && f64::from(failures) >= ERROR_RATIO * f64::from(counts.requests)
    }
}

impl Contender for Hystrix {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let Some(breaker) = self.breakers.get_mut(ask.upstream) else {
            return Admission::Admit;
        };
        match breaker.state {
            HystrixState::Closed => Admission::Admit,
            HystrixState::Open { since } if now.saturating_since(since) > SLEEP => {
                breaker.state = HystrixState::HalfOpen { probe: ask.request };
                self.note(ask.upstream, BreakerPhase::HalfOpen, "sleep_window", now);
                Admission::Admit
            }
            HystrixState::Open { .. } | HystrixState::HalfOpen { .. } => {
                Admission::shed("breaker_open")
            }
        }
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        let Some(breaker) = self.breakers.get_mut(done.upstream) else {
            return;
        };
        let is_success = match done.outcome {
            Outcome::Success | Outcome::Ignored => Some(true),
            Outcome::Failure(_) | Outcome::Overload { .. } => Some(false),
            Outcome::Cancelled => (done.latency >= TIMEOUT).then_some(false),
        };
        if let Some(is_success) = is_success {
            breaker.window.record(is_success, now);
        }
        if breaker.state
            != (HystrixState::HalfOpen {
                probe: done.request,
            })
        {
            return;
        }
        if is_success == Some(true) {
            breaker.state = HystrixState::Closed;
            breaker.window.clear();
            self.note(done.upstream, BreakerPhase::Closed, "probe", now);
        } else {
            breaker.state = HystrixState::Open { since: now };
            self.note(done.upstream, BreakerPhase::Open, "probe", now);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(HEALTH_INTERVAL)
    }

    fn tick(&mut self, now: Instant) {
        for upstream in 0..self.breakers.len() {
            let breaker = self.breakers.get_mut(upstream);
            let opens = breaker.is_some_and(|breaker| {
                let opens = breaker.state == HystrixState::Closed && breaker.is_unhealthy(now);
                if opens {
                    breaker.state = HystrixState::Open { since: now };
                }
                opens
            });
            if opens {
                self.note(upstream, BreakerPhase::Open, "error_percentage", now);
            }
        }
    }

    fn view(&self, upstream: usize, _now: Instant) -> ContenderView {
        let phase = |breaker: &Breaker| match breaker.state {
            HystrixState::Closed => BreakerPhase::Closed,
            HystrixState::Open { .. } => BreakerPhase::Open,
            HystrixState::HalfOpen { .. } => BreakerPhase::HalfOpen,
        };
        ContenderView {
            limit: None,
            breaker: self.breakers.get(upstream).map(phase),
        }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{FAILURE, at, done, send};
    use super::*;

    /// Opened at 500 ms by 20 failures.
    fn opened() -> Hystrix {
        let mut hystrix = Hystrix::new(1);
        for _ in 0..20 {
            assert!(send(&mut hystrix, FAILURE, 0));
        }
        hystrix.tick(at(500));
        assert!(!send(&mut hystrix, Outcome::Success, 500));
        hystrix
    }

    #[test]
    fn opens_at_20_requests_of_which_half_failed_and_not_before_it_looks() {
        let mut hystrix = Hystrix::new(1);
        for _ in 0..10 {
            assert!(send(&mut hystrix, Outcome::Success, 0));
        }
        for _ in 0..9 {
            assert!(send(&mut hystrix, FAILURE, 0));
        }
        hystrix.tick(at(0));
        assert!(send(&mut hystrix, FAILURE, 0), "19 requests are too few");
        assert!(send(&mut hystrix, FAILURE, 0), "nobody has looked");
        hystrix.tick(at(500));
        assert!(!send(&mut hystrix, Outcome::Success, 501));
    }

    #[test]
    fn one_probe_after_5_seconds_decides() {
        let mut hystrix = opened();
        assert!(!send(&mut hystrix, Outcome::Success, 5_500));
        assert!(send(&mut hystrix, FAILURE, 5_501), "the probe");
        assert!(!send(&mut hystrix, Outcome::Success, 10_501));
        assert!(
            send(&mut hystrix, Outcome::Success, 10_502),
            "the next probe"
        );
        hystrix.tick(at(10_502));
        assert!(
            send(&mut hystrix, Outcome::Success, 10_502),
            "closed, with a window that forgot"
        );
        let phases: Vec<BreakerPhase> = hystrix
            .take_notes()
            .iter()
            .map(|note| note.breaker)
            .collect();
        use BreakerPhase::{Closed, HalfOpen, Open};
        assert_eq!(phases, [Open, HalfOpen, Open, HalfOpen, Closed]);
    }

    #[test]
    fn a_caller_that_waited_a_second_is_a_timeout() {
        let mut hystrix = Hystrix::new(1);
        for _ in 0..20 {
            hystrix.complete(&done(Outcome::Cancelled, 999), at(0));
        }
        hystrix.tick(at(0));
        assert!(send(&mut hystrix, Outcome::Success, 0));
        for _ in 0..20 {
            hystrix.complete(&done(Outcome::Cancelled, 1_000), at(0));
        }
        hystrix.tick(at(500));
        assert!(!send(&mut hystrix, Outcome::Success, 500));
    }
}

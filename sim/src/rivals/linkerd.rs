//! Linkerd's breaker: an endpoint is shut by failures in a row or by its success rate, and opened by one probe.
//!
//! ```text
//!          7 failures in a row, or success < 0.8 of >= 5 requests in 10 s
//!   Open -----------------------------------------------------------------> Shut
//!     ^                                                              wait |  ^
//!     | the probe succeeds                                                v  | the probe fails: wait twice as long
//!     +------------------------------------------------------------- Probation
//! ```
//!
//! (Linkerd's gate is open when requests flow; [`BreakerPhase`] uses the opposite sense.)
//!
//! Formula of the wait: `1 s x 2^k`, at most 60 s, plus a random share up to 0.5 of it, with the sum at most 60 s.
//!
//! Source: linkerd2-proxy of June 2026, `breaker/unified.rs` and `breaker/success_rate.rs`,
//! <https://github.com/linkerd/linkerd2-proxy/tree/main/linkerd/app/outbound/src/http/breaker>, pull request 4561:
//! 7 failures in a row, threshold 0.8 over 10 s in 10 buckets, 5 requests, backoff 1 s to 60 s with jitter 0.5.
//!
//! Edges: state is an endpoint's, for the whole proxy. A status that says "too busy" counts against the rate, not
//! against the row, and fails a probe. Answers are not told apart: in probation the first one decides, whether it is that of
//! the probe or of a request that was sent before the endpoint was shut; while it is shut, answers do not count. A caller that
//! went away does not count, and frees the probe's place: the next request is the probe then. When all endpoints are shut, Linkerd's balancer lets requests wait for up to
//! 3 s before it fails fast; here they are refused at once. The load biaser belongs to its balancer and is left out.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use tidegate_core::{BreakerPhase, Instant, Outcome};

use super::rolling::Rolling;
use crate::contender::{Admission, Ask, Contender, ContenderView, Done, Made, Note};
use crate::kind::{ContenderKind, Make};
use crate::number;
use crate::rng::Generator;
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "linkerd",
    title: "Linkerd unified breaker",
    make: Make::Published(make),
};

const MAX_CONSECUTIVE_FAILURES: u32 = 7;
const SUCCESS_RATE_THRESHOLD: f64 = 0.8;
const WINDOW: Duration = Duration::from_secs(10);
const BUCKET: Duration = Duration::from_secs(1);
const MIN_REQUESTS: u32 = 5;
const MIN_BACKOFF: f64 = 1.0;
const MAX_BACKOFF: f64 = 60.0;
const JITTER: f64 = 0.5;

fn make(scenario: &Scenario, seed: u64) -> Made {
    Ok(Box::new(Linkerd::new(scenario.upstreams.len(), seed)))
}

#[derive(Debug, Clone, Copy)]
enum LinkerdState {
    Open,
    /// `tries` is the number of waits so far, this one included.
    Shut {
        until: Instant,
        tries: u32,
    },
    Probation {
        has_probe: bool,
        tries: u32,
    },
}

/// One endpoint.
struct LinkerdEndpoint {
    state: LinkerdState,
    failures_in_a_row: u32,
    window: Rolling,
}

struct Linkerd {
    upstreams: Vec<Vec<LinkerdEndpoint>>,
    rng: Generator,
    notes: Vec<Note>,
}

/// Seconds to wait for the `tries`th time; `share` is the random share of the jitter, 0..1.
fn backoff(tries: u32, share: f64) -> f64 {
    let doublings = i32::try_from(tries.saturating_sub(1)).unwrap_or(i32::MAX);
    let base = libm::scalbn(MIN_BACKOFF, doublings).min(MAX_BACKOFF);
    (base + base * JITTER * share).min(MAX_BACKOFF)
}

impl LinkerdEndpoint {
    const fn new() -> Self {
        Self {
            state: LinkerdState::Open,
            failures_in_a_row: 0,
            window: Rolling::new(WINDOW, BUCKET),
        }
    }

    /// A wait that is over becomes probation.
    fn on_probation(&mut self, now: Instant) {
        if let LinkerdState::Shut { until, tries } = self.state
            && now >= until
        {
            self.state = LinkerdState::Probation {
                has_probe: false,
                tries,
            };
        }
    }

    /// Whether a request may go there.
    fn is_ready(&mut self, now: Instant) -> bool {
        self.on_probation(now);
        match self.state {
            LinkerdState::Open => true,
            LinkerdState::Shut { .. } => false,
            LinkerdState::Probation { has_probe, .. } => !has_probe,
        }
    }

    /// Learns from an answer; returns the reason to shut the endpoint, if there is one.
    fn record(&mut self, is_failure: bool, is_success: bool, now: Instant) -> Option<&'static str> {
        self.failures_in_a_row = if is_failure {
            self.failures_in_a_row + 1
        } else {
            0
        };
        self.window.record(is_success, now);
        let counts = self.window.counts(now);
        let rate = f64::from(counts.successes) / f64::from(counts.requests.max(1));
        if self.failures_in_a_row >= MAX_CONSECUTIVE_FAILURES {
            Some("consecutive_failures")
        } else if counts.requests >= MIN_REQUESTS && rate < SUCCESS_RATE_THRESHOLD {
            Some("success_rate")
        } else {
            None
        }
    }
}

impl Linkerd {
    fn new(upstreams: usize, seed: u64) -> Self {
        Self {
            upstreams: (0..upstreams).map(|_| Vec::new()).collect(),
            rng: Generator::seed_from_u64(seed),
            notes: Vec::new(),
        }
    }

    fn endpoint(&mut self, upstream: usize, endpoint: u32) -> Option<&mut LinkerdEndpoint> {
        let endpoints = self.upstreams.get_mut(upstream)?;
        endpoints.get_mut(usize::try_from(endpoint).ok()?)
    }

    /// The shut state, with a wait drawn for the `tries`th time.
    fn shut(&mut self, tries: u32, now: Instant) -> LinkerdState {
        let wait = backoff(tries, self.rng.random());
        LinkerdState::Shut {
            until: now + number::seconds(wait),
            tries,
        }
    }
}

impl Contender for Linkerd {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let Some(endpoints) = self.upstreams.get_mut(ask.upstream) else {
            return Admission::Admit;
        };
        let count = usize::try_from(ask.endpoints).unwrap_or(usize::MAX);
        endpoints.resize_with(count, LinkerdEndpoint::new);
        if endpoints.iter_mut().any(|endpoint| endpoint.is_ready(now)) {
            Admission::Admit
        } else {
            Admission::shed("breaker_open")
        }
    }

    fn claim(&mut self, upstream: usize, endpoint: u32, now: Instant) -> bool {
        let Some(endpoint) = self.endpoint(upstream, endpoint) else {
            return true;
        };
        let is_ready = endpoint.is_ready(now);
        if let LinkerdState::Probation { has_probe, .. } = &mut endpoint.state {
            *has_probe = true;
        }
        is_ready
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        if let Some(endpoint) = self.endpoint(done.upstream, done.endpoint) {
            endpoint.on_probation(now);
        }
        let (is_failure, is_success) = match done.outcome {
            Outcome::Success | Outcome::Ignored => (false, true),
            Outcome::Overload { .. } => (false, false),
            Outcome::Failure(_) => (true, false),
            Outcome::Cancelled => {
                if let Some(endpoint) = self.endpoint(done.upstream, done.endpoint)
                    && let LinkerdState::Probation { has_probe, .. } = &mut endpoint.state
                {
                    *has_probe = false;
                }
                return;
            }
        };
        let Some(endpoint) = self.endpoint(done.upstream, done.endpoint) else {
            return;
        };
        let (state, reason) = match endpoint.state {
            LinkerdState::Open => match endpoint.record(is_failure, is_success, now) {
                Some(reason) => (self.shut(1, now), reason),
                None => return,
            },
            LinkerdState::Probation { .. } if is_success => {
                *endpoint = LinkerdEndpoint::new();
                (LinkerdState::Open, "probe")
            }
            LinkerdState::Probation { tries, .. } => {
                (self.shut(tries.saturating_add(1), now), "probe")
            }
            // The answer to a request that was on the way when it was shut.
            LinkerdState::Shut { .. } => return,
        };
        let breaker = match state {
            LinkerdState::Open => BreakerPhase::Closed,
            LinkerdState::Shut { .. } | LinkerdState::Probation { .. } => BreakerPhase::Open,
        };
        if let Some(endpoint) = self.endpoint(done.upstream, done.endpoint) {
            endpoint.state = state;
        }
        self.notes.push(Note {
            at: now,
            upstream: done.upstream,
            breaker,
            reason,
        });
    }

    fn view(&self, upstream: usize, _now: Instant) -> ContenderView {
        let endpoints = self.upstreams.get(upstream);
        let phases = endpoints.into_iter().flatten().map(|e| match e.state {
            LinkerdState::Open => BreakerPhase::Closed,
            LinkerdState::Shut { .. } => BreakerPhase::Open,
            LinkerdState::Probation { .. } => BreakerPhase::HalfOpen,
        });
        let best = phases.min_by_key(|phase| match phase {
            BreakerPhase::Closed => 0,
            BreakerPhase::HalfOpen => 1,
            BreakerPhase::Open => 2,
        });
        ContenderView {
            limit: None,
            breaker: Some(best.unwrap_or(BreakerPhase::Closed)),
        }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{FAILURE, at, done, first_ask};
    use super::*;

    /// Sends a request to the only endpoint; returns whether it was admitted.
    fn send(linkerd: &mut Linkerd, outcome: Outcome, now_ms: u64) -> bool {
        let is_admitted = linkerd.admit(&first_ask(), at(now_ms)) == Admission::Admit;
        if is_admitted {
            assert!(linkerd.claim(0, 0, at(now_ms)));
            linkerd.complete(&done(outcome, 1), at(now_ms));
        }
        is_admitted
    }

    #[test]
    fn wait_doubles_up_to_a_minute_with_jitter() {
        for (tries, share, seconds) in [
            (1, 0.0, 1.0),
            (1, 1.0, 1.5),
            (2, 0.5, 2.5),
            (6, 0.0, 32.0),
            (6, 1.0, 48.0),
            (7, 0.0, 60.0),
            (7, 1.0, 60.0),
            (u32::MAX, 1.0, 60.0),
        ] {
            assert!(
                (backoff(tries, share) - seconds).abs() < 1e-9,
                "{tries} {share}"
            );
        }
    }

    #[test]
    fn success_rate_shuts_at_5_requests_and_failures_in_a_row_at_7() {
        let mut linkerd = Linkerd::new(1, 1);
        for _ in 0..4 {
            assert!(send(&mut linkerd, FAILURE, 0));
        }
        assert!(send(&mut linkerd, FAILURE, 0), "4 are too few");
        assert!(!send(&mut linkerd, Outcome::Success, 0));
        assert_eq!(linkerd.take_notes()[0].reason, "success_rate");

        // 40 successes keep the rate at 40 / 47 = 0.85.
        let mut linkerd = Linkerd::new(1, 1);
        for _ in 0..40 {
            send(&mut linkerd, Outcome::Success, 0);
        }
        for _ in 0..7 {
            assert!(send(&mut linkerd, FAILURE, 0));
        }
        assert!(!send(&mut linkerd, Outcome::Success, 0));
        assert_eq!(linkerd.take_notes()[0].reason, "consecutive_failures");
    }

    #[test]
    fn too_busy_counts_against_the_rate_alone() {
        let mut linkerd = Linkerd::new(1, 1);
        for _ in 0..60 {
            send(&mut linkerd, Outcome::Success, 0);
        }
        let busy = Outcome::Overload { retry_after: None };
        let until = (1..30).find(|_| !send(&mut linkerd, busy, 0)).unwrap();
        // 60 / 75 is 0.8, 60 / 76 is below.
        assert_eq!(until, 17);
    }

    #[test]
    fn a_failed_probe_waits_twice_as_long_and_a_good_one_opens() {
        let mut linkerd = Linkerd::new(1, 1);
        for _ in 0..5 {
            send(&mut linkerd, FAILURE, 0);
        }
        assert!(!send(&mut linkerd, Outcome::Success, 999));
        assert!(send(&mut linkerd, FAILURE, 1_500), "the probe");
        assert!(!send(&mut linkerd, Outcome::Success, 3_499));
        assert!(
            send(&mut linkerd, Outcome::Success, 4_500),
            "the next probe"
        );
        assert!(
            send(&mut linkerd, FAILURE, 4_500),
            "open, with a window that forgot"
        );
        assert!(send(&mut linkerd, Outcome::Success, 4_500));
    }

    /// As `UnifiedBreaker::probation` does, which takes the next answer of the endpoint. Before, one that came ahead of the probe
    /// was ignored.
    #[test]
    fn in_probation_the_first_answer_decides_even_a_late_one() {
        let shut = || {
            let mut linkerd = Linkerd::new(1, 1);
            for _ in 0..5 {
                send(&mut linkerd, FAILURE, 0);
            }
            linkerd
        };
        let late = |outcome| done(outcome, 1);
        let is_admitted =
            |linkerd: &mut Linkerd, now| linkerd.admit(&first_ask(), at(now)) == Admission::Admit;

        let mut linkerd = shut();
        linkerd.complete(&late(Outcome::Success), at(900));
        assert!(!is_admitted(&mut linkerd, 999), "shut: it does not count");

        linkerd.complete(&late(FAILURE), at(1_500));
        assert!(!is_admitted(&mut linkerd, 3_400), "before any probe");
        linkerd.complete(&late(Outcome::Success), at(4_600));
        for _ in 0..3 {
            assert!(send(&mut linkerd, Outcome::Success, 4_600), "open");
        }

        let mut linkerd = shut();
        assert!(is_admitted(&mut linkerd, 1_500) && linkerd.claim(0, 0, at(1_500)));
        linkerd.complete(&late(FAILURE), at(1_600));
        assert!(!is_admitted(&mut linkerd, 3_500), "beside the probe");
    }

    #[test]
    fn a_single_probe_at_a_time_and_a_caller_that_leaves_frees_it() {
        let mut linkerd = Linkerd::new(1, 1);
        for _ in 0..5 {
            send(&mut linkerd, FAILURE, 0);
        }
        assert_eq!(linkerd.admit(&first_ask(), at(2_000)), Admission::Admit);
        assert!(linkerd.claim(0, 0, at(2_000)));
        assert_eq!(
            linkerd.admit(&first_ask(), at(2_000)),
            Admission::shed("breaker_open")
        );
        assert!(!linkerd.claim(0, 0, at(2_000)));
        linkerd.complete(&done(Outcome::Cancelled, 1_000), at(3_000));
        assert_eq!(linkerd.admit(&first_ask(), at(3_000)), Admission::Admit);
    }
}

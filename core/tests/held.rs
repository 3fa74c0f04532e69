//! A request that is held for long stays in flight until it ends or later ones overtake it. Time, requests to other
//! upstreams and a new configuration do not change that.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::config::Config;
use tidegate_core::{
    Criticality, Decision, Engine, GivenRequest, Instant, Outcome, Permit, Request, Unshared,
    UpstreamId, UpstreamSnapshot,
};

/// What passes while it is held.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request to another upstream, answered after so many milliseconds.
    Elsewhere(u64),
    Wait(u64),
    Tick,
    /// A configuration with this latency target, milliseconds.
    Push(u32),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u64..300).prop_map(Step::Elsewhere),
        4 => (1_u64..3_000).prop_map(Step::Wait),
        4 => Just(Step::Tick),
        1 => prop::sample::select(vec![50, 300, 1_000, 5_000]).prop_map(Step::Push),
    ]
}

struct Worker {
    engine: Engine,
    millis: u64,
}

impl Worker {
    fn new() -> Self {
        Self {
            engine: Engine::new(config(300), Instant::ZERO, 1),
            millis: 0,
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_millis(self.millis)
    }

    fn admit(&mut self, name: &str) -> Option<Permit> {
        self.ask(name, &mut GivenRequest::default())
    }

    fn ask(&mut self, name: &str, request: &mut impl Request) -> Option<Permit> {
        let now = self.now();
        let upstream = self.engine.upstream(name, None, now);
        match self.engine.admit(upstream, request, &mut Unshared, now) {
            Decision::Admit(permit) => Some(permit),
            Decision::Shed(_) => None,
        }
    }

    fn answer(&mut self, mut permit: Permit) {
        let now = self.now();
        self.engine
            .respond(&mut permit, Outcome::Success, &mut Unshared, now);
        self.end(permit, Outcome::Success);
    }

    fn end(&mut self, permit: Permit, outcome: Outcome) {
        let now = self.now();
        self.engine.complete(permit, outcome, &mut Unshared, now);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Elsewhere(latency) => {
                let permit = self.admit("elsewhere");
                self.millis += latency;
                if let Some(permit) = permit {
                    self.answer(permit);
                }
            }
            Step::Wait(millis) => self.millis += millis,
            Step::Tick => {
                self.millis += 100;
                let now = self.now();
                self.engine.tick(&mut Unshared, now);
            }
            Step::Push(target) => {
                let now = self.now();
                self.engine.reconfigure(config(target), now);
            }
        }
    }

    fn seen(&self, upstream: UpstreamId) -> UpstreamSnapshot {
        let snapshot = self.engine.snapshot(self.now());
        let mut all = snapshot.upstreams.into_iter();
        all.find(|seen| seen.id == upstream).unwrap()
    }
}

fn config(target: u32) -> Config {
    let text = format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"{target}ms"}}}}}}"#);
    Config::from_json(text.as_bytes()).unwrap()
}

proptest! {
    #[test]
    fn a_request_that_was_not_overtaken_is_in_flight(
        before in 0_usize..30, steps in prop::collection::vec(any_step(), 1..60),
    ) {
        let mut worker = Worker::new();
        // Earlier requests are answered while it is held: they overtake no request. They are earlier by more than a bucket of ages, which is
        // a fifteenth of twice the longest target.
        let first: Vec<_> = (0..before).filter_map(|_| worker.admit("here")).collect();
        worker.millis += 1_000;
        let held = worker.admit("here").unwrap();
        let upstream = held.upstream();
        worker.millis += 20;
        for permit in first {
            worker.answer(permit);
        }
        for step in steps {
            worker.take(step);
            let seen = worker.seen(upstream);
            prop_assert_eq!((seen.in_flight, seen.open), (1, 0), "{:?}", step);
        }
        worker.end(held, Outcome::Cancelled);
        let seen = worker.seen(upstream);
        prop_assert_eq!((seen.in_flight, seen.open), (0, 0));
    }
}

/// A request that is not a plain one.
struct Special {
    is_health_check: bool,
    /// Whether a body follows.
    has_body: bool,
}

const HEALTH_CHECK: Special = Special {
    is_health_check: true,
    has_body: false,
};
const UPLOAD: Special = Special {
    is_health_check: false,
    has_body: true,
};

impl Request for Special {
    fn criticality(&mut self) -> Criticality {
        Criticality::Critical
    }

    fn is_retry(&mut self) -> bool {
        false
    }

    fn is_health_check(&mut self) -> bool {
        self.is_health_check
    }

    fn has_body(&self) -> bool {
        self.has_body
    }

    fn cohort(&mut self) -> Option<u32> {
        None
    }
}

/// An upstream may answer these and nothing else.
#[test]
fn health_checks_that_pass_a_full_limit_overtake_no_request() {
    let mut worker = Worker::new();
    // What hangs since before a breaker opened is another matter.
    let without_breaker =
        r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"breaker":{"enabled":false}}"#;
    let now = worker.now();
    let without_breaker = Config::from_json(without_breaker.as_bytes()).unwrap();
    worker.engine.reconfigure(without_breaker, now);
    let mut held = Vec::new();
    while let Some(permit) = worker.admit("here") {
        held.push(permit);
    }
    let upstream = held[0].upstream();
    let full = u32::try_from(held.len()).unwrap();
    for _ in 0..20 {
        let check = worker.ask("here", &mut { HEALTH_CHECK }).unwrap();
        worker.take(Step::Wait(5));
        worker.answer(check);
        worker.take(Step::Tick);
        let seen = worker.seen(upstream);
        assert_eq!((seen.in_flight, seen.open), (full, 0));
    }
    for permit in held {
        worker.end(permit, Outcome::Cancelled);
    }
}

#[test]
fn slow_uploads_leave_their_places_before_the_next_tick() {
    let mut worker = Worker::new();
    let uploads: Vec<_> = std::iter::from_fn(|| worker.ask("here", &mut { UPLOAD })).collect();
    assert!(worker.admit("here").is_none(), "they take all places");
    worker.millis += 10_000;
    let other = worker.admit("here").unwrap();
    let seen = worker.seen(other.upstream());
    assert_eq!((seen.in_flight, seen.uploading), (1, 0));
    assert_eq!(usize::try_from(seen.open).unwrap(), uploads.len());
}

//! A leader is lost in the middle of an overload or an outage: its successor decides as it would have.
//!
//! The same traffic meets the same service twice, and once another leader takes over.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{
    BreakerPhase, Decision, Directive, Directives, Engine, Failure, GivenRequest, Instant, Outcome,
    Permit, Unshared,
};

/// Milliseconds between two rounds, and to the change of leaders.
const ROUND: u64 = 100;
const CHANGE: u64 = 8_000;
/// So far apart may be what the two decide.
const ALIKE: f64 = 0.1;

/// A service that works on a few requests at a time, each for 10 ms, and refuses what is too much for its line.
struct Service {
    slots: Vec<u64>,
    line: usize,
    dead_from: u64,
}

/// One worker that another engine leads, and what the service has under way, in milliseconds.
struct Led {
    now: u64,
    worker: Engine,
    leader: Engine,
    config: &'static str,
    service: Service,
    under_way: Vec<(u64, Outcome, Permit)>,
}

impl Led {
    fn new(config: &'static str, line: usize) -> Self {
        Self {
            now: 0,
            worker: engine(config, 1, 0),
            leader: engine(config, 2, 0),
            config,
            service: Service {
                slots: vec![0; 4],
                line,
                dead_from: u64::MAX,
            },
            under_way: Vec::new(),
        }
    }

    /// So many requests a millisecond, on average, until then.
    fn play(&mut self, until: u64, rate: f64) {
        let mut due = 0.0;
        while self.now < until {
            self.now += 1;
            self.answer();
            due += rate;
            while due >= 1.0 {
                due -= 1.0;
                self.arrive();
                // A refusal takes no time.
                self.answer();
            }
            if self.now.is_multiple_of(ROUND) {
                self.round();
            }
        }
    }

    fn arrive(&mut self) {
        let (now, load) = (at(self.now), self.under_way.len());
        let upstream = self.worker.upstream("backend", None, now);
        let mut request = GivenRequest::default();
        let Decision::Admit(permit) = self
            .worker
            .admit(upstream, &mut request, &mut Unshared, now)
        else {
            return;
        };
        let service = &mut self.service;
        let (end, outcome) =
            if self.now >= service.dead_from || load >= service.slots.len() + service.line {
                (self.now, Outcome::Failure(Failure::Status))
            } else {
                let slot = service.slots.iter_mut().min().unwrap();
                *slot = self.now.max(*slot) + 10;
                (*slot, Outcome::Success)
            };
        self.under_way.push((end, outcome, permit));
    }

    fn answer(&mut self) {
        let now = at(self.now);
        for (_, outcome, mut permit) in self.under_way.extract_if(.., |(end, ..)| *end <= self.now)
        {
            self.worker
                .respond(&mut permit, outcome, &mut Unshared, now);
            self.worker.complete(permit, outcome, &mut Unshared, now);
        }
    }

    fn round(&mut self) {
        let now = at(self.now);
        self.worker.tick(&mut Unshared, now);
        let slices = [self.worker.slice(now)];
        if let Some((directives, _)) = self.leader.decide(&slices, &mut Unshared, now) {
            self.worker.adopt(&directives, now);
        }
    }

    /// The leader is lost; another worker starts from what it left.
    fn change_leader(&mut self) {
        let left = self.leader.learned(at(self.now)).encode();
        self.leader = engine(self.config, 3, self.now);
        let left = Directives::decode(left).unwrap();
        self.leader.adopt(&left, at(self.now));
        self.leader.upstream("backend", None, at(self.now));
    }

    fn decided(&self) -> Directive {
        let all = self.leader.learned(at(self.now));
        all.entries().next().unwrap()
    }
}

fn engine(config: &str, worker: u64, millis: u64) -> Engine {
    let config = Config::from_json(config.as_bytes()).unwrap();
    Engine::of_many(config, at(millis), worker)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn are_alike(one: f64, other: f64) -> bool {
    (one - other).abs() <= ALIKE * one.max(other)
}

/// What is decided half a second after [`CHANGE`], with the same leader and with another.
fn with_and_without_change(play: impl Fn(&mut Led), fresh: impl Fn() -> Led) -> [Directive; 2] {
    [false, true].map(|changes| {
        let mut led = fresh();
        play(&mut led);
        assert_eq!(led.now, CHANGE);
        if changes {
            led.change_leader();
        }
        led.play(CHANGE + 5 * ROUND, 2.0);
        led.decided()
    })
}

const OBJECTIVE: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;
/// Admits more than can be answered within the objective.
const TOO_MUCH: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"100ms"}},"limit":{"min":60,"initial":60,"max":1000}}"#;

#[test]
fn the_ceiling_of_failures_that_load_causes_outlives_the_leader() {
    let [same, other] = with_and_without_change(
        |led| {
            led.play(2_000, 0.2);
            led.play(CHANGE, 2.0);
        },
        || Led::new(OBJECTIVE, 12),
    );
    let [ceiling, others] = [&same, &other].map(|led| led.learned.limit.ceiling.unwrap());
    assert!(ceiling.limit.get() > 0.0 && ceiling.is_proven);
    assert!(
        are_alike(ceiling.limit.get(), others.limit.get()),
        "{same:?} {other:?}"
    );
    assert_eq!(others.is_proven, ceiling.is_proven);
    // The new leader may be in a dip of the limit, which leaves half of it at least.
    let alike = same.limit / 2..=same.limit + 2;
    assert!(alike.contains(&other.limit), "{same:?} {other:?}");
}

#[test]
fn the_ceiling_outlives_the_leader_in_an_outage() {
    let [same, other] = with_and_without_change(
        |led| {
            led.play(2_000, 0.2);
            led.service.dead_from = CHANGE - 1_500;
            led.play(CHANGE, 2.0);
            let breaker = led.worker.snapshot(at(led.now)).upstreams[1].breaker;
            assert_ne!(breaker, BreakerPhase::Closed, "it is dead");
        },
        || Led::new(OBJECTIVE, 12),
    );
    let ceiling = same.learned.limit.ceiling;
    assert!(ceiling.unwrap().limit.get() > 0.0);
    assert_eq!(other.learned.limit.ceiling, ceiling);
    assert_eq!(other.limit, same.limit);
    assert_eq!(
        other.learned.breaker.rates.failures,
        same.learned.breaker.rates.failures
    );
}

#[test]
fn the_feedback_of_bursts_outlives_the_leader() {
    let [same, other] = with_and_without_change(
        |led| {
            led.play(2_000, 0.2);
            led.play(CHANGE, 2.0);
        },
        || Led::new(TOO_MUCH, usize::MAX / 2),
    );
    let [gain, others] = [&same, &other].map(|led| led.learned.limit.burst_gain.get());
    assert!((gain - 1.0).abs() > 0.05, "{same:?}");
    assert!(are_alike(gain, others), "{same:?} {other:?}");
}

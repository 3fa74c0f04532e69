//! A proxy of several workers to which anything may happen, with a model of what must hold.

mod alone;
mod model;
mod step;

use std::collections::BTreeMap;

use proptest::sample::Index;
use tidegate_core::config::Config;
use tidegate_core::{
    Counter, Decision, Directives, Engine, GivenRequest, Instant, Outcome, Permit, Snapshot,
    UpstreamId,
};

use crate::counters::Shared;
pub(crate) use alone::{Alone, Traffic};
use model::Diagram;
pub(crate) use model::check_numbers;
pub(crate) use step::{Step, any_steps};

/// Configurations that may be pushed; the upstreams are `alpha`, `beta` and `gamma`.
pub(crate) const CONFIGS: [&str; 6] = [
    r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"breaker":{"maxOpen":"2s"}}"#,
    r#"{"slo":{"latency":{"quantile":0.5,"target":"5ms"}},"stance":"throughput","breaker":{"minOpen":"50ms","maxOpen":"1h"},
        "limit":{"min":3,"initial":7,"max":9},"upstreams":[{"match":{"cluster":"beta"},"limit":{"min":1,"initial":1,"max":1}}]}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"1s"},"successRate":0.999},"breaker":{"enabled":false},"enforcement":0.5}"#,
    r#"{"slo":{"latency":{"quantile":0.999,"target":"50ms"}},"limit":{"min":100000,"initial":100000,"max":100000},
        "breaker":{"tripRatio":0.05},"shed":{"maxShare":0.5}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms","until":"end"}},"limit":{"maxOpen":5},
        "upstreams":[{"match":{"cluster":"beta"},"slo":{"latency":{"until":"firstByte"}}}]}"#,
    r#"{"slo":{"latency":{"quantile":0.95,"target":"20ms","until":"firstByte"}},"limit":{"min":2,"maxOpen":2},
        "upstreams":[{"match":{"cluster":"gamma"},"slo":{"latency":{"until":"headers"}},"limit":{"maxOpen":100000}}]}"#,
];
pub(crate) const OBSERVING: &str = r#"{"slo":{"latency":{"quantile":0.9,"target":"10ms"}},"mode":"observe","limit":{"max":2,"initial":1}}"#;
pub(crate) const OFF: &str = r#"{"slo":{"latency":{"quantile":0.9,"target":"10ms"}},"enabled":false,"limit":{"max":2,"initial":1}}"#;
/// Quick to open and to try again.
pub(crate) const STRICT: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"breaker":{"minOpen":"1s","maxOpen":"2s"}}"#;

const MILLI: u64 = 1_000_000;
/// Health checks that pass at a time in one engine, however much is refused.
const HEALTH_CHECKS: usize = 1;
const UPSTREAMS: [&str; 3] = ["alpha", "beta", "gamma"];

pub(crate) fn config(text: &str) -> Config {
    Config::from_json(text.as_bytes()).unwrap()
}

/// Several engines, their shared counts, and what is held.
pub(crate) struct Proxy {
    pub(crate) engines: Vec<Engine>,
    pub(crate) now: u64,
    pub(crate) sheds: u32,
    pub(crate) directives: Directives<'static>,
    counters: Shared,
    permits: Vec<(usize, Permit)>,
    slices: BTreeMap<usize, tidegate_core::Slice<'static>>,
    leader: Option<usize>,
    diagram: Diagram,
}

impl Proxy {
    pub(crate) fn new(workers: u64, config_text: &str, now: u64) -> Self {
        let at = Instant::from_nanos(now);
        let mut engines: Vec<Engine> = (1..=workers)
            .map(|worker| Engine::of_many(config(config_text), at, worker))
            .collect();
        for engine in &mut engines {
            for (name, index) in UPSTREAMS.into_iter().zip(1..) {
                assert_eq!(engine.upstream(name, None, at).index(), index);
            }
        }
        Self {
            engines,
            now,
            sheds: 0,
            directives: Directives::default(),
            counters: Shared::default(),
            permits: Vec::new(),
            slices: BTreeMap::new(),
            leader: Some(0),
            diagram: Diagram::default(),
        }
    }

    fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    /// The handle of an upstream, the same in every engine.
    fn upstream(&mut self, engine: usize, index: usize) -> UpstreamId {
        let at = self.at();
        let name = UPSTREAMS[index % UPSTREAMS.len()];
        self.engines[engine].upstream(name, None, at)
    }

    pub(crate) fn held(&self) -> usize {
        self.permits.len()
    }

    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        let snapshots = self.engines.iter();
        snapshots.map(|engine| engine.snapshot(self.at())).collect()
    }

    pub(crate) fn take(&mut self, step: &Step) {
        let at = self.at();
        match step {
            Step::Admit {
                engine,
                upstream,
                kind,
            } => {
                let engine = engine.index(self.engines.len());
                let upstream = self.upstream(engine, *upstream);
                let mut request = kind.request();
                let decision =
                    self.engines[engine].admit(upstream, &mut request, &mut self.counters, at);
                match decision {
                    Decision::Admit(permit) => self.permits.push((engine, permit)),
                    Decision::Shed(shed) => {
                        let held = self.permits.iter().filter(|(other, permit)| {
                            *other == engine && permit.upstream() == upstream
                        });
                        let has_budget = held.count() < HEALTH_CHECKS;
                        assert!(!(kind.is_health_check() && has_budget), "{shed:?}");
                        self.sheds += 1;
                    }
                }
            }
            Step::Start(index) => self.with(*index, |engine, permit, counters| {
                engine.start(permit, counters, at);
            }),
            Step::Respond(index, outcome) => self.with(*index, |engine, permit, counters| {
                engine.respond(permit, *outcome, counters, at);
            }),
            Step::FirstByte(index) => self.with(*index, |engine, permit, counters| {
                engine.first_byte(permit, counters, at);
            }),
            Step::Upgrade(index) => self.with(*index, |engine, permit, counters| {
                engine.upgrade(permit, counters, at);
            }),
            Step::Complete(index, outcome) => {
                if !self.permits.is_empty() {
                    let (engine, permit) =
                        self.permits.swap_remove(index.index(self.permits.len()));
                    self.engines[engine].complete(permit, *outcome, &mut self.counters, at);
                }
            }
            Step::Tick(engine) => self.tick(engine.index(self.engines.len())),
            Step::TickAll => self.tick_all(),
            Step::Round {
                upstream,
                requests,
                outcome,
                pass,
            } => {
                for engine in 0..self.engines.len() {
                    for _ in 0..*requests {
                        self.exchange(engine, *upstream, *outcome);
                    }
                }
                self.now = self.now.saturating_add(*pass);
                self.tick_all();
            }
            Step::Lead(engine) => {
                let successor = engine.map(|engine| engine.index(self.engines.len()));
                if successor != self.leader {
                    if let Some(leader) = self.leader {
                        self.engines[leader].resign();
                    }
                    self.leader = successor;
                    self.diagram.expect_anything();
                }
            }
            Step::Push(index) => {
                for engine in &mut self.engines {
                    engine.reconfigure(config(CONFIGS[*index]), at);
                }
            }
            Step::Endpoints(engine, upstream, endpoints) => {
                let engine = engine.index(self.engines.len());
                let upstream = self.upstream(engine, *upstream);
                self.engines[engine].set_endpoints(upstream, *endpoints);
            }
            Step::Pass(nanos) => self.now = self.now.saturating_add(*nanos),
            Step::Back(nanos) => self.now = self.now.saturating_sub(*nanos),
            Step::Jump(now) => self.now = *now,
        }
    }

    /// One of the requests that are held goes a step further.
    fn with(&mut self, index: Index, step: impl FnOnce(&mut Engine, &mut Permit, &mut Shared)) {
        if self.permits.is_empty() {
            return;
        }
        let index = index.index(self.permits.len());
        let (engine, permit) = &mut self.permits[index];
        step(&mut self.engines[*engine], permit, &mut self.counters);
    }

    fn tick(&mut self, worker: usize) {
        let at = self.at();
        let engine = &mut self.engines[worker];
        engine.tick(&mut self.counters, at);
        self.slices.insert(worker, engine.slice(at));
        if self.leader == Some(worker) {
            let slices: Vec<_> = self.slices.values().cloned().collect();
            if let Some((directives, events)) = engine.decide(&slices, &mut self.counters, at) {
                let may_disarm = !engine.config().default_policy().breaker().enabled();
                let names = |id: UpstreamId| engine.hash(id);
                self.diagram.follow(&events, &directives, may_disarm, names);
                self.directives = directives;
            }
        }
        engine.adopt(&self.directives, at);
    }

    fn tick_all(&mut self) {
        for worker in 0..self.engines.len() {
            self.tick(worker);
        }
    }

    /// Everything under way ends, its callers gone.
    pub(crate) fn end_all(&mut self) {
        let at = self.at();
        for (engine, permit) in std::mem::take(&mut self.permits) {
            self.engines[engine].complete(permit, Outcome::Cancelled, &mut self.counters, at);
        }
    }

    /// One request that ends at once.
    fn exchange(&mut self, engine: usize, index: usize, outcome: Outcome) {
        let upstream = self.upstream(engine, index);
        let at = self.at();
        let worker = &mut self.engines[engine];
        match worker.admit(
            upstream,
            &mut GivenRequest::default(),
            &mut self.counters,
            at,
        ) {
            Decision::Admit(mut permit) => {
                worker.respond(&mut permit, Outcome::Success, &mut self.counters, at);
                worker.complete(permit, outcome, &mut self.counters, at);
            }
            Decision::Shed(_) => self.sheds += 1,
        }
    }

    /// Ordinary seconds: a clock that runs, a leader, upstreams that answer.
    pub(crate) fn recover(&mut self, seconds: u64) {
        // At the end of time no time passes.
        self.now = self.now.min(u64::MAX / 2);
        for engine in &mut self.engines {
            engine.reconfigure(config(CONFIGS[0]), Instant::from_nanos(self.now));
        }
        self.leader = self.leader.or(Some(0));
        for _ in 0..seconds * 10 {
            for engine in 0..self.engines.len() {
                for index in 0..UPSTREAMS.len() {
                    self.exchange(engine, index, Outcome::Success);
                }
            }
            self.now += 100 * MILLI;
            self.tick_all();
        }
    }

    /// What holds at any time.
    pub(crate) fn check(&self) {
        let snapshots = self.snapshots();
        let mut in_flight = BTreeMap::<UpstreamId, i64>::new();
        for (worker, (engine, snapshot)) in self.engines.iter().zip(&snapshots).enumerate() {
            for upstream in &snapshot.upstreams {
                let own = self.permits.iter().filter(|(engine, permit)| {
                    (*engine, permit.upstream()) == (worker, upstream.id)
                });
                let load = upstream.in_flight + upstream.uploading;
                assert_eq!(
                    own.count(),
                    load as usize + upstream.open as usize,
                    "what is held is in flight, an upload, or open"
                );
                *in_flight.entry(upstream.id).or_default() += i64::from(load);
                let bounds = engine.policy(upstream.id).limit();
                let endpoints = upstream.learned.limit.endpoints.max(1);
                let most = bounds.max().saturating_mul(endpoints);
                assert!(
                    (bounds.min()..=most).contains(&upstream.limit),
                    "{} outside {bounds:?}",
                    upstream.limit
                );
                check_numbers(&upstream.learned);
            }
        }
        for (upstream, count) in in_flight {
            assert_eq!(
                self.counters.read(upstream, Counter::InFlight),
                count,
                "the shared count is the workers' sum"
            );
        }
    }
}

//! Tidegate as one engine that serves a proxy alone, as in a process of one worker: a tenth of the cost of [`super::KIND`],
//! whose workers exchange by the bytes of core's wire format.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{Counter, Counters, Decision, Engine, Instant, Outcome, Permit, UpstreamId};

use super::request::Asking;
use super::{NAME, TICK, noted};
use crate::contender::{
    Admission, Ask, Contender, ContenderError, ContenderView, Done, Note, RequestId,
};
use crate::policy::policy;
use crate::scenario::Scenario;
use crate::world;

/// How the proxies of a scenario are made, and what they share.
pub(crate) struct AlonePolicy {
    config: Config,
    /// By index in the scenario. Every proxy meets the upstreams in this order, and so under the same numbers.
    names: Vec<String>,
    upstreams: Vec<UpstreamId>,
    knows_endpoints: bool,
}

impl AlonePolicy {
    /// The policy of a scenario. Proxies that are not protected only count.
    pub(crate) fn new(
        scenario: &Scenario,
        is_protected: bool,
        knows_endpoints: bool,
    ) -> Result<Arc<Self>, ContenderError> {
        let mut policy = policy(scenario);
        if let Some(policy) = policy.as_object_mut() {
            policy.insert("enabled".to_owned(), is_protected.into());
        }
        let config = Config::from_json(policy.to_string().as_bytes());
        let config = config.map_err(|error| ContenderError {
            contender: NAME,
            cause: error.to_string(),
        })?;
        let profiles = scenario.upstreams.iter();
        let names: Vec<String> = profiles.map(|profile| profile.name.clone()).collect();
        let (_, upstreams) = engine(&config, &names, 0);
        Ok(Arc::new(Self {
            config,
            names,
            upstreams,
            knows_endpoints,
        }))
    }

    /// One proxy.
    pub(crate) fn make(self: &Arc<Self>, seed: u64) -> Box<dyn Contender> {
        Box::new(Alone {
            engine: engine(&self.config, &self.names, seed).0,
            shared: Arc::clone(self),
            counts: OwnCounts::default(),
            permits: BTreeMap::new(),
            notes: Vec::new(),
        })
    }
}

fn engine(config: &Config, names: &[String], seed: u64) -> (Engine, Vec<UpstreamId>) {
    let mut engine = Engine::new(config.clone(), world::START, seed);
    let upstream = |name: &String| engine.upstream(name, None, world::START);
    let upstreams = names.iter().map(upstream).collect();
    (engine, upstreams)
}

/// What one engine counts for itself, by upstream.
#[derive(Debug, Default)]
struct OwnCounts(Vec<[u64; 2]>);

impl OwnCounts {
    fn change(&mut self, upstream: UpstreamId, counter: Counter, by: u64) -> u64 {
        if self.0.len() <= upstream.index() {
            self.0.resize(upstream.index() + 1, [0; 2]);
        }
        let Some([in_flight, probes]) = self.0.get_mut(upstream.index()) else {
            return 0;
        };
        let count = match counter {
            Counter::InFlight => in_flight,
            Counter::Grants => probes,
        };
        *count = count.wrapping_add(by);
        *count
    }
}

impl Counters for OwnCounts {
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        Some(self.change(upstream, counter, 1))
    }

    fn lower(&mut self, upstream: UpstreamId, counter: Counter, by: u64) {
        self.change(upstream, counter, by.wrapping_neg());
    }

    fn value(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        Some(self.change(upstream, counter, 0))
    }
}

/// One proxy.
struct Alone {
    shared: Arc<AlonePolicy>,
    engine: Engine,
    counts: OwnCounts,
    permits: BTreeMap<RequestId, Permit>,
    notes: Vec<Note>,
}

impl Contender for Alone {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let Some(upstream) = self.shared.upstreams.get(ask.upstream).copied() else {
            return Admission::Admit;
        };
        let config = &self.shared.config;
        let mut request = Asking { ask, config };
        let endpoints = if self.shared.knows_endpoints {
            ask.endpoints
        } else {
            0
        };
        self.engine.set_endpoints(upstream, endpoints);
        match self
            .engine
            .admit(upstream, &mut request, &mut self.counts, now)
        {
            Decision::Admit(permit) => {
                self.permits.insert(ask.request, permit);
                Admission::Admit
            }
            Decision::Shed(shed) => Admission::Shed {
                reason: shed.reason.as_str(),
                is_final: true,
            },
        }
    }

    fn uploaded(&mut self, request: RequestId, now: Instant) {
        if let Some(permit) = self.permits.get_mut(&request) {
            self.engine.start(permit, &mut self.counts, now);
        }
    }

    fn headers(&mut self, request: RequestId, outcome: Outcome, now: Instant) {
        if let Some(permit) = self.permits.get_mut(&request) {
            self.engine.respond(permit, outcome, &mut self.counts, now);
        }
    }

    fn first_byte(&mut self, request: RequestId, now: Instant) {
        if let Some(permit) = self.permits.get_mut(&request) {
            self.engine.first_byte(permit, &mut self.counts, now);
        }
    }

    fn complete(&mut self, done: &Done, now: Instant) {
        if let Some(permit) = self.permits.remove(&done.request) {
            self.engine
                .complete(permit, done.outcome, &mut self.counts, now);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn tick(&mut self, now: Instant) {
        let events = self.engine.tick(&mut self.counts, now);
        let upstreams = &self.shared.upstreams;
        let notes = events.into_iter().filter_map(|event| {
            let (id, breaker, reason) = noted(event)?;
            Some(Note {
                at: now,
                upstream: upstreams.iter().position(|upstream| *upstream == id)?,
                breaker,
                reason,
            })
        });
        self.notes.extend(notes);
    }

    fn view(&self, upstream: usize, now: Instant) -> ContenderView {
        let id = self.shared.upstreams.get(upstream);
        let view = self.engine.views(now).find(|view| Some(&view.id) == id);
        view.map_or_else(ContenderView::default, |view| ContenderView {
            limit: Some(f64::from(view.limit)),
            breaker: Some(view.breaker),
        })
    }

    fn in_flight(&self, upstream: usize) -> Option<u64> {
        let id = self.shared.upstreams.get(upstream)?;
        // Before the first request nothing is counted.
        Some(
            self.counts
                .0
                .get(id.index())
                .map_or(0, |[in_flight, _]| *in_flight),
        )
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

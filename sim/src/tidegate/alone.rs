//! Tidegate as one engine that serves a proxy alone, as in a process of one worker: a tenth of the cost of [`super::KIND`],
//! whose workers exchange by the bytes of core's wire format.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{Counter, Decision, Engine, Instant, Outcome, Permit, UpstreamId};

use super::counters::CountSet;
use super::request::Asking;
use super::{NAME, TICK, noted, policy};
use crate::contender::{
    Admission, Ask, Contender, ContenderError, ContenderView, Done, Note, RequestId,
};
use crate::scenario::Scenario;
use crate::world;

/// What the proxies of a scenario share: their policy, and the names of their upstreams.
pub(crate) struct AlonePolicy {
    config: Arc<Config>,
    names: Vec<String>,
    knows_endpoints: bool,
}

impl AlonePolicy {
    /// The policy of a scenario. Proxies that are not protected only count.
    pub(crate) fn new(
        scenario: &Scenario,
        is_protected: bool,
        knows_endpoints: bool,
    ) -> Result<Self, ContenderError> {
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
        Ok(Self {
            config: Arc::new(config),
            names: profiles.map(|profile| profile.name.clone()).collect(),
            knows_endpoints,
        })
    }

    /// One proxy.
    pub(crate) fn make(&self, scenario: &Scenario, seed: u64) -> Box<dyn Contender> {
        let mut engine = Engine::new(Config::clone(&self.config), world::START, seed);
        let upstream = |name: &String| engine.upstream(name, None, world::START);
        Box::new(Alone {
            config: Arc::clone(&self.config),
            upstreams: self.names.iter().map(upstream).collect(),
            engine,
            knows_endpoints: self.knows_endpoints,
            counts: CountSet::new(scenario.counting),
            permits: BTreeMap::new(),
            notes: Vec::new(),
        })
    }
}

/// One proxy.
struct Alone {
    config: Arc<Config>,
    engine: Engine,
    /// By index in the scenario.
    upstreams: Vec<UpstreamId>,
    knows_endpoints: bool,
    counts: CountSet,
    permits: BTreeMap<RequestId, Permit>,
    notes: Vec<Note>,
}

impl Contender for Alone {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        let Some(upstream) = self.upstreams.get(ask.upstream).copied() else {
            return Admission::Admit;
        };
        let config = &self.config;
        let mut request = Asking { ask, config };
        let endpoints = if self.knows_endpoints {
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
        let upstreams = &self.upstreams;
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
        let id = self.upstreams.get(upstream);
        let view = self.engine.views(now).find(|view| Some(&view.id) == id);
        view.map_or_else(ContenderView::default, |view| ContenderView {
            limit: Some(f64::from(view.limit)),
            breaker: Some(view.breaker),
        })
    }

    fn in_flight(&self, upstream: usize) -> Option<u64> {
        let id = self.upstreams.get(upstream)?;
        self.counts.read(*id, Counter::InFlight)
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

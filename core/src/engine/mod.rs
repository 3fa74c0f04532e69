//! The engine: one constructor and a few verbs, the same for filter, simulator and playground.
//!
//! A request is admitted or shed ([`Engine::admit`]). An admitted request has a permit, which is passed in at the end of the
//! request's body ([`Engine::start`]), the response headers ([`Engine::respond`]), the first byte ([`Engine::first_byte`])
//! and the end ([`Engine::complete`]). On every tick a worker that is alone decides for itself ([`Engine::tick`]); workers of
//! one proxy exchange reports and directives instead ([`Engine::slice`], [`Engine::decide`], [`Engine::adopt`]). The control
//! laws are the same in both cases: a worker alone is a leader of one.

mod exchange;
mod view;

use core::time::Duration;
use std::sync::Arc;

use crate::admission::{self, Enforcement, LawDecision, LoadCheck};
use crate::breaker::BreakerState;
use crate::config::{Config, Policy, Until};
use crate::counters::{Counter, Counters};
use crate::event::Events;
use crate::leader::Leader;
use crate::outcome::Outcome;
use crate::permit::{Permit, Purpose};
use crate::registry::{Lookup, Registry};
use crate::request::Request;
use crate::shed::Shed;
use crate::slot::Slot;
use crate::slot::in_flight::{AdmittedRequest, Shift};
use crate::time::Instant;
use crate::upstream::{UpstreamId, UpstreamKey, destination_hash};

/// The random part of Retry-After, as a share of the wait, so that callers do not all return at once.
const RETRY_AFTER_JITTER: f64 = 0.5;

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// Admit it.
    Admit(Permit),
    /// Shed it, for this reason.
    Shed(Shed),
}

/// All state of one worker. See the module's documentation.
#[derive(Debug)]
pub struct Engine {
    /// Shared with the engine for destinations and with the reader of requests.
    config: Arc<Config>,
    worker: u64,
    alone: bool,
    rng: fastrand::Rng,
    registry: Registry,
    leader: Option<Leader>,
    /// Added to `now`, this gives a clock that is the same for all proxies of an upstream.
    ahead: Duration,
    trusts_directives: bool,
}

impl Engine {
    /// An engine that serves a proxy alone. `seed` feeds jitter and sampling, nothing else.
    #[must_use]
    pub fn new(config: Config, now: Instant, seed: u64) -> Self {
        Self {
            alone: true,
            ..Self::of_many(config, now, seed)
        }
    }

    /// One of several engines of a proxy, with a unique `worker` number. It decides nothing in [`Engine::tick`]: decisions come
    /// through the exchange.
    #[must_use]
    pub fn of_many(config: Config, now: Instant, worker: u64) -> Self {
        Self::with(Arc::new(config), now, worker)
    }

    fn with(config: Arc<Config>, now: Instant, worker: u64) -> Self {
        let registry = Registry::new(&config, now);
        Self {
            config,
            worker,
            alone: false,
            rng: fastrand::Rng::with_seed(worker),
            registry,
            leader: None,
            ahead: Duration::ZERO,
            trusts_directives: false,
        }
    }

    /// Another engine of this worker, which keeps destinations instead of upstreams ([`Engine::destination`]). It decides for
    /// this worker alone: names that callers choose must not fill the exchange.
    #[must_use]
    pub fn for_destinations(&self, now: Instant) -> Self {
        Self {
            alone: true,
            ..Self::with(Arc::clone(&self.config), now, self.worker)
        }
    }

    /// The configuration in force.
    #[must_use]
    pub const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The policy in force for an upstream.
    #[must_use]
    pub fn policy(&self, upstream: UpstreamId) -> &Policy {
        self.config.policy(self.registry.rule(upstream))
    }

    /// The handle of the upstream behind `cluster` (and `route`, where the configuration matches on routes).
    /// A new one starts from the learned state of other workers. Beyond the cap, new upstreams share one state.
    pub fn upstream(&mut self, cluster: &str, route: Option<&str>, now: Instant) -> UpstreamId {
        self.registry.upstream(&self.config, cluster, route, now)
    }

    /// What is kept for requests to `cluster` (by `route`, where the configuration matches on routes). It is the same as
    /// [`Engine::upstream`], unless the configuration, or the cluster's name, says that the cluster leads to several
    /// destinations.
    pub fn look_up(&mut self, cluster: &str, route: Option<&str>, now: Instant) -> Lookup {
        let registry = &mut self.registry;
        registry.look_up(&self.config, cluster, route, now)
    }

    /// The handle of the destination of `cluster` with this `authority`, in an engine of destinations. `None` at the cap: the
    /// request passes, and [is counted](Engine::overflowed).
    pub fn destination(
        &mut self,
        cluster: &str,
        route: Option<&str>,
        authority: &str,
        now: Instant,
    ) -> Option<UpstreamId> {
        let cluster_hash = UpstreamKey::hash(cluster, route);
        let hash = destination_hash(self.worker, cluster_hash, authority);
        let registry = &mut self.registry;
        registry.destination(&self.config, (cluster, route), hash, now)
    }

    /// Sets the number of endpoints of an upstream; 0: unknown.
    pub fn set_endpoints(&mut self, upstream: UpstreamId, endpoints: u32) {
        self.registry.slot_mut(upstream).endpoints = endpoints;
    }

    /// Decides whether to admit a request to `upstream`.
    pub fn admit(
        &mut self,
        upstream: UpstreamId,
        request: &mut impl Request,
        counters: &mut impl Counters,
        now: Instant,
    ) -> Decision {
        let policy = self.config.policy(self.registry.rule(upstream));
        let slot = self.registry.slot_mut(upstream);
        slot.arrive(now);
        admission::sample_class(slot, &self.config, policy, request);
        // Not only at a tick: between two ticks many slow uploads could take the places of other requests.
        let taken = slot.take_slow_uploads(now);
        lower_shared(slot, upstream, taken, counters);
        let answer = if self.config.enabled() {
            admission::ask(slot, upstream, request, counters, now)
        } else {
            LawDecision::Admit {
                load: admission::raise(slot, upstream, counters),
                purpose: Purpose::Normal,
                explored: None,
            }
        };
        let (load, purpose, explored) = match answer {
            LawDecision::Admit {
                load,
                purpose,
                explored,
            } => (load, purpose, explored),
            LawDecision::Refuse {
                reason,
                wait,
                load,
                level,
            } => match admission::enforce(slot, policy, (reason, level), request, &mut self.rng) {
                Enforcement::Shed => {
                    slot.full = load != LoadCheck::Unasked;
                    if matches!(load, LoadCheck::Counted(_)) {
                        admission::undo(slot, upstream, counters);
                    }
                    let jitter = 1.0 + RETRY_AFTER_JITTER * self.rng.f64();
                    return Decision::Shed(Shed {
                        reason,
                        retry_after: wait.mul_f64(jitter),
                    });
                }
                Enforcement::LetIn(Purpose::Exempt) => {
                    if matches!(load, LoadCheck::Counted(_)) {
                        admission::undo(slot, upstream, counters);
                    }
                    (0, Purpose::Exempt, None)
                }
                Enforcement::LetIn(purpose) => {
                    let load = match load {
                        LoadCheck::Counted(load) => load,
                        LoadCheck::Unasked | LoadCheck::Seen => {
                            admission::raise(slot, upstream, counters)
                        }
                    };
                    (load, purpose, None)
                }
            },
        };
        slot.full = false;
        let entry = AdmittedRequest {
            load,
            purpose,
            explored,
            has_body: request.has_body(),
        };
        Decision::Admit(slot.enter(upstream, entry, now))
    }

    /// The body of an admitted request is complete: its latency begins.
    pub fn start(&mut self, permit: &mut Permit, counters: &mut impl Counters, now: Instant) {
        let slot = self.registry.slot_mut(permit.upstream);
        let shift = slot.start(permit, now);
        follow(shift, permit, counters);
    }

    /// The response headers of an admitted request came; `outcome` is what they say by themselves.
    pub fn respond(
        &mut self,
        permit: &mut Permit,
        outcome: Outcome,
        counters: &mut impl Counters,
        now: Instant,
    ) {
        let policy = self.config.policy(self.registry.rule(permit.upstream));
        let slot = self.registry.slot_mut(permit.upstream);
        let is_measured = permit.latency().is_some();
        let shift = slot.answer(permit, policy.slo().until(), now);
        follow(shift, permit, counters);
        slot.learn_answer(permit, outcome, now);
        if !is_measured {
            slot.record_latency(permit, policy);
        }
    }

    /// The first byte of the response's body came.
    pub fn first_byte(&mut self, permit: &mut Permit, counters: &mut impl Counters, now: Instant) {
        let policy = self.config.policy(self.registry.rule(permit.upstream));
        let slot = self.registry.slot_mut(permit.upstream);
        if policy.slo().until() == Until::FirstByte && permit.is_answered() {
            measure(slot, policy, permit, counters, now);
        }
    }

    /// The connection of an admitted request was upgraded, for example to a WebSocket: it no longer counts as load.
    pub fn upgrade(&mut self, permit: &mut Permit, counters: &mut impl Counters, now: Instant) {
        let slot = self.registry.slot_mut(permit.upstream);
        let shift = slot.upgrade(permit, now);
        follow(shift, permit, counters);
    }

    /// An admitted request ended: with its response's last byte, a reset, or its caller's departure.
    pub fn complete(
        &mut self,
        mut permit: Permit,
        outcome: Outcome,
        counters: &mut impl Counters,
        now: Instant,
    ) {
        if outcome == Outcome::Success && !permit.is_answered() {
            self.respond(&mut permit, outcome, counters, now);
        }
        let policy = self.config.policy(self.registry.rule(permit.upstream));
        let slot = self.registry.slot_mut(permit.upstream);
        if matches!(outcome, Outcome::Success | Outcome::Ignored) && permit.is_answered() {
            measure(slot, policy, &mut permit, counters, now);
        }
        let shift = slot.leave(&permit, now);
        follow(shift, &permit, counters);
        let Some(reason) = slot.learn_end(&permit, outcome, policy, now) else {
            return;
        };
        if policy.breaker().enabled() {
            // Closes the worker's own gate until the leader knows of the trip.
            let sent = counters
                .value(permit.upstream, Counter::Probes)
                .unwrap_or_default();
            let until = now + policy.breaker().min_open();
            let state = BreakerState::Open {
                until,
                probes: sent.saturating_add(1),
            };
            slot.gate.trip_locally(reason, state, now);
        }
    }

    /// The upkeep of every tick. A worker alone also runs the control laws.
    pub fn tick(&mut self, counters: &mut impl Counters, now: Instant) -> Events {
        for (id, slot) in self.registry.awake_mut() {
            let taken = slot.take_unloading(now);
            lower_shared(slot, id, taken, counters);
            slot.roll();
        }
        if !self.alone {
            return Events::new();
        }
        let slice = self.slice(now);
        let Some((directives, events)) = self.decide(&[slice], counters, now) else {
            return Events::new();
        };
        self.adopt(&directives, now);
        events
    }

    /// Replaces the configuration. Learned state, requests in flight and open breakers stay.
    pub fn reconfigure(&mut self, config: Config, now: Instant) {
        self.follow_config(Arc::new(config), now);
    }

    /// Takes over the configuration of another engine of this worker.
    pub fn reconfigure_like(&mut self, other: &Self, now: Instant) {
        self.follow_config(Arc::clone(&other.config), now);
    }

    fn follow_config(&mut self, config: Arc<Config>, now: Instant) {
        self.config = config;
        self.registry.follow_config(&self.config, now);
    }
}

/// The moment came to which the objective measures latency.
fn measure(
    slot: &mut Slot,
    policy: &Policy,
    permit: &mut Permit,
    counters: &mut impl Counters,
    now: Instant,
) {
    let is_measured = permit.latency().is_some();
    let shift = slot.measure(permit, now);
    follow(shift, permit, counters);
    if !is_measured {
        slot.record_latency(permit, policy);
    }
}

/// Subtracts requests that no longer count as load from the proxy-wide count.
#[inline(always)]
fn lower_shared(slot: &Slot, upstream: UpstreamId, by: u32, counters: &mut impl Counters) {
    if by > 0 && slot.shared {
        counters.lower(upstream, Counter::InFlight, u64::from(by));
    }
}

/// Applies a request's step to the proxy-wide count.
#[inline(always)]
fn follow(shift: Shift, permit: &Permit, counters: &mut impl Counters) {
    match shift {
        Shift::Lower if permit.shared => counters.lower(permit.upstream, Counter::InFlight, 1),
        Shift::Raise if permit.shared => {
            // The new value does not matter: the request is admitted already.
            let _ = counters.raise(permit.upstream, Counter::InFlight);
        }
        Shift::Same | Shift::Lower | Shift::Raise => {}
    }
}

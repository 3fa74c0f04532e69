//! The engine: one constructor and a few verbs, the same for filter, simulator and playground.
//!
//! A request is admitted or shed ([`Engine::admit`]). An admitted request has a permit, which is passed in at the end of the
//! request's body ([`Engine::start`]), the response headers ([`Engine::respond`]), the first byte ([`Engine::first_byte`])
//! and the end ([`Engine::complete`]). On every tick a worker that is alone decides for itself ([`Engine::tick`]); workers of
//! one proxy exchange reports and directives instead ([`Engine::slice`], [`Engine::decide`], [`Engine::adopt`]). The control
//! laws are the same in both cases: a worker alone is a leader of one.

mod exchange;
mod request;
mod view;

use core::time::Duration;
use std::sync::Arc;

use self::request::lower_shared;
use crate::config::{Config, Policy};
use crate::counters::Counters;
use crate::event::Events;
use crate::leader::Leader;
use crate::permit::Permit;
use crate::registry::{Lookup, Registry};
use crate::shed::Shed;
use crate::time::Instant;
use crate::upstream::{KeySource, UpstreamId, UpstreamKey, destination_hash};

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

    /// Takes the names of upstreams from there, as where engines share memory.
    pub fn share_keys(&mut self, keys: Arc<dyn KeySource>) {
        self.registry.share_keys(keys);
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
        let id = self.registry.upstream(&self.config, cluster, route, now);
        self.serve(id, now)
    }

    /// A request of this worker asks for an upstream, which it may have only led so far.
    fn serve(&mut self, id: UpstreamId, now: Instant) -> UpstreamId {
        if let Some(led) = self.registry.led(id) {
            let leader = self.leader.as_ref();
            let directive = leader.and_then(|leader| leader.directive(led.hash));
            let directive = directive.copied();
            self.registry.serve(&self.config, id, directive, now);
        }
        id
    }

    /// What is kept for requests to `cluster` (by `route`, where the configuration matches on routes). It is the same as
    /// [`Engine::upstream`], unless the configuration, or the cluster's name, says that the cluster leads to several
    /// destinations.
    pub fn look_up(&mut self, cluster: &str, route: Option<&str>, now: Instant) -> Lookup {
        let registry = &mut self.registry;
        match registry.look_up(&self.config, cluster, route, now) {
            Lookup::Upstream(id) => Lookup::Upstream(self.serve(id, now)),
            other @ (Lookup::ByAuthority | Lookup::Nothing) => other,
        }
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

    /// The upkeep of every tick. A worker alone also runs the control laws.
    pub fn tick(&mut self, counters: &mut impl Counters, now: Instant) -> Events {
        let is_led = self.registry.is_led(now);
        for (id, slot) in self.registry.awake_mut() {
            if !is_led {
                slot.grants = None;
            }
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

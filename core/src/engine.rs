//! The engine: one constructor and a few verbs, the same for filter, simulator and playground.
//!
//! A request is admitted or shed ([`Engine::admit`]); its permit hears of the response headers
//! ([`Engine::respond`]) and of the end ([`Engine::complete`]). On every tick a worker that is alone decides for
//! itself ([`Engine::tick`]); workers of one proxy exchange what they saw instead ([`Engine::slice`],
//! [`Engine::decide`], [`Engine::adopt`]). The control laws are the same either way: alone is a leader of one.

use core::time::Duration;

use crate::admission::{self, Answer, Enforcement, Load};
use crate::breaker::{BreakerState, Transition};
use crate::config::{Config, Policy};
use crate::counters::{Counter, Counters};
use crate::event::{Event, Events};
use crate::exchange::{self, Directives, Slice};
use crate::leader::{Leader, Surroundings};
use crate::outcome::Outcome;
use crate::permit::{Permit, Purpose};
use crate::registry::Registry;
use crate::request::Request;
use crate::shed::Shed;
use crate::snapshot::{Snapshot, UpstreamSnapshot, UpstreamView};
use crate::time::Instant;
use crate::upstream::UpstreamId;

/// The random part of Retry-After: callers come back over so much of the wait, not all at once.
const RETRY_AFTER_JITTER: f64 = 0.5;

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    /// Let it in.
    Admit(Permit),
    /// Refuse it, and say why.
    Shed(Shed),
}

/// All state of one worker. See the module's documentation.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    worker: u64,
    alone: bool,
    rng: fastrand::Rng,
    registry: Registry,
    leader: Option<Leader>,
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

    /// One of several engines of a proxy, by its `worker` number, which no other may have. It decides nothing in
    /// [`Engine::tick`]: the exchange does.
    #[must_use]
    pub fn of_many(config: Config, now: Instant, worker: u64) -> Self {
        let registry = Registry::new(&config, now);
        Self {
            config,
            worker,
            alone: false,
            rng: fastrand::Rng::with_seed(worker),
            registry,
            leader: None,
        }
    }

    /// The configuration in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The policy in force for an upstream.
    #[must_use]
    pub fn policy(&self, upstream: UpstreamId) -> &Policy {
        self.config.policy(self.registry.slot(upstream).rule)
    }

    /// The handle of the upstream behind `cluster` (and `route`, where the configuration matches on routes).
    /// A new one starts from what other workers learned. Beyond the cap, newcomers share one state.
    pub fn upstream(&mut self, cluster: &str, route: Option<&str>, now: Instant) -> UpstreamId {
        self.registry.upstream(&self.config, cluster, route, now)
    }

    /// Says how many endpoints stand behind an upstream; 0 when unknown.
    pub fn set_endpoints(&mut self, upstream: UpstreamId, endpoints: u32) {
        self.registry.slot_mut(upstream).endpoints = endpoints;
    }

    /// Decides about a request to `upstream`.
    pub fn admit(
        &mut self,
        upstream: UpstreamId,
        request: &mut impl Request,
        counters: &mut impl Counters,
        now: Instant,
    ) -> Decision {
        let slot = self.registry.slot_mut(upstream);
        let policy = self.config.policy(slot.rule);
        slot.arrive(now);
        let answer = if self.config.enabled() {
            admission::ask(slot, upstream, request, counters, now)
        } else {
            Answer::Admit {
                load: admission::raise(slot, upstream, counters),
                purpose: Purpose::Normal,
            }
        };
        let (load, purpose) = match answer {
            Answer::Admit { load, purpose } => (load, purpose),
            Answer::Refuse { reason, wait, load } => {
                match admission::enforce(slot, policy, reason, request, &mut self.rng) {
                    Enforcement::Shed => {
                        slot.full = load != Load::Unasked;
                        if matches!(load, Load::Counted(_)) {
                            admission::undo(slot, upstream, counters);
                        }
                        let jitter = 1.0 + RETRY_AFTER_JITTER * self.rng.f64();
                        return Decision::Shed(Shed {
                            reason,
                            retry_after: wait.mul_f64(jitter),
                        });
                    }
                    Enforcement::LetIn(purpose) => {
                        let load = match load {
                            Load::Counted(load) => load,
                            Load::Unasked | Load::Seen => {
                                admission::raise(slot, upstream, counters)
                            }
                        };
                        (load, purpose)
                    }
                }
            }
        };
        slot.full = false;
        Decision::Admit(slot.enter(upstream, load, purpose, now))
    }

    /// The response headers of an admitted request came.
    pub fn respond(&mut self, permit: &mut Permit, now: Instant) {
        self.registry.slot_mut(permit.upstream).answer(permit, now);
    }

    /// An admitted request ended: with its response's last byte, a reset, or its caller's departure.
    pub fn complete(
        &mut self,
        permit: Permit,
        outcome: Outcome,
        counters: &mut impl Counters,
        now: Instant,
    ) {
        let slot = self.registry.slot_mut(permit.upstream);
        if slot.leave(&permit, now) && permit.shared {
            counters.lower(permit.upstream, Counter::InFlight, 1);
        }
        let policy = self.config.policy(slot.rule);
        let Some(reason) = slot.learn(&permit, outcome, policy, now) else {
            return;
        };
        if policy.breaker().enabled() {
            // Closes the worker's own gate until the leader has heard of it.
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

    /// The upkeep that every worker does on every tick; alone, the control laws too.
    pub fn tick(&mut self, counters: &mut impl Counters, now: Instant) -> Events {
        for (id, slot) in self.registry.slots_mut() {
            let taken = slot.take_unloading(now);
            if taken > 0 && slot.shared {
                counters.lower(id, Counter::InFlight, u64::from(taken));
            }
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

    /// What this worker saw of the upstreams in use.
    pub fn slice(&mut self, now: Instant) -> Slice {
        let reported = self
            .registry
            .slots_mut()
            .filter(|(_, slot)| slot.is_reported(now));
        let reports = reported
            .map(|(_, slot)| slot.report(now).to_owned())
            .collect();
        Slice {
            worker: self.worker,
            at: now,
            reports,
        }
    }

    /// The bytes of [`Engine::slice`], without the copies: what [`Slice::decode`] reads.
    pub fn encode_slice(&mut self, now: Instant) -> Vec<u8> {
        let count = self
            .registry
            .slots()
            .filter(|(_, slot)| slot.is_reported(now))
            .count();
        let reported = self
            .registry
            .slots_mut()
            .filter(|(_, slot)| slot.is_reported(now));
        exchange::encode_slice(
            self.worker,
            now,
            count,
            reported.map(|(_, slot)| slot.report(now)),
        )
    }

    /// Leads: merges the slices of all workers, runs the control laws, and says what all shall follow. `None`
    /// until every live worker has reported anew. Only one worker of a proxy may lead at a time.
    pub fn decide(
        &mut self,
        slices: &[Slice],
        counters: &mut impl Counters,
        now: Instant,
    ) -> Option<(Directives, Events)> {
        let mut leader = self.leader.take().unwrap_or_else(|| Leader::new(now));
        let registry = &self.registry;
        let cap = usize::try_from(self.config.max_upstreams())
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let rounds = leader.merge(slices, cap, |hash| registry.directive(hash), now);
        let mut events = Events::new();
        for (hash, round) in rounds.iter().flatten() {
            let upstream = self.registry.upstream(
                &self.config,
                &round.key.cluster,
                round.key.route.as_deref(),
                now,
            );
            if round.is_active() {
                self.registry.slot_mut(upstream).last_led = now;
            }
            let around = Surroundings {
                policy: self.config.policy(self.registry.slot(upstream).rule),
                probes: counters
                    .value(upstream, Counter::Probes)
                    .unwrap_or_default(),
                dice: self.rng.f64(),
            };
            events.extend(
                leader
                    .decide(*hash, round, &around, now)
                    .map(|transition| event(upstream, transition)),
            );
        }
        let entries = leader.directives(false, now);
        self.leader = Some(leader);
        rounds.map(|_| {
            (
                Directives {
                    leader: self.worker,
                    at: now,
                    entries,
                },
                events,
            )
        })
    }

    /// Everything this leader knows, for VMs to come; empty when it leads nobody.
    #[must_use]
    pub fn learned(&self, now: Instant) -> Directives {
        let entries = self
            .leader
            .as_ref()
            .map(|leader| leader.directives(true, now))
            .unwrap_or_default();
        Directives {
            leader: self.worker,
            at: now,
            entries,
        }
    }

    /// Another worker leads now.
    pub fn resign(&mut self) {
        self.leader = None;
    }

    /// Follows what the leader decided; also how a fresh VM takes over what was learned.
    pub fn adopt(&mut self, directives: &Directives, now: Instant) {
        self.registry.adopt(&self.config, directives, now);
    }

    /// Another configuration. What was learned stays, as do requests in flight and open breakers.
    pub fn reconfigure(&mut self, config: Config, now: Instant) {
        self.config = config;
        self.registry.follow_config(&self.config, now);
    }

    /// [`crate::UpstreamKey::hash`] of an upstream's name. A handle passes from one upstream to another when the
    /// cap makes one go; this tells.
    #[must_use]
    pub fn hash(&self, upstream: UpstreamId) -> u64 {
        self.registry.slot(upstream).hash
    }

    /// Requests whose upstream had to share the state of all beyond the cap.
    #[must_use]
    pub const fn overflowed(&self) -> u64 {
        self.registry.overflowed()
    }

    /// Every upstream as it is now, in the order of its id, without copies: for metrics, on every tick.
    pub fn views(&self, now: Instant) -> impl Iterator<Item = UpstreamView<'_>> {
        self.registry.slots().map(move |(id, slot)| UpstreamView {
            id,
            key: &slot.key,
            hash: slot.hash,
            limit: slot.ladder.limit(),
            breaker: slot.gate.state().phase(now),
            learned: &slot.learned,
            tally: &slot.tally,
        })
    }

    /// Values at this instant.
    #[must_use]
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let upstreams = self.registry.slots().map(|(id, slot)| UpstreamSnapshot {
            id,
            key: slot.key.clone(),
            in_flight: slot.in_flight,
            streams: slot.streams,
            limit: slot.ladder.limit(),
            limit_reason: self
                .leader
                .as_ref()
                .and_then(|leader| leader.limit_reason(slot.hash)),
            breaker: slot.gate.state().phase(now),
            open_interval: Duration::from_millis(u64::from(slot.learned.open_interval_ms)),
            learned: slot.learned,
            tally: slot.tally.clone(),
        });
        Snapshot {
            upstreams: upstreams.collect(),
            overflowed: self.registry.overflowed(),
        }
    }
}

const fn event(upstream: UpstreamId, transition: Transition) -> Event {
    match transition {
        Transition::Trip(reason) => Event::Tripped { upstream, reason },
        Transition::Ramp => Event::Ramping { upstream },
        Transition::Reset => Event::Reset { upstream },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MINIMAL_EXAMPLE;
    use crate::counters::Unshared;
    use crate::request::Known;

    #[test]
    fn a_slice_is_the_same_with_and_without_copies() {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        let mut engine = Engine::of_many(config, Instant::ZERO, 7);
        for name in ["a", "b"] {
            let upstream = engine.upstream(name, None, Instant::ZERO);
            let Decision::Admit(permit) = engine.admit(
                upstream,
                &mut Known::default(),
                &mut Unshared,
                Instant::ZERO,
            ) else {
                panic!("a fresh upstream admits");
            };
            engine.complete(
                permit,
                Outcome::Success,
                &mut Unshared,
                Instant::from_nanos(5),
            );
        }
        let now = Instant::from_nanos(9);
        let slice = engine.slice(now);
        assert_eq!(
            slice.reports.len(),
            3,
            "the shared upstream was used just now too"
        );
        assert_eq!(engine.encode_slice(now), slice.encode());
        assert_eq!(Slice::decode(&slice.encode()), Ok(slice));
    }
}

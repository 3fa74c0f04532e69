//! The verbs of one request, from its admission to its end.

use super::{Decision, Engine};
use crate::admission::{self, Enforcement, LawDecision, LoadCheck};
use crate::breaker::BreakerState;
use crate::config::{Policy, Until};
use crate::counters::{Counter, Counters};
use crate::outcome::Outcome;
use crate::permit::{Permit, Purpose};
use crate::request::Request;
use crate::shed::Shed;
use crate::slot::Slot;
use crate::slot::in_flight::{AdmittedRequest, Shift};
use crate::time::Instant;
use crate::upstream::UpstreamId;

/// The random part of Retry-After, as a share of the wait, so that callers do not all return at once.
const RETRY_AFTER_JITTER: f64 = 0.5;

impl Engine {
    /// Decides whether to admit a request to `upstream`.
    pub fn admit(
        &mut self,
        upstream: UpstreamId,
        request: &mut impl Request,
        counters: &mut impl Counters,
        now: Instant,
    ) -> Decision {
        let (rule, slot) = self.registry.ruled_slot_mut(upstream);
        let policy = self.config.policy(rule);
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
            // Where handshakes are known, their time is the upstream's and not that of an upload without an end.
            has_body: request.has_body() && !(slot.sees_upgrades && request.is_upgrade()),
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
        let (rule, slot) = self.registry.ruled_slot_mut(permit.upstream);
        let policy = self.config.policy(rule);
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
        let (rule, slot) = self.registry.ruled_slot_mut(permit.upstream);
        let policy = self.config.policy(rule);
        if policy.slo().until() == Until::FirstByte && permit.is_answered() {
            measure(slot, policy, permit, counters, now);
        }
    }

    /// The response headers of an admitted request upgraded its connection, for example to a WebSocket. They are the whole answer,
    /// whatever moment the objective measures: what follows has no end to measure, and is no load.
    pub fn upgrade(&mut self, permit: &mut Permit, counters: &mut impl Counters, now: Instant) {
        self.respond(permit, Outcome::Success, counters, now);
        let (rule, slot) = self.registry.ruled_slot_mut(permit.upstream);
        measure(slot, self.config.policy(rule), permit, counters, now);
        slot.learn_upgrade(permit);
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
        let (rule, slot) = self.registry.ruled_slot_mut(permit.upstream);
        if outcome == Outcome::Success && permit.is_open() {
            // Most requests: what is left is that they end.
            slot.close(&permit);
            slot.learn_good_end(&permit, now);
            return;
        }
        let policy = self.config.policy(rule);
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
                .value(permit.upstream, Counter::Grants)
                .unwrap_or_default();
            let until = now + policy.breaker().min_open();
            let state = BreakerState::Open {
                until,
                probes: sent.saturating_add(1),
            };
            slot.gate.trip_locally(reason, state, now);
        }
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
pub(super) fn lower_shared(
    slot: &Slot,
    upstream: UpstreamId,
    by: u32,
    counters: &mut impl Counters,
) {
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

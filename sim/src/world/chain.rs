//! Requests of services that need other services.
//!
//! A request that has done its own work keeps its slot and makes its calls, one step after the other. Each call is a request
//! of its own, with a proxy, attempts and a deadline. When a call that it needs fails, no further step begins and the request
//! fails. A request whose caller is gone drops its calls where the service drops abandoned work.

use tidegate_core::Instant;

use super::call::{Attempt, AttemptPlace, SimCall};
use super::clock::START;
use super::reception::UpstreamReply;
use super::run::SimWorld;
use crate::arrivals::Arrival;
use crate::record::Answer;
use crate::rng;
use crate::scenario::{InnerClient, PassedOn, ServiceCall, UpstreamProfile};
use crate::score::WorkLedger;

/// The status of a request whose call has failed.
const DEPENDENCY_FAILED: u16 = 503;
/// `retry-after` in seconds of a request whose call was shed, where the service passes that on; its status is 503.
const RETRY_AFTER: u32 = 1;

impl SimWorld<'_> {
    /// Makes the next calls of a request. Returns whether it waits for any.
    pub(super) fn call_others(&mut self, id: usize) -> bool {
        loop {
            let Some(attempt) = self.attempts.get_mut(id) else {
                return false;
            };
            let Some(service) = self.scenario.upstreams.get(attempt.upstream) else {
                return false;
            };
            let from = attempt.calling.next_step;
            let later = service.calls.iter().map(|call| call.step);
            let Some(step) = later.filter(|step| *step >= from).min() else {
                return false;
            };
            attempt.calling.next_step = step.saturating_add(1);
            let is_too_late = service.passes.deadline && attempt.patient_until <= self.now;
            if is_too_late {
                attempt.reply = UpstreamReply::status(DEPENDENCY_FAILED, None);
                attempt.body = None;
                return false;
            }
            attempt.place = AttemptPlace::Calling;
            self.begin_step(id, service, step);
            let Some(attempt) = self.attempts.get_mut(id) else {
                return false;
            };
            if !attempt.calling.open.is_empty() {
                return true;
            }
            attempt.place = AttemptPlace::Slot;
        }
    }

    fn begin_step(&mut self, id: usize, service: &UpstreamProfile, step: u32) {
        let Some(attempt) = self.attempts.get(id).cloned() else {
            return;
        };
        let clients = self.scenario.clients.len();
        for (index, inner) in self.scenario.inner.iter().enumerate() {
            if inner.service != attempt.upstream {
                continue;
            }
            let Some(call) = made(service, inner, step) else {
                continue;
            };
            if rng::unit(&mut self.chance.calls) >= call.share {
                continue;
            }
            let arrival = self.passed_on(&attempt, clients + index, service.passes);
            let parent = self.calls.get(attempt.call);
            let child = self.calls.insert(SimCall {
                proxy: attempt.endpoint % self.proxies.len().max(1),
                caller: parent.map_or(0, |parent| parent.caller),
                cohort: parent.map_or(0, |parent| parent.cohort),
                parent: Some(id),
                is_optional: call.optional,
                until: service.passes.deadline.then_some(attempt.patient_until),
                ..SimCall::new(arrival)
            });
            self.open += 1;
            if let Some(attempt) = self.attempts.get_mut(id) {
                attempt.calling.open.push(child);
            }
            self.send(child);
        }
    }

    /// The call of a request as one that arrives now.
    fn passed_on(&self, attempt: &Attempt, client: usize, passes: PassedOn) -> Arrival {
        let caller = self.calls.get(attempt.call);
        let criticality = caller.and_then(|caller| caller.arrival.criticality.clone());
        Arrival {
            at: self.now.saturating_since(START),
            client,
            path: "/".into(),
            criticality: criticality.filter(|_| passes.criticality),
            upload: None,
            reads_for: None,
        }
    }

    /// A call has ended. If a request made it, the request continues when all its calls of the step have ended.
    pub(super) fn called(&mut self, id: usize) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let (Some(parent), Some(end)) = (call.parent, &call.end) else {
            return;
        };
        let is_missing = end.answer != Answer::Ok && !call.is_optional;
        let latest = call.latest.and_then(|latest| self.attempts.get(latest));
        let is_shed = matches!(end.answer, Answer::Shed(_))
            || matches!(end.answer, Answer::Failed(_))
                && latest.is_some_and(|latest| latest.reply.is_overload());
        let Some(attempt) = self.attempts.get_mut(parent) else {
            return;
        };
        attempt.calling.open.retain(|open| *open != id);
        if attempt.place != AttemptPlace::Calling {
            return;
        }
        let service = self.scenario.upstreams.get(attempt.upstream);
        let passes = service.map(|service| service.passes).unwrap_or_default();
        if is_missing {
            let retry_after = (is_shed && passes.sheds).then_some(RETRY_AFTER);
            attempt.reply = UpstreamReply::status(DEPENDENCY_FAILED, retry_after);
        }
        if !attempt.calling.open.is_empty() {
            return;
        }
        attempt.place = AttemptPlace::Slot;
        let has_failed = attempt.reply != UpstreamReply::Ok;
        if has_failed {
            attempt.body = None;
        }
        if has_failed || !self.call_others(parent) {
            self.respond(parent);
        }
    }

    /// A request that is dropped drops its calls.
    pub(super) fn drop_calls(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        for call in std::mem::take(&mut attempt.calling.open) {
            let latest = self.calls.get(call).and_then(|call| call.latest);
            if let Some(latest) = latest {
                self.abandon(latest);
            }
            self.conclude(call, Answer::GaveUp);
        }
    }

    /// The work for requests that arrived at their service since `from`.
    pub(super) fn work_since(&self, from: Instant) -> WorkLedger {
        let mut work = WorkLedger::default();
        for attempt in self.attempts.iter() {
            let service = self.scenario.upstreams.get(attempt.upstream);
            if let Some(service) = service.filter(|_| attempt.arrived_at >= from) {
                work.add(&service.name, attempt.work, self.is_of_use(attempt.call));
            }
        }
        work
    }

    /// Whether the caller at the beginning of the chain of a call got a response 200.
    fn is_of_use(&self, mut call: usize) -> bool {
        loop {
            let Some(found) = self.calls.get(call) else {
                return false;
            };
            let parent = found.parent.and_then(|parent| self.attempts.get(parent));
            match parent {
                Some(parent) => call = parent.call,
                None => {
                    return found
                        .end
                        .as_ref()
                        .is_some_and(|end| end.answer == Answer::Ok);
                }
            }
        }
    }
}

/// The call that this client of the service makes in a step; none in another step.
fn made<'a>(
    service: &'a UpstreamProfile,
    inner: &InnerClient,
    step: u32,
) -> Option<&'a ServiceCall> {
    let call = service.calls.get(inner.call)?;
    (call.step == step).then_some(call)
}

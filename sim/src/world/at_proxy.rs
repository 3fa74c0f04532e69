//! Events at a proxy: its contender decides, learns how requests end, ticks, and has faults injected.

use tidegate_core::{Criticality, Failure, Instant, Outcome};

use super::call::{Attempt, AttemptPlace, HeldByProxy, ProxyRefusal};
use super::event::WorldEvent;
use super::run::SimWorld;
use crate::arrivals::{Arrival, Sending};
use crate::contender::{Admission, Ask, Contender, Done};
use crate::fault::ProxyFault;
use crate::scenario::ClientProfile;

impl SimWorld<'_> {
    /// A request asks its proxy.
    pub(super) fn at_proxy(&mut self, id: usize) {
        let index = self.attempts.get(id).map(|attempt| attempt.call);
        let Some(client) = index.and_then(|call| self.client(call)) else {
            return;
        };
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (Some(call), Some(upstream)) = (
            self.calls.get_mut(attempt.call),
            self.upstreams.get(attempt.upstream),
        ) else {
            return;
        };
        let arrival = &call.arrival;
        let Some(proxy) = self.proxies.get_mut(call.proxy) else {
            return;
        };
        let Some(flight) = proxy.flights.get_mut(attempt.upstream) else {
            return;
        };
        let endpoints = upstream.in_rotation();
        let inner = arrival.client.checked_sub(self.scenario.clients.len());
        let inner = inner.and_then(|inner| self.scenario.inner.get(inner));
        let ask = Ask {
            request: number(id),
            worker: attempt.worker,
            upstream: attempt.upstream,
            service: inner.map(|inner| inner.service),
            path: &arrival.path,
            criticality: criticality(arrival),
            cohort: call.cohort,
            caller: client.cohort.as_deref(),
            agent: client.agent.as_deref(),
            time_left: client
                .tells_deadline
                .then(|| attempt.patient_until.saturating_since(self.now)),
            attempt: told(client, attempt.number),
            endpoints,
            in_flight: flight.in_flight,
            has_body: arrival.upload.is_some(),
        };
        self.ledger.ask();
        let caller = call.caller;
        if let Some(tally) = &mut self.tally {
            tally.ask(self.now, caller);
        }
        match proxy.contender.admit(&ask, self.now) {
            Admission::Shed { reason, is_final } => {
                attempt.verdict = ProxyRefusal::Shed { reason, is_final };
                call.sheds += 1;
                self.ledger.shed(id, attempt.upstream, reason);
                if let Some(tally) = &mut self.tally {
                    tally.shed(self.now, reason);
                }
                self.push_hop(WorldEvent::AnswerAtCaller { attempt: id });
            }
            Admission::Admit => {
                self.ledger.admit();
                if let Some(tally) = &mut self.tally {
                    tally.admit(self.now, caller);
                }
                let chance = &mut self.chance.balancing;
                let first = flight.choose(upstream.balancing, endpoints, chance);
                attempt.endpoint = claimed(
                    proxy.contender.as_mut(),
                    attempt.upstream,
                    (first, endpoints),
                    self.now,
                );
                attempt.in_flight_before = flight.enter(attempt.endpoint);
                attempt.admitted_at = self.now;
                attempt.at_proxy = HeldByProxy::Waiting;
                attempt.place = AttemptPlace::Coming;
                attempt.is_complete = arrival.upload.is_none();
                let upload = arrival.upload;
                self.held += 1;
                self.ledger.hold(self.held);
                let due =
                    self.push_hop_from(self.now, self.now, WorldEvent::AtUpstream { attempt: id });
                if let Some(attempt) = self.attempts.get_mut(id) {
                    attempt.upstream_due = due;
                }
                match upload {
                    Some(Sending::Takes(time)) => {
                        self.push_after(time, WorldEvent::UploadedAtProxy { attempt: id });
                    }
                    Some(Sending::Stalls) => {}
                    None => self.begin_timeout(id),
                }
            }
        }
    }

    pub(super) fn answer_at_proxy(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get(id) else {
            return;
        };
        if attempt.is_in_flight() {
            let outcome = attempt.outcome();
            self.hear_the_rest(id);
            self.complete(id, outcome);
            self.forward(id, WorldEvent::AnswerAtCaller { attempt: id });
        }
    }

    /// The proxy completes a request.
    pub(super) fn complete(&mut self, id: usize, outcome: Outcome) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let held = std::mem::take(&mut attempt.at_proxy);
        let Some(call) = self.calls.get(attempt.call) else {
            return;
        };
        let client = self.scenario.client(call.arrival.client);
        let Some(proxy) = self.proxies.get_mut(call.proxy) else {
            return;
        };
        let Some(flight) = proxy.flights.get_mut(attempt.upstream) else {
            return;
        };
        let done = Done {
            request: number(id),
            worker: attempt.worker,
            upstream: attempt.upstream,
            endpoint: u32::try_from(attempt.endpoint).unwrap_or(u32::MAX),
            outcome,
            is_answered: held == HeldByProxy::Answered,
            latency: self.now.saturating_since(attempt.admitted_at),
            waited: attempt.waited_until(self.now),
            in_flight_before: attempt.in_flight_before,
            in_flight: flight.leave(attempt.endpoint),
            criticality: criticality(&call.arrival),
            attempt: client.map_or(attempt.number, |client| told(client, attempt.number)),
        };
        proxy.contender.complete(&done, self.now);
        self.held -= 1;
    }

    pub(super) fn cancel_at_proxy(&mut self, id: usize) {
        if self.attempts.get(id).is_some_and(Attempt::is_in_flight) {
            self.complete(id, Outcome::Cancelled);
            self.cancel_upstream(id);
        }
    }

    /// The proxy cancels the request at the upstream. The cancellation does not overtake the request.
    fn cancel_upstream(&mut self, id: usize) {
        let due = self
            .attempts
            .get(id)
            .map_or(self.now, |one| one.upstream_due);
        self.push_hop_from(self.now, due, WorldEvent::CancelAtUpstream { attempt: id });
    }

    /// The request is complete: the timeout that its caller asked the proxy for starts now.
    pub(super) fn begin_timeout(&mut self, id: usize) {
        let call = self.attempts.get(id).map(|attempt| attempt.call);
        let client = call.and_then(|call| self.client(call));
        if let Some(time) = client.and_then(|client| client.timeout) {
            self.push_after(time, WorldEvent::TimedOut { attempt: id });
        }
    }

    pub(super) fn time_out(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if attempt.is_in_flight() {
            attempt.verdict = ProxyRefusal::TimedOut;
            self.complete(id, Outcome::Failure(Failure::Timeout));
            self.cancel_upstream(id);
            self.forward(id, WorldEvent::AnswerAtCaller { attempt: id });
        }
    }

    pub(super) fn tick(&mut self, index: usize) {
        let Some(proxy) = self.proxies.get_mut(index) else {
            return;
        };
        proxy.contender.tick(self.now);
        if let Some(every) = proxy.contender.tick_every() {
            self.push_after(every, WorldEvent::Tick { proxy: index });
        }
    }

    pub(super) fn inject(&mut self, index: usize) {
        let Some(incident) = self.scenario.incidents.get(index) else {
            return;
        };
        let only = incident.proxy.and_then(|proxy| usize::try_from(proxy).ok());
        let proxies = self.proxies.iter_mut().enumerate();
        for (_, proxy) in proxies.filter(|(index, _)| only.is_none_or(|only| only == *index)) {
            match incident.what {
                ProxyFault::ProxyLeaves => proxy.is_away = true,
                ProxyFault::ProxyJoins => proxy.is_away = false,
                _ => {}
            }
            proxy.contender.inject(incident.what, self.now);
        }
    }
}

/// The endpoint in rotation that the contender accepts: the balancer offers its first choice, then the next ones in turn,
/// and uses the first choice if the contender accepts none.
fn claimed(
    contender: &mut dyn Contender,
    upstream: usize,
    (first, count): (usize, u32),
    now: Instant,
) -> usize {
    let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
    let mut offers = (0..count).map(|offset| (first + offset) % count);
    let taken = offers.find(|offer| {
        let endpoint = u32::try_from(*offer).unwrap_or(u32::MAX);
        contender.claim(upstream, endpoint, now)
    });
    taken.unwrap_or(first)
}

/// The number of an attempt as its caller reports it.
fn told(client: &ClientProfile, number: u32) -> u32 {
    if client.retries.is_some_and(|retries| retries.untold) {
        1
    } else {
        number
    }
}

fn criticality(arrival: &Arrival) -> Criticality {
    let named = arrival.criticality.as_deref();
    named
        .and_then(Criticality::from_header)
        .unwrap_or(Criticality::Critical)
}

pub(super) fn number(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}

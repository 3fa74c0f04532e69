//! What happens at an upstream: requests come, get slots, leave; endpoints change.

use std::time::Duration;

use tidegate_core::Instant;

use super::call::{Attempt, AttemptPlace};
use super::clock::START;
use super::event::WorldEvent;
use super::reception::{Acceptance, Job, Reception, UpstreamReply};
use super::run::SimWorld;
use super::upstream::{Endpoint, SimUpstream};
use crate::contender::WorkBegun;

impl SimWorld<'_> {
    /// The headers of a request arrive.
    pub(super) fn at_upstream(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let Some(upstream) = self.upstreams.get_mut(attempt.upstream) else {
            return;
        };
        attempt.place = AttemptPlace::Nowhere;
        match upstream.accept(attempt.endpoint, id) {
            Acceptance::Accepted => {
                attempt.is_accepted = true;
                self.enter(id);
            }
            Acceptance::Wait => attempt.place = AttemptPlace::Backlog,
            Acceptance::Refused => {
                attempt.reply = UpstreamReply::Reset;
                self.push_hop(WorldEvent::AnswerAtProxy { attempt: id });
            }
        }
    }

    /// Receives an accepted request, or waits for its body.
    fn enter(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if attempt.is_complete {
            self.receive(id);
        } else if attempt.is_gone {
            self.let_go(id);
        } else {
            attempt.place = AttemptPlace::Uploading;
        }
    }

    /// A request is complete.
    pub(super) fn receive(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (Some(upstream), Some(call)) = (
            self.upstreams.get_mut(attempt.upstream),
            self.calls.get(attempt.call),
        ) else {
            return;
        };
        let arrival = &call.arrival;
        attempt.arrived_at = self.now;
        attempt.place = AttemptPlace::Nowhere;
        let is_serving = upstream.is_serving(attempt.endpoint);
        let quota = self.quotas.get_mut(arrival.client).and_then(Option::as_mut);
        let at = self.now.saturating_since(START);
        let is_over = is_serving && quota.is_some_and(|quota| !quota.take(at));
        let reception = if is_over {
            let client = self.scenario.client(arrival.client);
            Reception::Answer(UpstreamReply::over_quota(
                client.and_then(|client| client.quota),
            ))
        } else {
            upstream.receive(attempt.endpoint, id, &arrival.path)
        };
        let headers_first = upstream.sends_headers_first(attempt.endpoint);
        match reception {
            Reception::Silence if attempt.is_gone => self.let_go(id),
            Reception::Silence => self.fall_silent(id),
            Reception::Swallow if attempt.is_gone => self.let_go(id),
            Reception::Swallow => {}
            Reception::Wait => {
                attempt.place = AttemptPlace::Line;
                if headers_first {
                    self.send_headers_first(id);
                }
            }
            Reception::Start(job) => {
                if headers_first {
                    self.send_headers_first(id);
                }
                self.start(job);
            }
            Reception::Answer(reply) => {
                attempt.reply = reply;
                self.let_go(id);
                let from = self.after_pause(id);
                self.push_hop_from(from, from, WorldEvent::AnswerAtProxy { attempt: id });
            }
        }
    }

    pub(super) fn start(&mut self, job: Job) {
        if let Some(attempt) = self.attempts.get_mut(job.attempt) {
            attempt.place = AttemptPlace::Slot;
            attempt.delay = job.delay;
            attempt.body = job.body;
            let waited = self.now.saturating_since(attempt.arrived_at);
            attempt.waited = Some(waited);
            attempt.work += job.service;
            let (upstream, endpoint) = (attempt.upstream, attempt.endpoint);
            if self.is_watched {
                let begun = WorkBegun {
                    upstream,
                    waited,
                    work: job.service,
                    slots: self.upstreams.get(upstream).map_or(0, SimUpstream::slots),
                };
                for proxy in &mut self.proxies {
                    proxy.contender.begun(&begun, self.now);
                }
            }
            let at = self.progress(upstream, endpoint, self.now, job.service);
            let attempt = job.attempt;
            self.push(at, WorldEvent::Worked { attempt });
        }
    }

    /// A slot has done its work for a request, which may then need other services.
    pub(super) fn worked(&mut self, id: usize) {
        let is_in_slot = |attempt: &Attempt| attempt.place == AttemptPlace::Slot;
        if self.attempts.get(id).is_some_and(is_in_slot) && !self.call_others(id) {
            self.respond(id);
        }
    }

    /// A request that has all it needs gives its slot back and is answered.
    pub(super) fn respond(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (upstream, endpoint, delay) = (attempt.upstream, attempt.endpoint, attempt.delay);
        let service = self.upstreams.get(upstream);
        let is_limited = service.is_some_and(|service| service.limits_connections(endpoint));
        if !attempt.is_gone && (attempt.body.is_some() || (is_limited && !delay.is_zero())) {
            self.begin_body(id);
            return;
        }
        // There is no body, or the caller is gone and gets none.
        attempt.place = AttemptPlace::Nowhere;
        let due = attempt.proxy_due;
        self.release(upstream, endpoint);
        self.disconnect(id);
        self.push_hop_from(
            self.now + delay,
            due,
            WorldEvent::AnswerAtProxy { attempt: id },
        );
    }

    pub(super) fn release(&mut self, upstream: usize, endpoint: usize) {
        let next = self
            .endpoint_mut(upstream, endpoint)
            .and_then(Endpoint::release);
        if let Some(job) = next {
            self.start(job);
        }
    }

    /// Frees a connection, and accepts requests that wait for one.
    pub(super) fn disconnect(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get(id) else {
            return;
        };
        let (upstream, endpoint) = (attempt.upstream, attempt.endpoint);
        self.let_go(id);
        loop {
            let waiting = self.endpoint_mut(upstream, endpoint);
            let Some(next) = waiting.and_then(Endpoint::accept_next) else {
                return;
            };
            if let Some(attempt) = self.attempts.get_mut(next) {
                attempt.place = AttemptPlace::Nowhere;
                attempt.is_accepted = true;
            }
            self.enter(next);
        }
    }

    /// A request gives its connection back, where it has one.
    fn let_go(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut attempt.is_accepted) {
            let (upstream, endpoint) = (attempt.upstream, attempt.endpoint);
            if let Some(endpoint) = self.endpoint_mut(upstream, endpoint) {
                endpoint.disconnect();
            }
        }
    }

    pub(super) fn cancel_at_upstream(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get(id) else {
            return;
        };
        let (upstream, index) = (attempt.upstream, attempt.endpoint);
        let endpoint = self.endpoint_mut(upstream, index);
        let skips = endpoint.is_some_and(|endpoint| endpoint.skips_abandoned());
        self.drop_caller(id, skips);
    }

    /// The upstream learns that the caller of a request is gone. Waiting and sending end at once; work ends only where the
    /// upstream drops abandoned work.
    fn drop_caller(&mut self, id: usize, skips_work: bool) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        attempt.is_gone = true;
        let (upstream, index) = (attempt.upstream, attempt.endpoint);
        let place = attempt.place;
        let works = matches!(
            place,
            AttemptPlace::Backlog | AttemptPlace::Line | AttemptPlace::Slot | AttemptPlace::Calling
        );
        if !skips_work && works {
            return;
        }
        attempt.place = AttemptPlace::Nowhere;
        match place {
            AttemptPlace::Nowhere
            | AttemptPlace::Coming
            | AttemptPlace::Uploading
            | AttemptPlace::Sending { holds_slot: false } => {}
            AttemptPlace::Backlog | AttemptPlace::Line => {
                if let Some(endpoint) = self.endpoint_mut(upstream, index) {
                    endpoint.forget(id);
                }
            }
            AttemptPlace::Slot | AttemptPlace::Sending { holds_slot: true } => {
                self.release(upstream, index)
            }
            AttemptPlace::Calling => {
                self.release(upstream, index);
                self.drop_calls(id);
            }
        }
        self.disconnect(id);
    }

    pub(super) fn enter_stage(&mut self, upstream: usize, endpoint: usize) {
        let at = self.now.saturating_since(START);
        let Some(service) = self.upstreams.get_mut(upstream) else {
            return;
        };
        let (started, breaks) = service.enter_stage(endpoint, at);
        for job in started {
            self.start(job);
        }
        if breaks {
            self.break_connections(upstream, endpoint);
        }
    }

    /// Every request under way to an endpoint loses its connection.
    pub(super) fn break_connections(&mut self, upstream: usize, endpoint: usize) {
        let hit = |attempt: &Attempt| {
            attempt.is_in_flight() && attempt.upstream == upstream && attempt.endpoint == endpoint
        };
        let all = self.attempts.iter().enumerate();
        let lost: Vec<usize> = all
            .filter(|(_, attempt)| hit(attempt))
            .map(|(id, _)| id)
            .collect();
        for id in lost {
            if let Some(attempt) = self.attempts.get_mut(id) {
                attempt.reply = UpstreamReply::Reset;
            }
            self.drop_caller(id, false);
            self.push_hop(WorldEvent::AnswerAtProxy { attempt: id });
        }
    }

    /// When work of some length that begins at a moment is done at an endpoint, which may pause meanwhile.
    pub(super) fn progress(
        &self,
        upstream: usize,
        endpoint: usize,
        from: Instant,
        work: Duration,
    ) -> Instant {
        let endpoints = self.upstreams.get(upstream).map(|up| &up.endpoints);
        let endpoint = endpoints.and_then(|endpoints| endpoints.get(endpoint));
        match endpoint.and_then(Endpoint::pauses) {
            Some(clock) => START + clock.finish(from.saturating_since(START), work),
            None => from + work,
        }
    }

    /// Now, or when the endpoint of a request runs again.
    pub(super) fn after_pause(&self, id: usize) -> Instant {
        self.attempts.get(id).map_or(self.now, |attempt| {
            self.progress(attempt.upstream, attempt.endpoint, self.now, Duration::ZERO)
        })
    }

    fn endpoint_mut(&mut self, upstream: usize, endpoint: usize) -> Option<&mut Endpoint> {
        let upstream = self.upstreams.get_mut(upstream)?;
        upstream.endpoints.get_mut(endpoint)
    }
}

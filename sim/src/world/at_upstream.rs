//! What happens at an upstream: requests come, get slots, leave; endpoints change.

use super::call::{Attempt, Place};
use super::queue::What;
use super::run::{START, World};
use super::upstream::{Endpoint, Job, Reception, Reply};

impl World<'_> {
    pub(super) fn at_upstream(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (Some(upstream), Some(arrival)) = (
            self.upstreams.get_mut(attempt.upstream),
            self.arrivals.get(attempt.call),
        ) else {
            return;
        };
        attempt.arrived_at = self.now;
        match upstream.receive(attempt.endpoint, id, &arrival.path) {
            Reception::Swallow => {}
            Reception::Wait => attempt.place = Place::Line,
            Reception::Start(job) => self.start(job),
            Reception::Answer(reply) => {
                attempt.reply = reply;
                self.push_hop(What::AnswerAtProxy { attempt: id });
            }
        }
    }

    pub(super) fn start(&mut self, job: Job) {
        if let Some(attempt) = self.attempts.get_mut(job.attempt) {
            attempt.place = Place::Slot;
            attempt.delay = job.delay;
            attempt.waited = Some(self.now.saturating_since(attempt.arrived_at));
            let attempt = job.attempt;
            self.push_after(job.service, What::Worked { attempt });
        }
    }

    pub(super) fn worked(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut attempt.place) != Place::Slot {
            return;
        }
        let (upstream, endpoint, delay) = (attempt.upstream, attempt.endpoint, attempt.delay);
        self.release(upstream, endpoint);
        let at = self.now + delay + self.hop();
        self.queue.push(at, What::AnswerAtProxy { attempt: id });
    }

    pub(super) fn release(&mut self, upstream: usize, endpoint: usize) {
        let next = self
            .upstreams
            .get_mut(upstream)
            .and_then(|upstream| upstream.endpoints.get_mut(endpoint))
            .and_then(Endpoint::release);
        if let Some(job) = next {
            self.start(job);
        }
    }

    pub(super) fn cancel_at_upstream(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (upstream, index) = (attempt.upstream, attempt.endpoint);
        let endpoint = self
            .upstreams
            .get_mut(upstream)
            .and_then(|upstream| upstream.endpoints.get_mut(index));
        let Some(endpoint) = endpoint.filter(|endpoint| endpoint.skips_abandoned()) else {
            return;
        };
        match std::mem::take(&mut attempt.place) {
            Place::Nowhere => {}
            Place::Line => endpoint.forget(id),
            Place::Slot => self.release(upstream, index),
        }
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
            attempt.is_in_flight && attempt.upstream == upstream && attempt.endpoint == endpoint
        };
        let all = self.attempts.iter().enumerate();
        let lost: Vec<usize> = all
            .filter(|(_, attempt)| hit(attempt))
            .map(|(id, _)| id)
            .collect();
        for id in lost {
            if let Some(attempt) = self.attempts.get_mut(id) {
                attempt.reply = Reply::Reset;
            }
            self.push_hop(What::AnswerAtProxy { attempt: id });
        }
    }
}

//! What happens at a shard's endpoints.

use std::time::Duration;

use super::Shard;
use super::event::{EndpointAnswer, ShardEvent};
use super::held::Visit;
use super::place::{at_index, bin_at};
use crate::world::START;
use crate::world::reception::{Acceptance, Job, Reception, UpstreamReply};
use crate::world::upstream::Endpoint;

impl Shard<'_> {
    pub(super) fn at_endpoint(&mut self, endpoint: u32, visit: Visit) {
        if let Some(bin) = self.ledger.bins.get_mut(bin_at(self.now)) {
            bin.counts.received += 1;
        }
        let key = self.visits.insert(visit);
        if self.service.accept(at_index(endpoint), at_index(key.place)) == Acceptance::Refused {
            self.visits.remove(key);
            self.reply(visit, UpstreamReply::Reset, Duration::ZERO);
            return;
        }
        match self
            .service
            .receive(at_index(endpoint), at_index(key.place), "/")
        {
            Reception::Silence | Reception::Swallow => {
                self.visits.remove(key);
            }
            Reception::Wait => {}
            Reception::Start(job) => self.start(endpoint, job),
            Reception::Answer(reply) => {
                self.visits.remove(key);
                self.reply(visit, reply, Duration::ZERO);
            }
        }
    }

    pub(super) fn start(&mut self, endpoint: u32, job: Job) {
        let at = self.now + job.service;
        let visit = u32::try_from(job.attempt).unwrap_or(u32::MAX);
        let delay_us = u32::try_from(job.delay.as_micros()).unwrap_or(u32::MAX);
        self.queue.push(
            at,
            ShardEvent::Worked {
                endpoint,
                delay_us,
                visit,
            },
        );
    }

    pub(super) fn worked(&mut self, endpoint: u32, delay: Duration, visit: u32) {
        let slot = self.service.endpoints.get_mut(at_index(endpoint));
        if let Some(next) = slot.and_then(Endpoint::release) {
            self.start(endpoint, next);
        }
        if let Some(visit) = self.visits.remove_from(visit) {
            self.reply(visit, UpstreamReply::Ok, delay);
        }
    }

    pub(super) fn reply(&mut self, visit: Visit, reply: UpstreamReply, delay: Duration) {
        let answer = match reply {
            UpstreamReply::Ok => EndpointAnswer::Ok,
            UpstreamReply::Status { status, .. } => EndpointAnswer::Status(status),
            UpstreamReply::Reset => EndpointAnswer::Reset,
        };
        let ticket = visit.ticket;
        let at = self.now + delay + self.hop;
        self.send_at(at, visit.shard, ShardEvent::Answer { ticket, answer });
    }

    pub(super) fn enter_stage(&mut self, endpoint: u32) {
        let at = self.now.saturating_since(START);
        let (started, _) = self.service.enter_stage(at_index(endpoint), at);
        for job in started {
            self.start(endpoint, job);
        }
    }
}

//! What happens at a shard's proxies.

use tidegate_core::config::OverloadConfig;
use tidegate_core::{Failure, Outcome, ShedReason, classify};

use super::Shard;
use super::event::{EndpointAnswer, ShardEvent};
use super::held::HeldRequest;
use super::place::{TICK, at_index, bin_at, home};
use crate::fleet::slab::SlabTicket;

impl Shard<'_> {
    pub(super) fn at_proxy(&mut self, index: u32) {
        self.expect_next();
        let Some(caller) = self.callers.get_mut(at_index(index)) else {
            return;
        };
        caller.now.offered += 1;
        let proxy_index = caller.proxy;
        let Some(proxy) = self.proxies.get_mut(at_index(proxy_index)) else {
            return;
        };
        let endpoints = self.service.in_rotation();
        let known = if self.fleet.knows_endpoints {
            endpoints
        } else {
            0
        };
        let decision = proxy.admit(known, self.now);
        let bin = self.ledger.bins.get_mut(bin_at(self.now));
        let permit = match decision {
            Ok(permit) => permit,
            Err(shed) => {
                self.digest.feed(shed.reason as u64);
                if let Some(bin) = bin {
                    bin.counts.offered += 1;
                    match shed.reason {
                        ShedReason::BreakerOpen | ShedReason::BreakerHalfOpen => {
                            bin.counts.shed_by_breaker += 1;
                        }
                        ShedReason::Limit
                        | ShedReason::Criticality
                        | ShedReason::Retry
                        | ShedReason::Deadline
                        | ShedReason::MaxOpen => {
                            bin.counts.shed_by_limit += 1;
                        }
                    }
                }
                return;
            }
        };
        if let Some(bin) = bin {
            bin.counts.offered += 1;
            bin.counts.admitted += 1;
        }
        caller.now.admitted += 1;
        let balancing = self.service.balancing;
        let chosen = proxy
            .flight
            .choose(balancing, endpoints, &mut self.balancing);
        proxy.flight.enter(chosen);
        self.in_flight += 1;
        let endpoint = u32::try_from(chosen).unwrap_or(u32::MAX);
        let ticket = self.held.insert(HeldRequest {
            proxy: proxy_index,
            endpoint,
            permit,
        });
        // The caller's clock began one hop earlier, and its goodbye takes one.
        self.queue
            .push(self.now + self.deadline, ShardEvent::Cancel { ticket });
        let shard = self.index;
        self.send(
            home(endpoint),
            ShardEvent::AtEndpoint {
                endpoint,
                shard,
                ticket,
            },
        );
    }

    pub(super) fn answered(&mut self, ticket: SlabTicket, answer: EndpointAnswer) {
        let Some(held) = self.held.remove(ticket) else {
            return;
        };
        // From the caller's side: one hop to the proxy before, one from it after.
        let latency = self.now.saturating_since(held.permit.started_at()) + self.hop * 2;
        let outcome = match answer {
            EndpointAnswer::Ok => Outcome::Success,
            EndpointAnswer::Status(status) => {
                classify::http_answer(status, None, &OverloadConfig::default())
            }
            EndpointAnswer::Reset => Outcome::Failure(Failure::Connection),
        };
        self.complete(held, outcome);
        let Some(bin) = self.ledger.bins.get_mut(bin_at(self.now)) else {
            return;
        };
        match answer {
            _ if latency > self.deadline => bin.counts.gave_up += 1,
            EndpointAnswer::Ok => {
                bin.latency.record(latency);
                let counts = &mut bin.counts;
                if latency <= self.objective {
                    counts.good += 1;
                } else {
                    counts.late += 1;
                }
            }
            EndpointAnswer::Status(_) | EndpointAnswer::Reset => bin.counts.failed += 1,
        }
    }

    pub(super) fn cancelled(&mut self, ticket: SlabTicket) {
        if let Some(held) = self.held.remove(ticket) {
            self.complete(held, Outcome::Cancelled);
            if let Some(bin) = self.ledger.bins.get_mut(bin_at(self.now)) {
                bin.counts.gave_up += 1;
            }
        }
    }

    pub(super) fn complete(&mut self, held: HeldRequest, outcome: Outcome) {
        self.in_flight -= 1;
        if let Some(proxy) = self.proxies.get_mut(at_index(held.proxy)) {
            proxy.flight.leave(at_index(held.endpoint));
            proxy.complete(held.permit, outcome, self.now);
        }
    }

    pub(super) fn tick(&mut self, index: u32) {
        if let Some(proxy) = self.proxies.get_mut(at_index(index)) {
            let trips = proxy.tick(self.now);
            if let Some(bin) = self.ledger.bins.get_mut(bin_at(self.now)) {
                bin.counts.trips += trips;
            }
            self.queue
                .push(self.now + TICK, ShardEvent::Tick { proxy: index });
        }
    }
}

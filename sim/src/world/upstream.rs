//! The simulated upstream: endpoints with slots, a waiting line in front of them, and stages of their life.
//!
//! Errors, delay and service time of a request are decided when it is complete. A change of the service time affects only
//! later requests, as in the testbed's server.

use std::time::Duration;

pub(crate) use super::endpoint::Endpoint;
use super::endpoint::Life;
use super::reception::{Acceptance, Job, Reception};
use crate::profile::{Behaviour, HeaderTiming};
use crate::rng::Generator;
use crate::scenario::{Balancing, UpstreamProfile};

/// One service.
#[derive(Debug)]
pub(crate) struct SimUpstream {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) balancing: Balancing,
    whole: Life,
    rng: Generator,
    pub(crate) received: u64,
    pub(crate) received_while_down: u64,
}

impl SimUpstream {
    pub(crate) fn new(profile: &UpstreamProfile, rng: Generator) -> Self {
        let count = profile.max_endpoints();
        Self {
            endpoints: (0..count)
                .map(|index| Endpoint::new(profile.stages_of(index), (index, count)))
                .collect(),
            balancing: profile.balancing,
            whole: Life::new(profile.stages()),
            rng,
            received: 0,
            received_while_down: 0,
        }
    }

    /// Endpoints in rotation, at least 1.
    pub(crate) fn in_rotation(&self) -> u32 {
        self.whole.behaviour().map_or(1, |now| now.endpoints.max(1))
    }

    /// Slots of all endpoints in rotation.
    pub(crate) fn slots(&self) -> u32 {
        let count = usize::try_from(self.in_rotation()).unwrap_or(usize::MAX);
        let endpoints = self.endpoints.iter().take(count);
        let slots = endpoints.map(|one| one.behaviour().map_or(0, |now| now.slots));
        slots.sum()
    }

    /// A request arrives at an endpoint.
    pub(crate) fn accept(&mut self, endpoint: usize, attempt: usize) -> Acceptance {
        self.received += 1;
        self.received_while_down += u64::from(!self.whole.is_up());
        let endpoint = self.endpoints.get_mut(endpoint);
        endpoint.map_or(Acceptance::Refused, |endpoint| endpoint.accept(attempt))
    }

    /// A request for `path` is complete at an endpoint that has accepted it.
    pub(crate) fn receive(&mut self, endpoint: usize, attempt: usize, path: &str) -> Reception {
        match self.endpoints.get_mut(endpoint) {
            Some(endpoint) => endpoint.receive(attempt, path, &mut self.rng),
            None => Reception::Swallow,
        }
    }

    /// An endpoint enters the stage of `at`; returns the requests that get a slot, and whether the endpoint now breaks
    /// every connection.
    pub(crate) fn enter_stage(&mut self, endpoint: usize, at: Duration) -> (Vec<Job>, bool) {
        self.whole.follow(at);
        let Some(endpoint) = self.endpoints.get_mut(endpoint) else {
            return (Vec::new(), false);
        };
        let was_refusing = endpoint.is_refusing();
        endpoint.follow(at);
        let started = std::iter::from_fn(|| endpoint.start_next()).collect();
        (started, endpoint.is_refusing() && !was_refusing)
    }

    /// Whether an endpoint serves at all.
    pub(crate) fn is_serving(&self, endpoint: usize) -> bool {
        self.behaviour(endpoint).is_some_and(|now| now.mode.is_up())
    }

    /// Whether an endpoint sends headers before it works.
    pub(crate) fn sends_headers_first(&self, endpoint: usize) -> bool {
        let now = self.behaviour(endpoint);
        now.is_some_and(|now| now.headers == HeaderTiming::AtOnce)
    }

    /// Whether an endpoint limits connections.
    pub(crate) fn limits_connections(&self, endpoint: usize) -> bool {
        let now = self.behaviour(endpoint);
        now.is_some_and(|now| now.connections.is_some())
    }

    fn behaviour(&self, endpoint: usize) -> Option<&Behaviour> {
        self.endpoints.get(endpoint)?.behaviour()
    }

    /// Requests in slots and in lines.
    pub(crate) fn occupancy(&self) -> (u64, u64) {
        let count = |len| u64::try_from(len).unwrap_or(u64::MAX);
        self.endpoints.iter().fold((0, 0), |(busy, waiting), e| {
            (busy + u64::from(e.busy()), waiting + count(e.waiting()))
        })
    }
}

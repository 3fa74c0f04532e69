//! A proxy: its contender, what it has in flight, and its balancer.

use crate::contender::Contender;
use crate::rng::{self, Generator};
use crate::scenario::Balancing;

/// One proxy.
pub(crate) struct SimProxy {
    pub(crate) contender: Box<dyn Contender>,
    /// What it has in flight, by upstream.
    pub(crate) flights: Vec<Flight>,
    /// Admitted requests that got a good answer.
    pub(crate) good: u64,
    /// It gets no more requests.
    pub(crate) is_away: bool,
}

/// What a proxy has in flight to one upstream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flight {
    pub(crate) in_flight: u32,
    by_endpoint: Vec<u32>,
    turn: usize,
}

impl Flight {
    /// Nothing yet; round robin begins at `turn`, so that many proxies do not begin at the same endpoint.
    pub(crate) fn new(endpoints: usize, turn: usize) -> Self {
        Self {
            in_flight: 0,
            by_endpoint: vec![0; endpoints],
            turn,
        }
    }

    /// Chooses one of `count` endpoints.
    pub(crate) fn choose(
        &mut self,
        balancing: Balancing,
        count: u32,
        rng: &mut Generator,
    ) -> usize {
        let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
        match balancing {
            Balancing::RoundRobin => {
                self.turn = self.turn.wrapping_add(1);
                self.turn % count
            }
            Balancing::Random => rng::index(rng, count),
            Balancing::LeastRequest => {
                let (one, other) = (rng::index(rng, count), rng::index(rng, count));
                let load = |index: usize| self.by_endpoint.get(index).copied().unwrap_or(0);
                if load(other) < load(one) { other } else { one }
            }
        }
    }

    /// Counts one more; returns the new count.
    pub(crate) fn enter(&mut self, endpoint: usize) -> u32 {
        if let Some(count) = self.by_endpoint.get_mut(endpoint) {
            *count += 1;
        }
        self.in_flight += 1;
        self.in_flight
    }

    /// Counts one less; returns the count before.
    pub(crate) fn leave(&mut self, endpoint: usize) -> u32 {
        if let Some(count) = self.by_endpoint.get_mut(endpoint) {
            *count = count.saturating_sub(1);
        }
        let before = self.in_flight;
        self.in_flight = before.saturating_sub(1);
        before
    }
}

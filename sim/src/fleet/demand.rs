//! When the callers of one shard send, and which of them.
//!
//! Many independent Poisson streams are one, of the sum of their rates, whose events belong to each with a chance in
//! proportion to its rate. So one stream is drawn for all callers of a shard, by time warping as in
//! [`crate::arrivals`].

use std::time::Duration;

use crate::arrivals;
use crate::rng::{self, Generator};
use crate::scenario::{ClientProfile, Scenario};

/// The rate is taken as constant within steps of this length.
const STEP_NS: u64 = 1_000_000;

/// The arrivals of a shard, drawn one after the other.
#[derive(Debug)]
pub(super) struct ArrivalStream<'a> {
    client: Option<&'a ClientProfile>,
    capacity: f64,
    /// The part of all requests that these callers send, 0..=1.
    share: f64,
    light: Vec<usize>,
    heavy: Vec<usize>,
    /// The chance that a request is of a heavy caller.
    heavy_chance: f64,
    end_ns: u64,
    step_ns: u64,
    /// What is left of the step under way, in requests expected.
    left: f64,
    whole: f64,
    until_next: f64,
    rng: Generator,
}

/// The callers that send, by their indexes.
#[derive(Debug, Default)]
pub(super) struct Senders {
    pub(super) light: Vec<usize>,
    pub(super) heavy: Vec<usize>,
    /// How many times as much a heavy one sends.
    pub(super) times: u32,
    /// The weight of all callers of the fleet, a light one being 1.
    pub(super) of_weight: f64,
}

impl<'a> ArrivalStream<'a> {
    pub(super) fn new(scenario: &'a Scenario, senders: Senders, mut rng: Generator) -> Self {
        let client = scenario.clients.first();
        let heavy_weight = crate::number::float_len(senders.heavy.len()) * f64::from(senders.times);
        let weight = crate::number::float_len(senders.light.len()) + heavy_weight;
        let until_next = rng::exponential(&mut rng);
        let mut this = Self {
            client,
            capacity: client.map_or(0.0, |client| scenario.capacity_for(client)),
            share: weight / senders.of_weight.max(1.0),
            light: senders.light,
            heavy: senders.heavy,
            heavy_chance: if weight > 0.0 {
                heavy_weight / weight
            } else {
                0.0
            },
            end_ns: u64::try_from(scenario.duration.as_nanos()).unwrap_or(u64::MAX),
            step_ns: 0,
            left: 0.0,
            whole: 0.0,
            until_next,
            rng,
        };
        this.enter_step(0);
        this
    }

    fn enter_step(&mut self, step_ns: u64) {
        self.step_ns = step_ns;
        let at = Duration::from_nanos(step_ns);
        let rate = self
            .client
            .map_or(0.0, |client| arrivals::rate_at(client, self.capacity, at));
        self.whole = rate * self.share * Duration::from_nanos(STEP_NS).as_secs_f64();
        self.left = self.whole;
    }

    /// When the next request is sent, from the start of the run, and by which caller; none at the end of the story.
    pub(super) fn next(&mut self) -> Option<(Duration, usize)> {
        while self.whole <= 0.0 || self.until_next > self.left {
            self.until_next -= self.left;
            if self.step_ns + STEP_NS >= self.end_ns {
                return None;
            }
            self.enter_step(self.step_ns + STEP_NS);
        }
        self.left -= self.until_next;
        self.until_next = rng::exponential(&mut self.rng);
        let within = ((self.whole - self.left) / self.whole).clamp(0.0, 1.0);
        let at = Duration::from_nanos(self.step_ns) + Duration::from_nanos(STEP_NS).mul_f64(within);
        let is_heavy = !self.heavy.is_empty() && rng::unit(&mut self.rng) < self.heavy_chance;
        let class = if is_heavy { &self.heavy } else { &self.light };
        let caller = class.get(rng::index(&mut self.rng, class.len())).copied();
        Some((at, caller.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{FleetSize, FleetStory, FleetTopology};
    use crate::rng::{RngPurpose, generator};

    #[test]
    fn a_shard_sends_its_part_and_heavy_callers_theirs() {
        let size = FleetSize {
            callers: 40,
            rps: 4_000.0,
            endpoints: 4,
            seconds: 12,
            seed: 5,
        };
        let fleet = FleetStory::Steady.fleet(&size, FleetTopology::Sidecars);
        // Half of 40 callers; 2 of these 20 weigh ten times as much: 38 of 76.
        let senders = Senders {
            light: (0..18).collect(),
            heavy: vec![18, 19],
            times: 10,
            of_weight: 76.0,
        };
        let mut demand =
            ArrivalStream::new(&fleet.scenario, senders, generator(5, RngPurpose::Fleet(0)));
        let (mut all, mut heavy) = (0_u32, 0_u32);
        while let Some((at, caller)) = demand.next() {
            assert!(at <= Duration::from_secs(12) && caller < 20);
            all += 1;
            heavy += u32::from(caller >= 18);
        }
        // 24,000 expected, standard deviation 155; 20 of 38 of them heavy, 77.
        assert!((23_400..24_600).contains(&all), "{all}");
        let share = f64::from(heavy) / f64::from(all);
        assert!((share - 20.0 / 38.0).abs() < 0.015, "{share}");
    }
}

//! One proxy of a fleet: an engine that serves it alone, driven as the filter drives it.

use tidegate_core::config::Config;
use tidegate_core::{
    BreakerPhase, Counter, Counters, Decision, Engine, Event, GivenRequest, Instant, Outcome,
    Permit, Shed, UpstreamId,
};

use crate::world::proxy::Flight;

/// One proxy.
#[derive(Debug)]
pub(super) struct FleetProxy {
    engine: Engine,
    upstream: UpstreamId,
    counts: ServiceCounts,
    pub(super) flight: Flight,
}

/// The counts of the one service, as the gauges of a real proxy.
#[derive(Debug, Default)]
struct ServiceCounts {
    in_flight: u64,
    probes: u64,
}

impl ServiceCounts {
    const fn of(&mut self, counter: Counter) -> &mut u64 {
        match counter {
            Counter::InFlight => &mut self.in_flight,
            Counter::Probes => &mut self.probes,
        }
    }
}

impl Counters for ServiceCounts {
    fn raise(&mut self, _: UpstreamId, counter: Counter) -> Option<u64> {
        let count = self.of(counter);
        *count = count.wrapping_add(1);
        Some(*count)
    }

    fn lower(&mut self, _: UpstreamId, counter: Counter, by: u64) {
        let count = self.of(counter);
        *count = count.wrapping_sub(by);
    }

    fn value(&mut self, _: UpstreamId, counter: Counter) -> Option<u64> {
        Some(*self.of(counter))
    }
}

/// A sample of a proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) limit: u32,
    pub(super) breaker: BreakerPhase,
}

impl FleetProxy {
    pub(super) fn new(config: Config, name: &str, seed: u64, flight: Flight, now: Instant) -> Self {
        let mut engine = Engine::new(config, now, seed);
        let upstream = engine.upstream(name, None, now);
        Self {
            engine,
            upstream,
            counts: ServiceCounts::default(),
            flight,
        }
    }

    /// Asks for one request; `endpoints` is 0 where the proxy does not know how many there are.
    pub(super) fn admit(&mut self, endpoints: u32, now: Instant) -> Result<Permit, Shed> {
        self.engine.set_endpoints(self.upstream, endpoints);
        let mut request = GivenRequest::default();
        let decision = self
            .engine
            .admit(self.upstream, &mut request, &mut self.counts, now);
        match decision {
            Decision::Admit(permit) => Ok(permit),
            Decision::Shed(shed) => Err(shed),
        }
    }

    /// A request has ended.
    pub(super) fn complete(&mut self, mut permit: Permit, outcome: Outcome, now: Instant) {
        if outcome != Outcome::Cancelled {
            let counts = &mut self.counts;
            self.engine.respond(&mut permit, outcome, counts, now);
        }
        self.engine.complete(permit, outcome, &mut self.counts, now);
    }

    /// One tick; returns how often the breaker tripped.
    pub(super) fn tick(&mut self, now: Instant) -> u64 {
        let events = self.engine.tick(&mut self.counts, now);
        let trips = events
            .iter()
            .filter(|event| matches!(event, Event::Tripped { .. }));
        trips.map(|_| 1).sum()
    }

    pub(super) fn look(&self, now: Instant) -> Option<Look> {
        let mut views = self.engine.views(now);
        let view = views.find(|view| view.id == self.upstream)?;
        Some(Look {
            limit: view.limit,
            breaker: view.breaker,
        })
    }

    /// What the engine counts as in flight; not 0 after the end is a leak.
    pub(super) const fn in_flight(&self) -> u64 {
        self.counts.in_flight
    }
}

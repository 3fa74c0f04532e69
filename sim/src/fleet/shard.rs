//! A shard: a fixed part of the proxies, callers and endpoints, which plays alone until it receives the messages of others.
//!
//! A proxy's callers are in its shard; its requests go to endpoints of any shard, and answers come back. Each shard
//! has random streams and an order of events of its own.

mod accounts;
mod at_endpoint;
mod at_proxy;
mod callers;
mod event;
mod held;
mod place;

use std::time::Duration;

use tidegate_core::Instant;
use tidegate_core::config::Config;

use self::callers::{FleetCaller, callers};
use self::event::ShardEvent;
use self::held::{HeldRequest, Visit};
use self::place::{TICK, at_index, home};
use super::demand::ArrivalStream;
use super::ledger::{BIN_NS, ShardLedger};
use super::plan::Fleet;
use super::proxy::FleetProxy;
use super::slab::Slab;
use super::wheel::Wheel;
use crate::digest::Digest;
use crate::rng::{self, Generator, RngPurpose};
use crate::scenario::UpstreamProfile;
use crate::world::START;
use crate::world::proxy::Flight;
use crate::world::upstream::SimUpstream;

pub(super) use self::event::Message;
pub(super) use self::place::SHARDS;

/// One shard.
pub(super) struct Shard<'a> {
    fleet: &'a Fleet,
    index: u32,
    now: Instant,
    queue: Wheel<ShardEvent>,
    demand: ArrivalStream<'a>,
    callers: Vec<FleetCaller>,
    proxies: Vec<FleetProxy>,
    held: Slab<HeldRequest>,
    visits: Slab<Visit>,
    /// All endpoints, of which only its own are visited.
    service: SimUpstream,
    balancing: Generator,
    hop: Duration,
    deadline: Duration,
    objective: Duration,
    in_flight: u64,
    ledger: ShardLedger,
    digest: Digest,
    events: u64,
    outbox: Vec<Vec<Message>>,
}

impl<'a> Shard<'a> {
    /// A shard at the start. `seeds` has one for each proxy of the fleet.
    pub(super) fn new(
        fleet: &'a Fleet,
        index: u32,
        config: &Config,
        seeds: &[u64],
    ) -> Option<Self> {
        let scenario = &fleet.scenario;
        let profile = scenario.upstreams.first()?;
        let client = scenario.clients.first()?;
        let chance =
            |purpose| rng::generator(scenario.seed, RngPurpose::Fleet(index * 4 + purpose));
        let endpoints = at_index(profile.max_endpoints());
        let own = seeds.iter().enumerate().zip(0..);
        let proxies = own
            .filter(|(_, number)| home(*number) == index)
            .map(|((place, seed), _)| {
                let flight = Flight::new(endpoints, place);
                FleetProxy::new(config.clone(), &profile.name, *seed, flight, START)
            });
        let proxies: Vec<FleetProxy> = proxies.collect();
        let (callers, senders) = callers(fleet, index);
        let bins = usize::try_from(scenario.duration.as_nanos() / u128::from(BIN_NS)).unwrap_or(0);
        let mut this = Self {
            fleet,
            index,
            now: START,
            queue: Wheel::new(START),
            demand: ArrivalStream::new(scenario, senders, chance(0)),
            callers,
            proxies,
            held: Slab::default(),
            visits: Slab::default(),
            service: SimUpstream::new(profile, chance(1)),
            balancing: chance(2),
            hop: scenario.network.unwrap_or_default().delay,
            deadline: client.deadline,
            objective: scenario.slo.latency,
            in_flight: 0,
            ledger: ShardLedger::new(bins, fleet.phases.len()),
            digest: Digest::default(),
            events: 0,
            outbox: (0..SHARDS).map(|_| Vec::new()).collect(),
        };
        this.set_the_stage(profile);
        Some(this)
    }

    fn set_the_stage(&mut self, profile: &UpstreamProfile) {
        for endpoint in 0..profile.max_endpoints() {
            // Every shard follows the rotation, by endpoint 0 at least.
            if home(endpoint) == self.index || endpoint == 0 {
                for (at, _) in profile.stages_of(endpoint).into_iter().skip(1) {
                    self.queue.push(START + at, ShardEvent::Stage { endpoint });
                }
            }
        }
        let fleet = self.fleet.proxies();
        for proxy in (0..).take(self.proxies.len()) {
            // Proxies do not tick in step.
            let number = proxy * SHARDS + self.index;
            let first = TICK.mul_f64(f64::from(number + 1) / f64::from(fleet + 1));
            self.queue.push(START + first, ShardEvent::Tick { proxy });
        }
        for bin in (0..).take(self.ledger.bins.len()) {
            let end = Duration::from_nanos(BIN_NS * (u64::from(bin) + 1));
            self.queue.push(START + end, ShardEvent::Look { bin });
        }
        self.expect_next();
    }

    fn expect_next(&mut self) {
        if let Some((at, caller)) = self.demand.next() {
            let caller = u32::try_from(caller).unwrap_or(u32::MAX);
            let at = START + at + self.hop;
            self.queue.push(at, ShardEvent::AtProxy { caller });
        }
    }

    /// Receives what a shard sent in the window before.
    pub(super) fn hear(&mut self, messages: &mut Vec<Message>) {
        for Message { at, what } in messages.drain(..) {
            self.queue.push(at, what);
        }
    }

    /// Its messages to another shard, for the caller to take.
    pub(super) fn sent_to(&mut self, shard: usize) -> Option<&mut Vec<Message>> {
        self.outbox.get_mut(shard)
    }

    /// Plays on until `end`.
    pub(super) fn play_until(&mut self, end: Instant) {
        while let Some((at, what)) = self.queue.pop_before(end) {
            self.now = at;
            self.events += 1;
            self.digest.feed(at.as_nanos());
            self.digest.feed(what.code());
            self.handle(what);
        }
    }

    fn handle(&mut self, what: ShardEvent) {
        match what {
            ShardEvent::AtProxy { caller } => self.at_proxy(caller),
            ShardEvent::AtEndpoint {
                endpoint,
                shard,
                ticket,
            } => self.at_endpoint(endpoint, Visit { shard, ticket }),
            ShardEvent::Worked {
                endpoint,
                delay_us,
                visit,
            } => self.worked(endpoint, Duration::from_micros(u64::from(delay_us)), visit),
            ShardEvent::Answer { ticket, answer } => self.answered(ticket, answer),
            ShardEvent::Cancel { ticket } => self.cancelled(ticket),
            ShardEvent::Tick { proxy } => self.tick(proxy),
            ShardEvent::Stage { endpoint } => self.enter_stage(endpoint),
            ShardEvent::Look { bin } => self.look(bin),
        }
    }

    fn send(&mut self, shard: u32, what: ShardEvent) {
        let at = self.now + self.hop;
        self.send_at(at, shard, what);
    }

    fn send_at(&mut self, at: Instant, shard: u32, what: ShardEvent) {
        if let Some(outbox) = self.outbox.get_mut(at_index(shard)) {
            outbox.push(Message { at, what });
        }
    }

    /// Its record, its digest, and its number of events.
    pub(super) fn into_ledger(mut self) -> (ShardLedger, Digest, u64) {
        let believed: u64 = self.proxies.iter().map(FleetProxy::in_flight).sum();
        self.ledger.leaked = believed.abs_diff(self.in_flight);
        (self.ledger, self.digest, self.events)
    }
}

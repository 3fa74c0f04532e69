//! The run: its state, its beginning, and which event goes where.

use std::time::Duration;

use tidegate_core::{Instant, UpstreamKey};

use super::call::{Attempt, SimCall};
use super::ledger::Ledger;
use super::proxy::{Flight, SimProxy};
use super::queue::{Queue, WorldEvent};
use super::upstream::SimUpstream;
use crate::arrivals::{self, Arrival};
use crate::contender::{ContenderError, Made};
use crate::rng::{self, Generator, RngPurpose};
use crate::scenario::{ClientProfile, Network, Scenario, TokenBucket};

/// The run begins at this instant of the contenders' clock, because no proxy's clock begins with it.
pub const START: Instant = Instant::from_nanos(1_000_000_000);

pub(super) struct SimWorld<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) now: Instant,
    pub(super) queue: Queue,
    pub(super) arrivals: Vec<Arrival>,
    /// The upstream of each client, those that are services included.
    pub(super) targets: Vec<usize>,
    /// Requests of callers first, as many as `roots`, then those of services.
    pub(super) calls: Vec<SimCall>,
    pub(super) roots: usize,
    pub(super) attempts: Vec<Attempt>,
    pub(super) proxies: Vec<SimProxy>,
    pub(super) upstreams: Vec<SimUpstream>,
    /// What is left of each client's quota; none where it has none.
    pub(super) quotas: Vec<Option<TokenBucket>>,
    network: Network,
    pub(super) chance: Chance,
    pub(super) ledger: Ledger,
    /// Calls that have not ended.
    pub(super) open: usize,
    /// Requests that proxies hold.
    pub(super) held: u64,
}

/// One stream of random numbers for each purpose.
pub(super) struct Chance {
    pub(super) placement: Generator,
    pub(super) network: Generator,
    pub(super) backoff: Generator,
    pub(super) balancing: Generator,
    pub(super) calls: Generator,
}

impl<'a> SimWorld<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        make: &dyn Fn(&Scenario, u64) -> Made,
    ) -> Result<Self, ContenderError> {
        let generator = |purpose| rng::generator(scenario.seed, purpose);
        let upstreams: Vec<SimUpstream> = (0..)
            .zip(&scenario.upstreams)
            .map(|(index, profile)| {
                SimUpstream::new(profile, generator(RngPurpose::Upstream(index)))
            })
            .collect();
        let mut seeds = generator(RngPurpose::Contender);
        let mut proxies = Vec::new();
        for index in 0..usize::try_from(scenario.proxies).unwrap_or(usize::MAX) {
            let flights = upstreams
                .iter()
                .map(|upstream| Flight::new(upstream.endpoints.len(), index));
            proxies.push(SimProxy {
                contender: make(scenario, rand::Rng::random(&mut seeds))?,
                flights: flights.collect(),
                good: 0,
                is_away: false,
            });
        }
        let target = |client: &ClientProfile| {
            let mut profiles = scenario.upstreams.iter();
            profiles.position(|profile| profile.name == client.upstream)
        };
        let inner = scenario.inner.iter().map(|client| &client.profile);
        let clients = scenario.clients.iter().chain(inner);
        let arrivals = arrivals::schedule(scenario);
        Ok(Self {
            scenario,
            now: START,
            queue: Queue::default(),
            targets: clients
                .map(|client| target(client).unwrap_or(usize::MAX))
                .collect(),
            roots: arrivals.len(),
            calls: vec![SimCall::default(); arrivals.len()],
            attempts: Vec::with_capacity(arrivals.len()),
            proxies,
            upstreams,
            quotas: scenario
                .clients
                .iter()
                .map(|client| client.quota.map(|quota| quota.bucket()))
                .collect(),
            network: scenario.network.unwrap_or_default(),
            chance: Chance {
                placement: generator(RngPurpose::Placement),
                network: generator(RngPurpose::Network),
                backoff: generator(RngPurpose::Backoff),
                balancing: generator(RngPurpose::Balancing),
                calls: generator(RngPurpose::Calls),
            },
            ledger: Ledger::default(),
            open: arrivals.len(),
            held: 0,
            arrivals,
        })
    }

    pub(super) fn play(&mut self) {
        self.set_the_stage();
        let end = START + self.scenario.duration;
        while let Some((at, what)) = self.queue.pop() {
            if at > end && self.open == 0 && self.held == 0 {
                break;
            }
            self.now = at;
            self.ledger.hear(at, what);
            self.handle(what);
        }
        self.note();
    }

    fn set_the_stage(&mut self) {
        for (upstream, profile) in self.scenario.upstreams.iter().enumerate() {
            for (endpoint, index) in (0..profile.max_endpoints()).enumerate() {
                for (at, _) in profile.stages_of(index).into_iter().skip(1) {
                    self.queue
                        .push(START + at, WorldEvent::Stage { upstream, endpoint });
                }
            }
        }
        for (index, incident) in self.scenario.incidents.iter().enumerate() {
            self.queue
                .push(START + incident.at, WorldEvent::Incident { index });
        }
        let count = self.scenario.proxies;
        for (proxy, index) in (0..self.proxies.len()).zip(0..count) {
            let contender = self.proxies.get(proxy).map(|proxy| &proxy.contender);
            if let Some(every) = contender.and_then(|contender| contender.tick_every()) {
                // Proxies do not tick in step.
                let first = every.mul_f64(f64::from(index + 1) / f64::from(count + 1));
                self.queue.push(START + first, WorldEvent::Tick { proxy });
            }
        }
        self.queue.push(START, WorldEvent::Sample);
        self.push_due(0);
    }

    fn push_due(&mut self, call: usize) {
        if call < self.roots
            && let Some(arrival) = self.arrivals.get(call)
        {
            self.queue
                .push(START + arrival.at, WorldEvent::Due { call });
        }
    }

    fn handle(&mut self, what: WorldEvent) {
        match what {
            WorldEvent::Due { call } => {
                self.push_due(call + 1);
                let named = self.client(call).and_then(|client| client.cohort.as_ref());
                let proxy = self.place();
                let callers = &mut self.chance.placement;
                if let Some(entry) = self.calls.get_mut(call) {
                    entry.proxy = proxy;
                    entry.cohort = rand::Rng::random(callers);
                    if let Some(name) = named {
                        entry.cohort = UpstreamKey::hash(name, None);
                    }
                }
                self.send(call);
            }
            WorldEvent::Again { call } => self.send(call),
            WorldEvent::AtProxy { attempt } => self.at_proxy(attempt),
            WorldEvent::AtUpstream { attempt } => self.at_upstream(attempt),
            WorldEvent::UploadedAtProxy { attempt } => self.uploaded_at_proxy(attempt),
            WorldEvent::UploadedAtUpstream { attempt } => self.uploaded_at_upstream(attempt),
            WorldEvent::Worked { attempt } => self.worked(attempt),
            WorldEvent::Sent { attempt } => self.sent(attempt),
            WorldEvent::HeadersAtProxy { attempt } => self.headers_at_proxy(attempt),
            WorldEvent::FirstByteAtProxy { attempt } => self.first_byte_at_proxy(attempt),
            WorldEvent::MomentAtCaller { attempt } => self.moment_at_caller(attempt),
            WorldEvent::ReadEnough { attempt } => self.read_enough(attempt),
            WorldEvent::AnswerAtProxy { attempt } => self.answer_at_proxy(attempt),
            WorldEvent::AnswerAtCaller { attempt } => self.answer_at_caller(attempt),
            WorldEvent::TimedOut { attempt } => self.time_out(attempt),
            WorldEvent::GiveUp { attempt } => self.give_up(attempt),
            WorldEvent::CancelAtProxy { attempt } => self.cancel_at_proxy(attempt),
            WorldEvent::CancelAtUpstream { attempt } => self.cancel_at_upstream(attempt),
            WorldEvent::Stage { upstream, endpoint } => self.enter_stage(upstream, endpoint),
            WorldEvent::Tick { proxy } => self.tick(proxy),
            WorldEvent::Incident { index } => self.inject(index),
            WorldEvent::Sample => self.sample(),
        }
    }

    /// The proxy of a new caller: one of those present, or any if none is present.
    fn place(&mut self) -> usize {
        let proxies = self.proxies.iter().enumerate();
        let present = proxies.filter(|(_, proxy)| !proxy.is_away);
        let present: Vec<usize> = present.map(|(index, _)| index).collect();
        let count = if present.is_empty() {
            self.proxies.len()
        } else {
            present.len()
        };
        let drawn = rng::index(&mut self.chance.placement, count);
        present.get(drawn).copied().unwrap_or(drawn)
    }

    /// How long a message takes for one hop.
    pub(super) fn hop(&mut self) -> Duration {
        let Network { delay, jitter } = self.network;
        delay + jitter.mul_f64(rng::unit(&mut self.chance.network))
    }

    pub(super) fn push_hop(&mut self, what: WorldEvent) {
        let at = self.now + self.hop();
        self.queue.push(at, what);
    }

    /// As [`Self::push_hop`], but not before `due`: messages on one connection do not overtake each other. Returns
    /// the time of arrival.
    pub(super) fn push_hop_from(
        &mut self,
        from: Instant,
        due: Instant,
        what: WorldEvent,
    ) -> Instant {
        let at = (from + self.hop()).max(due);
        self.queue.push(at, what);
        at
    }

    pub(super) fn push_after(&mut self, wait: Duration, what: WorldEvent) {
        self.queue.push(self.now + wait, what);
    }

    /// Whether no more requests are due.
    pub(super) fn is_over(&self) -> bool {
        self.now >= START + self.scenario.duration
    }

    pub(super) fn client(&self, call: usize) -> Option<&'a ClientProfile> {
        let arrival = self.arrivals.get(call)?;
        self.scenario.client(arrival.client)
    }

    /// The arrivals of callers' requests.
    pub(super) fn take_arrivals(&mut self) -> Vec<Arrival> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.truncate(self.roots);
        arrivals
    }
}

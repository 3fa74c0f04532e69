//! The run: its state, its beginning, and which event goes where.

use tidegate_core::Instant;

use super::call::{Attempt, SimCall};
use super::clock::START;
use super::event::WorldEvent;
use super::ledger::Ledger;
use super::pool::Pool;
use super::proxy::{Flight, SimProxy};
use super::queue::Queue;
use super::source::RequestSource;
use super::tally::RunTally;
use super::upstream::SimUpstream;
use crate::closed_loop::LoopCaller;
use crate::contender::{ContenderError, Made};
use crate::rng::{self, Generator, RngPurpose};
use crate::scenario::{ClientProfile, Network, Scenario, TokenBucket};

pub(super) struct SimWorld<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) now: Instant,
    /// Events, each with the generation of what it is about.
    pub(super) queue: Queue<(WorldEvent, u32)>,
    pub(super) source: RequestSource<'a>,
    /// The callers in closed loops.
    pub(super) members: Vec<LoopCaller>,
    /// The upstream of each client, those that are services included.
    pub(super) targets: Vec<usize>,
    /// Requests of callers and of services.
    pub(super) calls: Pool<SimCall>,
    pub(super) attempts: Pool<Attempt>,
    pub(super) proxies: Vec<SimProxy>,
    /// Requests that were sent to proxies in turn.
    pub(super) in_turn: usize,
    /// Whether a contender wants to know of work that upstreams begin.
    pub(super) is_watched: bool,
    pub(super) upstreams: Vec<SimUpstream>,
    /// What is left of each client's quota; none where it has none.
    pub(super) quotas: Vec<Option<TokenBucket>>,
    pub(super) network: Network,
    pub(super) chance: Chance,
    pub(super) ledger: Ledger,
    /// What is kept instead of requests; none: requests are kept.
    pub(super) tally: Option<RunTally>,
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
    /// A world that keeps every request, or a tally in their place.
    pub(super) fn new(
        scenario: &'a Scenario,
        make: &dyn Fn(&Scenario, u64) -> Made,
        tally: Option<RunTally>,
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
        let (source, calls) = if tally.is_some() {
            RequestSource::drawn(scenario)
        } else {
            RequestSource::list(scenario)
        };
        Ok(Self {
            scenario,
            now: START,
            queue: Queue::new(START),
            targets: clients
                .map(|client| target(client).unwrap_or(usize::MAX))
                .collect(),
            open: calls.len(),
            attempts: Pool::of(Vec::with_capacity(calls.len())),
            calls: Pool::of(calls),
            source,
            members: LoopCaller::all(scenario),
            in_turn: 0,
            is_watched: proxies.iter().any(|one| one.contender.watches_work()),
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
            tally,
            held: 0,
        })
    }

    pub(super) fn play(&mut self) {
        self.play_within(u64::MAX);
    }

    /// Plays at most so many events. Returns whether that is the whole run.
    pub(super) fn play_within(&mut self, most_events: u64) -> bool {
        self.set_the_stage();
        let end = START + self.scenario.duration;
        while let Some((at, (what, generation))) = self.queue.pop() {
            if at > end && self.open == 0 && self.held == 0 {
                break;
            }
            if self.ledger.events >= most_events {
                return false;
            }
            // The attempt or call is over, and another one uses its place.
            if self.generation(what) != generation {
                continue;
            }
            self.now = at;
            self.ledger.hear(at, what);
            self.handle(what);
            if self.tally.is_some()
                && let Some(attempt) = what.attempt()
            {
                self.release_attempt(attempt);
            }
        }
        self.note();
        true
    }

    fn set_the_stage(&mut self) {
        for (upstream, profile) in (0..).zip(&self.scenario.upstreams) {
            for endpoint in 0..profile.max_endpoints() {
                for (at, _) in profile.stages_of(endpoint).into_iter().skip(1) {
                    self.push(START + at, WorldEvent::Stage { upstream, endpoint });
                }
            }
        }
        for (index, incident) in self.scenario.incidents.iter().enumerate() {
            self.push(START + incident.at, WorldEvent::Incident { index });
        }
        let count = self.scenario.proxies;
        for (proxy, index) in (0..self.proxies.len()).zip(0..count) {
            let contender = self.proxies.get(proxy).map(|proxy| &proxy.contender);
            if let Some(every) = contender.and_then(|contender| contender.tick_every()) {
                // Proxies do not tick in step.
                let first = every.mul_f64(f64::from(index + 1) / f64::from(count + 1));
                self.push(START + first, WorldEvent::Tick { proxy });
            }
        }
        self.push(START, WorldEvent::Sample);
        self.expect_next();
        self.expect_members();
    }

    /// Schedules the next request of the callers.
    fn expect_next(&mut self) {
        let next = match &mut self.source {
            RequestSource::Listed { next, count } => {
                let call = *next;
                *next += 1;
                (call < *count).then_some(call)
            }
            RequestSource::Drawn(arrivals) => arrivals.next().map(|arrival| {
                self.open += 1;
                self.calls.insert(SimCall::new(arrival))
            }),
        };
        if let Some(call) = next
            && let Some(due) = self.calls.get(call).map(|call| call.arrival.at)
        {
            self.push(START + due, WorldEvent::Due { call });
        }
    }

    fn handle(&mut self, what: WorldEvent) {
        match what {
            WorldEvent::Due { call } => self.begin(call),
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
            WorldEvent::Stage { upstream, endpoint } => {
                let index = |number| usize::try_from(number).unwrap_or(usize::MAX);
                self.enter_stage(index(upstream), index(endpoint));
            }
            WorldEvent::Tick { proxy } => self.tick(proxy),
            WorldEvent::Incident { index } => self.inject(index),
            WorldEvent::Sample => self.sample(),
        }
    }

    /// A request is due.
    fn begin(&mut self, call: usize) {
        if self
            .calls
            .get(call)
            .is_some_and(|call| call.member.is_none())
        {
            self.expect_next();
        }
        self.place(call);
        self.send(call);
    }

    /// Forgets an attempt that is over, and a call that has ended and has no others.
    fn release_attempt(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get(id).filter(|attempt| attempt.is_over()) else {
            return;
        };
        let index = attempt.call;
        self.attempts.release(id);
        let Some(call) = self.calls.get_mut(index) else {
            return;
        };
        call.under_way -= 1;
        if call.under_way == 0 && call.end.is_some() {
            self.calls.release(index);
        }
    }

    /// Whether no more requests are due.
    pub(super) fn is_over(&self) -> bool {
        self.now >= START + self.scenario.duration
    }

    pub(super) fn client(&self, call: usize) -> Option<&'a ClientProfile> {
        self.scenario.client(self.calls.get(call)?.arrival.client)
    }
}

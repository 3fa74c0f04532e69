//! The run: what each event does.

use std::time::Duration;

use tidegate_core::{Criticality, Instant, Outcome};

use super::call::{Attempt, Call, End, Place, Refusal};
use super::proxy::{Flight, Proxy};
use super::queue::{Queue, What};
use super::report::Ledger;
use super::upstream::{Job, Reception, Reply, Upstream};
use crate::arrivals::{self, Arrival};
use crate::contender::{Ask, Contender, ContenderError, Done, Kind, Verdict};
use crate::record::Answer;
use crate::rng::{self, Generator, Purpose};
use crate::scenario::{ClientProfile, Network, Scenario};

/// The run begins at this instant of the contenders' clock, because no proxy's clock begins with it.
pub const START: Instant = Instant::from_nanos(1_000_000_000);

pub(super) struct World<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) now: Instant,
    queue: Queue,
    arrivals: Vec<Arrival>,
    /// The upstream of each client.
    targets: Vec<usize>,
    pub(super) calls: Vec<Call>,
    attempts: Vec<Attempt>,
    pub(super) proxies: Vec<Proxy>,
    pub(super) upstreams: Vec<Upstream>,
    network: Network,
    chance: Chance,
    pub(super) ledger: Ledger,
    /// Calls that have not ended.
    open: usize,
    /// Requests that proxies hold.
    pub(super) held: u64,
}

/// One stream of random numbers for each purpose.
struct Chance {
    placement: Generator,
    network: Generator,
    backoff: Generator,
    balancing: Generator,
}

impl<'a> World<'a> {
    pub(super) fn new(scenario: &'a Scenario, kind: &Kind) -> Result<Self, ContenderError> {
        let generator = |purpose| rng::generator(scenario.seed, purpose);
        let upstreams: Vec<Upstream> = (0..)
            .zip(&scenario.upstreams)
            .map(|(index, profile)| Upstream::new(profile, generator(Purpose::Upstream(index))))
            .collect();
        let mut seeds = generator(Purpose::Contender);
        let mut proxies = Vec::new();
        for index in 0..usize::try_from(scenario.proxies).unwrap_or(usize::MAX) {
            let flights = upstreams
                .iter()
                .map(|upstream| Flight::new(upstream.endpoints.len(), index));
            proxies.push(Proxy {
                contender: (kind.make)(scenario, rand::Rng::random(&mut seeds))?,
                flights: flights.collect(),
                good: 0,
            });
        }
        let target = |client: &ClientProfile| {
            let mut profiles = scenario.upstreams.iter();
            profiles.position(|profile| profile.name == client.upstream)
        };
        let arrivals = arrivals::schedule(scenario);
        Ok(Self {
            scenario,
            now: START,
            queue: Queue::default(),
            targets: scenario
                .clients
                .iter()
                .map(|client| target(client).unwrap_or(usize::MAX))
                .collect(),
            calls: vec![Call::default(); arrivals.len()],
            attempts: Vec::with_capacity(arrivals.len()),
            proxies,
            upstreams,
            network: scenario.network.unwrap_or_default(),
            chance: Chance {
                placement: generator(Purpose::Placement),
                network: generator(Purpose::Network),
                backoff: generator(Purpose::Backoff),
                balancing: generator(Purpose::Balancing),
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
                        .push(START + at, What::Stage { upstream, endpoint });
                }
            }
        }
        for (index, incident) in self.scenario.incidents.iter().enumerate() {
            self.queue
                .push(START + incident.at, What::Incident { index });
        }
        let count = self.scenario.proxies;
        for (proxy, index) in (0..self.proxies.len()).zip(0..count) {
            let contender = self.proxies.get(proxy).map(|proxy| &proxy.contender);
            if let Some(every) = contender.and_then(|contender| contender.tick_every()) {
                // Proxies do not tick in step.
                let first = every.mul_f64(f64::from(index + 1) / f64::from(count + 1));
                self.queue.push(START + first, What::Tick { proxy });
            }
        }
        self.queue.push(START, What::Sample);
        self.push_due(0);
    }

    fn push_due(&mut self, call: usize) {
        if let Some(arrival) = self.arrivals.get(call) {
            self.queue.push(START + arrival.at, What::Due { call });
        }
    }

    fn handle(&mut self, what: What) {
        match what {
            What::Due { call } => {
                self.push_due(call + 1);
                let callers = &mut self.chance.placement;
                if let Some(entry) = self.calls.get_mut(call) {
                    entry.proxy = rng::index(callers, self.proxies.len());
                    entry.cohort = rand::Rng::random(callers);
                }
                self.send(call);
            }
            What::Again { call } => self.send(call),
            What::AtProxy { attempt } => self.at_proxy(attempt),
            What::AtUpstream { attempt } => self.at_upstream(attempt),
            What::Worked { attempt } => self.worked(attempt),
            What::AnswerAtProxy { attempt } => self.answer_at_proxy(attempt),
            What::AnswerAtCaller { attempt } => self.answer_at_caller(attempt),
            What::GiveUp { attempt } => self.give_up(attempt),
            What::CancelAtProxy { attempt } => self.cancel_at_proxy(attempt),
            What::CancelAtUpstream { attempt } => self.cancel_at_upstream(attempt),
            What::Stage { upstream, endpoint } => self.enter_stage(upstream, endpoint),
            What::Tick { proxy } => self.tick(proxy),
            What::Incident { index } => self.suffer(index),
            What::Sample => self.sample(),
        }
    }

    /// In how long a message is at its next station.
    fn hop(&mut self) -> Duration {
        let Network { delay, jitter } = self.network;
        delay + jitter.mul_f64(rng::unit(&mut self.chance.network))
    }

    fn push_hop(&mut self, what: What) {
        let at = self.now + self.hop();
        self.queue.push(at, what);
    }

    pub(super) fn push_after(&mut self, wait: Duration, what: What) {
        self.queue.push(self.now + wait, what);
    }

    fn client(&self, call: usize) -> Option<&'a ClientProfile> {
        let arrival = self.arrivals.get(call)?;
        self.scenario.clients.get(arrival.client)
    }

    /// A caller sends an attempt.
    fn send(&mut self, call: usize) {
        let (Some(client), Some(arrival)) = (self.client(call), self.arrivals.get(call)) else {
            return;
        };
        let upstream = self.targets.get(arrival.client).copied();
        let workers = usize::try_from(self.scenario.workers).unwrap_or(usize::MAX);
        let worker = rng::index(&mut self.chance.placement, workers);
        let Some(entry) = self.calls.get_mut(call) else {
            return;
        };
        entry.attempts += 1;
        let upstream = upstream.unwrap_or(usize::MAX);
        let attempt = self.attempts.len();
        self.attempts
            .push(Attempt::new(call, entry.attempts, worker, upstream));
        self.push_after(client.deadline, What::GiveUp { attempt });
        self.push_hop(What::AtProxy { attempt });
    }

    /// A request asks its proxy.
    fn at_proxy(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        let (Some(call), Some(arrival), Some(upstream)) = (
            self.calls.get_mut(attempt.call),
            self.arrivals.get(attempt.call),
            self.upstreams.get(attempt.upstream),
        ) else {
            return;
        };
        let Some(proxy) = self.proxies.get_mut(call.proxy) else {
            return;
        };
        let Some(flight) = proxy.flights.get_mut(attempt.upstream) else {
            return;
        };
        let endpoints = upstream.in_rotation();
        let ask = Ask {
            request: number(id),
            worker: attempt.worker,
            upstream: attempt.upstream,
            path: &arrival.path,
            criticality: criticality(arrival),
            cohort: call.cohort,
            attempt: attempt.number,
            endpoints,
            in_flight: flight.in_flight,
        };
        match proxy.contender.admit(&ask, self.now) {
            Verdict::Shed { reason, is_final } => {
                attempt.verdict = Refusal::Shed { reason, is_final };
                call.sheds += 1;
                self.ledger.shed(id, reason);
                self.push_hop(What::AnswerAtCaller { attempt: id });
            }
            Verdict::Admit => {
                let chance = &mut self.chance.balancing;
                let first = flight.choose(upstream.balancing, endpoints, chance);
                attempt.endpoint = claimed(
                    proxy.contender.as_mut(),
                    attempt.upstream,
                    (first, endpoints),
                    self.now,
                );
                attempt.in_flight_before = flight.enter(attempt.endpoint);
                attempt.admitted_at = self.now;
                attempt.is_in_flight = true;
                self.held += 1;
                self.ledger.hold(self.held);
                self.push_hop(What::AtUpstream { attempt: id });
            }
        }
    }

    fn at_upstream(&mut self, id: usize) {
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

    fn start(&mut self, job: Job) {
        if let Some(attempt) = self.attempts.get_mut(job.attempt) {
            attempt.place = Place::Slot;
            attempt.delay = job.delay;
            attempt.waited = Some(self.now.saturating_since(attempt.arrived_at));
            let attempt = job.attempt;
            self.push_after(job.service, What::Worked { attempt });
        }
    }

    fn worked(&mut self, id: usize) {
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

    fn release(&mut self, upstream: usize, endpoint: usize) {
        let next = self
            .upstreams
            .get_mut(upstream)
            .and_then(|upstream| upstream.endpoints.get_mut(endpoint))
            .and_then(super::upstream::Endpoint::release);
        if let Some(job) = next {
            self.start(job);
        }
    }

    fn answer_at_proxy(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get(id) else {
            return;
        };
        if attempt.is_in_flight {
            let outcome = attempt.outcome();
            self.complete(id, outcome);
            self.push_hop(What::AnswerAtCaller { attempt: id });
        }
    }

    /// The proxy lets go of a request.
    fn complete(&mut self, id: usize, outcome: Outcome) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        attempt.is_in_flight = false;
        let (Some(call), Some(arrival)) = (
            self.calls.get(attempt.call),
            self.arrivals.get(attempt.call),
        ) else {
            return;
        };
        let Some(proxy) = self.proxies.get_mut(call.proxy) else {
            return;
        };
        let Some(flight) = proxy.flights.get_mut(attempt.upstream) else {
            return;
        };
        let done = Done {
            request: number(id),
            worker: attempt.worker,
            upstream: attempt.upstream,
            endpoint: u32::try_from(attempt.endpoint).unwrap_or(u32::MAX),
            outcome,
            latency: self.now.saturating_since(attempt.admitted_at),
            waited: attempt.waited,
            in_flight_before: attempt.in_flight_before,
            in_flight: flight.leave(attempt.endpoint),
            criticality: criticality(arrival),
            attempt: attempt.number,
        };
        proxy.contender.complete(&done, self.now);
        self.held -= 1;
    }

    fn answer_at_caller(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut attempt.is_awaited) {
            let (call, (answer, makes_sense)) = (attempt.call, attempt.answer());
            self.hear(call, answer, makes_sense);
        }
    }

    fn give_up(&mut self, id: usize) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut attempt.is_awaited) {
            let call = attempt.call;
            self.push_hop(What::CancelAtProxy { attempt: id });
            self.hear(call, Answer::GaveUp, true);
        }
    }

    /// A caller hears what became of an attempt: it tries again, or that was it.
    fn hear(&mut self, id: usize, answer: Answer, makes_sense: bool) {
        let retries = self.client(id).and_then(|client| client.retries);
        let (Some(call), Some(arrival)) = (self.calls.get_mut(id), self.arrivals.get(id)) else {
            return;
        };
        if let Some(retries) = retries.filter(|retries| call.attempts <= retries.max && makes_sense)
        {
            // Exponential, with full jitter, so that callers do not come back in step.
            let longest = retries.backoff * 2_u32.saturating_pow(call.attempts - 1);
            let pause = longest.mul_f64(rng::unit(&mut self.chance.backoff));
            self.push_after(pause, What::Again { call: id });
            return;
        }
        let latency = self.now.saturating_since(START + arrival.at);
        if answer == Answer::Ok
            && latency <= self.scenario.slo.latency
            && let Some(proxy) = self.proxies.get_mut(call.proxy)
        {
            proxy.good += 1;
        }
        call.end = Some(End { answer, latency });
        self.open -= 1;
    }

    fn cancel_at_proxy(&mut self, id: usize) {
        let is_in_flight = |attempt: &Attempt| attempt.is_in_flight;
        if self.attempts.get(id).is_some_and(is_in_flight) {
            self.complete(id, Outcome::Cancelled);
            self.push_hop(What::CancelAtUpstream { attempt: id });
        }
    }

    fn cancel_at_upstream(&mut self, id: usize) {
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

    fn enter_stage(&mut self, upstream: usize, endpoint: usize) {
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
    fn break_connections(&mut self, upstream: usize, endpoint: usize) {
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

    fn tick(&mut self, index: usize) {
        let Some(proxy) = self.proxies.get_mut(index) else {
            return;
        };
        proxy.contender.tick(self.now);
        if let Some(every) = proxy.contender.tick_every() {
            self.push_after(every, What::Tick { proxy: index });
        }
    }

    fn suffer(&mut self, index: usize) {
        if let Some(incident) = self.scenario.incidents.get(index) {
            for proxy in &mut self.proxies {
                proxy.contender.suffer(incident.what, self.now);
            }
        }
    }

    pub(super) fn take_arrivals(&mut self) -> Vec<Arrival> {
        std::mem::take(&mut self.arrivals)
    }
}

/// The endpoint that the contender takes, of those in rotation: the balancer offers its first choice, then those
/// after it in turn, and sends to the first choice when the contender takes none.
fn claimed(
    contender: &mut dyn Contender,
    upstream: usize,
    (first, count): (usize, u32),
    now: Instant,
) -> usize {
    let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
    let mut offers = (0..count).map(|offset| (first + offset) % count);
    let taken = offers.find(|offer| {
        let endpoint = u32::try_from(*offer).unwrap_or(u32::MAX);
        contender.claim(upstream, endpoint, now)
    });
    taken.unwrap_or(first)
}

fn criticality(arrival: &Arrival) -> Criticality {
    let named = arrival.criticality.as_deref();
    named
        .and_then(Criticality::from_header)
        .unwrap_or(Criticality::Critical)
}

fn number(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}

//! The run of a world: events in the order of time, and of their making where the time is the same.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use tidegate_core::config::Config;
use tidegate_core::{
    Counter, Counters, Criticality, Decision, Directives, Engine, Failure, Instant, Known, Outcome,
    Permit, Slice, Unshared, UpstreamId,
};

use super::oracle::DELAY;
use super::report::Report;
use super::{Behaviour, Bursts, Counting, Incident, World};
use crate::counters::Shared;

const TICK: f64 = 0.1;
/// A refusal takes the upstream this long.
const AT_ONCE: f64 = 0.001;
/// The first retry comes after about twice this, seconds.
const BACKOFF: f64 = 0.025;
/// What is under way at the end may finish for so long.
const DRAIN: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrive(Call),
    Done { request: usize, failed: bool },
    GiveUp { request: usize },
    Tick { worker: usize },
    Happen(Incident),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    critical: bool,
    /// From 1.
    attempt: u32,
}

/// A request that was let in.
struct Live {
    permit: Option<Permit>,
    worker: usize,
    started: f64,
    call: Call,
    holds_slot: bool,
}

/// One VM. The last one serves no requests and leads, as Envoy's main thread does.
struct Vm {
    engine: Engine,
    backend: UpstreamId,
}

struct Run<'a> {
    world: &'a World,
    config: Config,
    rng: fastrand::Rng,
    heap: BinaryHeap<Reverse<(u64, u64, What)>>,
    sequence: u64,
    vms: Vec<Vm>,
    leader: Option<usize>,
    next_worker: u64,
    counters: Counts,
    directives: Directives,
    learned: Directives,
    slices: BTreeMap<usize, Slice>,
    requests: Vec<Live>,
    queue: VecDeque<usize>,
    serving: u32,
    held: i64,
    report: Report,
    arrivals: Vec<f64>,
}

enum Counts {
    Shared(Shared),
    Unshared(Unshared),
}

impl Counters for Counts {
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        match self {
            Self::Shared(shared) => shared.raise(upstream, counter),
            Self::Unshared(unshared) => unshared.raise(upstream, counter),
        }
    }

    fn lower(&mut self, upstream: UpstreamId, counter: Counter, by: u64) {
        match self {
            Self::Shared(shared) => shared.lower(upstream, counter, by),
            Self::Unshared(unshared) => unshared.lower(upstream, counter, by),
        }
    }

    fn value(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        match self {
            Self::Shared(shared) => shared.value(upstream, counter),
            Self::Unshared(unshared) => unshared.value(upstream, counter),
        }
    }
}

fn at(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9) as u64 + 1_000_000_000)
}

fn tenth(seconds: f64) -> usize {
    (seconds * 10.0) as usize
}

impl World {
    pub(crate) fn run(&self) -> Report {
        let mut run = Run::new(self);
        while let Some(Reverse((nanos, _, what))) = run.heap.pop() {
            let now = nanos as f64 / 1e9;
            if now > self.end() + DRAIN {
                break;
            }
            run.handle(now, what);
        }
        run.finish()
    }
}

impl<'a> Run<'a> {
    fn new(world: &'a World) -> Self {
        let config = Config::from_json(world.config.as_bytes()).unwrap();
        let series = vec![0; tenth(world.end() + DRAIN) + 1];
        let mut run = Self {
            world,
            config,
            rng: fastrand::Rng::with_seed(world.seed),
            heap: BinaryHeap::new(),
            sequence: 0,
            vms: Vec::new(),
            leader: Some(world.workers),
            next_worker: 1,
            counters: match world.counting {
                Counting::Shared => Counts::Shared(Shared::default()),
                Counting::Unshared => Counts::Unshared(Unshared),
            },
            directives: Directives::default(),
            learned: Directives::default(),
            slices: BTreeMap::new(),
            requests: Vec::new(),
            queue: VecDeque::new(),
            serving: 0,
            held: 0,
            report: Report {
                good: series.clone(),
                offered: series.clone(),
                received: series,
                ..Report::default()
            },
            arrivals: Vec::new(),
        };
        for worker in 0..=world.workers {
            let vm = run.fresh_vm(0.0);
            run.vms.push(vm);
            let phase = worker as f64 / (world.workers + 1) as f64;
            run.push(0.03 + TICK * phase, What::Tick { worker });
        }
        for (time, incident) in &world.incidents {
            run.push(*time, What::Happen(*incident));
        }
        run.next_arrival(0.0);
        run
    }

    fn fresh_vm(&mut self, now: f64) -> Vm {
        let mut engine = Engine::of_many(self.config.clone(), at(now), self.next_worker);
        self.next_worker += 1;
        engine.adopt(&self.learned, at(now));
        let backend = engine.upstream("backend", None, at(now));
        Vm { engine, backend }
    }

    fn push(&mut self, time: f64, what: What) {
        self.sequence += 1;
        self.heap
            .push(Reverse(((time * 1e9) as u64, self.sequence, what)));
    }

    fn rate(&self, now: f64) -> f64 {
        let rate = self.world.stage(now).rate;
        let Some(Bursts {
            period,
            length,
            factor,
        }) = self.world.bursts
        else {
            return rate;
        };
        if now % period < length {
            rate * factor
        } else {
            (rate * period - rate * factor * length).max(0.0) / (period - length)
        }
    }

    /// Poisson arrivals by thinning, so that the rate may change at any time.
    fn next_arrival(&mut self, now: f64) {
        let rates = self.world.stages.iter().map(|stage| stage.rate);
        let highest =
            rates.fold(1.0, f64::max) * self.world.bursts.map_or(1.0, |bursts| bursts.factor);
        let mut time = now;
        loop {
            time -= self.rng.f64().max(1e-12).ln() / highest;
            if time >= self.world.end() {
                return;
            }
            if self.rng.f64() * highest < self.rate(time) {
                let critical = self.rng.f64() < self.world.critical_share;
                let call = Call {
                    critical,
                    attempt: 1,
                };
                self.push(time, What::Arrive(call));
                return;
            }
        }
    }

    fn handle(&mut self, now: f64, what: What) {
        match what {
            What::Arrive(call) => {
                if call.attempt == 1 {
                    self.arrivals.push(now);
                    self.report.offered[tenth(now)] += 1;
                    self.report.critical_offered += u32::from(call.critical);
                    self.next_arrival(now);
                }
                self.arrive(now, call);
            }
            What::Done { request, failed } => self.done(now, request, failed),
            What::GiveUp { request } => self.give_up(now, request),
            What::Tick { worker } => {
                self.tick(now, worker);
                self.push(now + TICK, What::Tick { worker });
            }
            What::Happen(incident) => self.happen(now, incident),
        }
    }

    fn arrive(&mut self, now: f64, call: Call) {
        let worker = self.rng.usize(0..self.world.workers);
        let all_alike = self.world.critical_share == 0.0;
        let mut known = Known {
            criticality: if call.critical || all_alike {
                Criticality::Critical
            } else {
                Criticality::Sheddable
            },
            retry: call.attempt > 1,
        };
        let Vm { engine, backend } = &mut self.vms[worker];
        engine.set_endpoints(*backend, self.world.stage(now).endpoints);
        match engine.admit(*backend, &mut known, &mut self.counters, at(now)) {
            Decision::Shed(shed) => {
                if call.critical {
                    self.report.critical_shed.push(now);
                }
                *self.report.sheds.entry(shed.reason.as_str()).or_default() += 1;
                self.retry(now, call);
            }
            Decision::Admit(permit) => {
                let request = self.requests.len();
                self.requests.push(Live {
                    permit: Some(permit),
                    worker,
                    started: now,
                    call,
                    holds_slot: false,
                });
                self.held += 1;
                self.report.most_in_flight = self.report.most_in_flight.max(self.held);
                self.report.received[tenth(now)] += 1;
                self.push(now + self.world.deadline, What::GiveUp { request });
                self.receive(now, request);
            }
        }
    }

    /// The upstream gets a request.
    fn receive(&mut self, now: f64, request: usize) {
        let refused = What::Done {
            request,
            failed: true,
        };
        match self.world.stage(now).behaviour {
            Behaviour::Fail => self.push(now + AT_ONCE, refused),
            Behaviour::Hang => {}
            Behaviour::Serve | Behaviour::Brownout { .. } => {
                if self.queue.len() >= self.world.queue {
                    self.push(now + AT_ONCE, refused);
                } else {
                    self.queue.push_back(request);
                    self.dispatch(now);
                }
            }
        }
    }

    fn dispatch(&mut self, now: f64) {
        let stage = self.world.stage(now);
        while self.serving < stage.slots {
            let Some(request) = self.queue.pop_front() else {
                return;
            };
            if self.requests[request].permit.is_none() {
                continue;
            }
            let time = self.service_time();
            let mut failed = false;
            if let Behaviour::Brownout { errors, delayed } = stage.behaviour {
                failed = self.rng.f64() < errors;
                if self.rng.f64() < delayed {
                    // A delay holds no slot: something behind the upstream is slow.
                    self.push(now + time + DELAY, What::Done { request, failed });
                    continue;
                }
            }
            self.serving += 1;
            self.requests[request].holds_slot = true;
            self.push(now + time, What::Done { request, failed });
        }
    }

    fn service_time(&mut self) -> f64 {
        let service = self.world.service;
        let mean = if self.rng.f64() < service.slow_share {
            service.slow_mean
        } else {
            service.mean
        };
        let (u, v) = (self.rng.f64().max(1e-12), self.rng.f64());
        let normal = (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos();
        mean * (service.sigma * normal - service.sigma * service.sigma / 2.0).exp()
    }

    fn done(&mut self, now: f64, request: usize, failed: bool) {
        if std::mem::take(&mut self.requests[request].holds_slot) {
            self.serving -= 1;
            self.dispatch(now);
        }
        let live = &mut self.requests[request];
        let Some(mut permit) = live.permit.take() else {
            return;
        };
        let (latency, call) = (now - live.started, live.call);
        let outcome = if failed {
            Outcome::Failure(Failure::Status)
        } else {
            Outcome::Success
        };
        let engine = &mut self.vms[live.worker].engine;
        engine.respond(&mut permit, at(now));
        engine.complete(permit, outcome, &mut self.counters, at(now));
        self.held -= 1;
        self.report.latencies.push((now, latency));
        if failed {
            self.retry(now, call);
        } else if latency <= self.world.target {
            self.report.good[tenth(now)] += 1;
            self.report.critical_good += u32::from(call.critical);
        }
    }

    fn give_up(&mut self, now: f64, request: usize) {
        let live = &mut self.requests[request];
        let Some(permit) = live.permit.take() else {
            return;
        };
        let call = live.call;
        let engine = &mut self.vms[live.worker].engine;
        engine.complete(permit, Outcome::Cancelled, &mut self.counters, at(now));
        self.held -= 1;
        self.retry(now, call);
    }

    fn retry(&mut self, now: f64, call: Call) {
        if call.attempt <= self.world.retries {
            let doubled = BACKOFF * f64::from(1_u32 << call.attempt);
            let wait = doubled * (0.5 + self.rng.f64());
            let again = Call {
                attempt: call.attempt + 1,
                ..call
            };
            self.push(now + wait, What::Arrive(again));
        }
    }

    fn tick(&mut self, now: f64, worker: usize) {
        let Vm { engine, backend } = &mut self.vms[worker];
        engine.tick(&mut self.counters, at(now));
        let slice = Slice::decode(&engine.encode_slice(at(now))).unwrap();
        self.slices.insert(worker, slice);
        if self.leader == Some(worker) {
            let slices: Vec<Slice> = self.slices.values().cloned().collect();
            if let Some((directives, events)) = engine.decide(&slices, &mut self.counters, at(now))
            {
                let events = events.into_iter().map(|event| (now, event));
                self.report.events.extend(events);
                self.directives = Directives::decode(&directives.encode()).unwrap();
                self.learned = engine.learned(at(now));
            }
        }
        engine.adopt(&self.directives, at(now));
        if self.leader == Some(worker) {
            let limit = engine.snapshot(at(now)).upstreams[backend.index()].limit;
            self.report.limits.push((now, limit));
        }
    }

    fn happen(&mut self, now: f64, incident: Incident) {
        match incident {
            Incident::Crash { worker } => {
                self.vms[worker] = self.fresh_vm(now);
                let backend = self.vms[worker].backend;
                let lost = self
                    .requests
                    .iter_mut()
                    .filter(|live| live.worker == worker);
                // The skin reconciles the shared count with what the workers hold.
                let lost = lost.filter_map(|live| live.permit.take()).count();
                self.counters.lower(backend, Counter::InFlight, lost as u64);
                self.held -= lost as i64;
            }
            Incident::LeaderLost => self.leader = None,
            Incident::LeaderChanged => {
                if let Some(leader) = self.leader.replace(0) {
                    self.vms[leader].engine.resign();
                }
            }
        }
    }

    fn finish(mut self) -> Report {
        let now = at(self.world.end() + DRAIN);
        let in_flight = self.vms.iter().map(|vm| {
            let upstream = &vm.engine.snapshot(now).upstreams[vm.backend.index()];
            i64::from(upstream.in_flight) + i64::from(upstream.streams)
        });
        self.report.leaked = in_flight.sum::<i64>() - self.held;
        if let Counts::Shared(shared) = &self.counters {
            self.report.miscounted =
                shared.read(self.vms[0].backend, Counter::InFlight) - self.held;
        }
        let good: u32 = self.report.good.iter().sum();
        self.report.score = f64::from(good) / self.world.oracle(&self.arrivals);
        self.report
    }
}

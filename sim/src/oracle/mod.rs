//! What somebody who knows the capacity would have got out of a run.
//!
//! The oracle takes the arrivals as they were and the behaviour of the upstream
//! over time, and runs a fluid server: work drains at the rate of the slots, in
//! order of arrival. It admits a request if and only if its answer still comes
//! within the objective's latency. Failures that do not depend on load hit the
//! oracle as well: they reduce what an admitted request is worth. While the
//! upstream is down nothing can be got out of it, and nothing is admitted.
//!
//! Where bodies hold their slots, for seconds, a fluid would lie: a slot is taken or
//! free. There each slot is a server of its own ([`slots`]). Of contended slots no
//! more are used than serve the most; while an endpoint stands still nothing drains.
//!
//! An upstream of several endpoints is one such server for each, and arrivals go to
//! them one after the other: the oracle chooses what to admit, not where it goes.
//!
//! Some requests are worth nothing to anybody and cost nothing: those for a path
//! that fails, beyond a quota, or with an upload that never ends. And where the
//! objective is out of reach for a path, whatever the load, any answer 200 that comes
//! before its caller's deadline is a good one: shedding could not help there.
//!
//! Edges: retries are not in the list (the oracle's callers need none); the
//! spread of service times is not simulated, only the mean, so that a run may
//! reach slightly more or less than 1.0 of it.

mod demand;
mod fluid;
mod slots;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::arrivals::Arrival;
use crate::profile::Behaviour;
use crate::record::{Answer, Record};
use crate::scenario::{Bucket, ClientProfile, Scenario, Slo, Stages, UpstreamProfile};
use demand::Demand;
use fluid::Fluid;
use slots::Slots;

/// The oracle's verdict on one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// Whether it would have been admitted.
    pub admitted: bool,
    /// Expected number of good answers: 0 when not admitted, 1 when nothing else is wrong.
    pub good: f64,
    /// Whether it is worth nothing to anybody and costs nothing, so that neither serving nor shedding it counts.
    pub is_worthless: bool,
    /// Whether any answer 200 is a good one, because none can be within the objective.
    pub any_answer: bool,
}

impl Verdict {
    /// Nothing can be got out of it.
    const NOTHING: Self = Self {
        admitted: false,
        good: 0.0,
        is_worthless: false,
        any_answer: false,
    };
    /// Nor can anything be lost.
    const WORTHLESS: Self = Self {
        is_worthless: true,
        ..Self::NOTHING
    };

    /// Whether what came out is a good answer.
    #[must_use]
    pub fn is_good(&self, record: &Record, latency: Duration) -> bool {
        if self.any_answer {
            record.answer == Answer::Ok
        } else {
            record.is_good(latency)
        }
    }
}

/// A share of answers in time below this is none.
const REACHABLE: f64 = 0.01;

/// Judges every arrival of a scenario; the verdicts are in the order of `arrivals`.
#[must_use]
pub fn judge(scenario: &Scenario, arrivals: &[Arrival]) -> Vec<Verdict> {
    let mut servers: Vec<Server> = scenario
        .upstreams
        .iter()
        .map(|profile| Server::new(profile, scenario.slo))
        .collect();
    let quotas = scenario.clients.iter();
    let mut quotas: Vec<Option<Bucket>> = quotas
        .map(|client| client.quota.map(|quota| quota.bucket()))
        .collect();
    let mut verdicts = vec![Verdict::WORTHLESS; arrivals.len()];
    // The service's work begins with the end of the upload.
    let begins = arrivals.iter().enumerate().filter_map(|(index, arrival)| {
        let upload = arrival.uploads_for()?;
        Some((arrival.at + upload, index, arrival))
    });
    let mut begins: Vec<_> = begins.collect();
    begins.sort_by_key(|(at, index, _)| (*at, *index));
    for (at, index, arrival) in begins {
        let client = scenario.clients.get(arrival.client);
        let server = client.and_then(|client| {
            let mut servers = servers.iter_mut();
            servers.find(|server| server.name == client.upstream)
        });
        let verdict = match (client, server) {
            (Some(client), Some(server)) => {
                let quota = quotas.get_mut(arrival.client).and_then(Option::as_mut);
                server.judge(
                    &Request {
                        at,
                        arrival,
                        client,
                    },
                    quota,
                )
            }
            _ => Verdict::NOTHING,
        };
        if let Some(place) = verdicts.get_mut(index) {
            *place = verdict;
        }
    }
    verdicts
}

/// Whether there is a path that is asked for, and for which the objective is out of reach whatever the load.
#[must_use]
pub fn is_unreachable(scenario: &Scenario) -> bool {
    scenario.upstreams.iter().any(|profile| {
        let mut server = Server::new(profile, scenario.slo);
        let clients = scenario.clients.iter();
        let mut clients = clients.filter(|client| client.upstream == profile.name);
        clients.any(|client| {
            let is_plain = client.paths.is_empty() && server.is_unreachable("/");
            is_plain || client.paths.keys().any(|path| server.is_unreachable(path))
        })
    })
}

/// A request that is complete at the service.
struct Request<'a> {
    at: Duration,
    arrival: &'a Arrival,
    client: &'a ClientProfile,
}

impl Request<'_> {
    /// What is left of the caller's patience.
    fn patience(&self) -> Duration {
        let uploading = self.at.saturating_sub(self.arrival.at);
        self.client.deadline.saturating_sub(uploading)
    }
}

/// One upstream: its endpoints, of which each arrival meets the next.
struct Server {
    name: String,
    slo: Slo,
    stages: Stages,
    endpoints: Vec<Endpoint>,
    turn: usize,
    /// Paths for which the objective is out of reach.
    unreachable: BTreeMap<String, bool>,
}

impl Server {
    fn new(profile: &UpstreamProfile, slo: Slo) -> Self {
        let count = profile.max_endpoints();
        let endpoint = |index| Endpoint::new(profile.stages_of(index), (index, count));
        Self {
            name: profile.name.clone(),
            slo,
            stages: profile.stages(),
            endpoints: (0..count).map(endpoint).collect(),
            turn: 0,
            unreachable: BTreeMap::new(),
        }
    }

    fn judge(&mut self, request: &Request<'_>, quota: Option<&mut Bucket>) -> Verdict {
        let in_rotation = behaviour(&self.stages, request.at).map_or(1, |now| now.endpoints);
        let in_rotation = usize::try_from(in_rotation).unwrap_or(usize::MAX).max(1);
        let index = self.turn % in_rotation;
        self.turn = self.turn.wrapping_add(1);
        let any_answer = self.is_unreachable(&request.arrival.path);
        let slo = self.slo;
        let Some(endpoint) = self.endpoints.get_mut(index) else {
            return Verdict::NOTHING;
        };
        let up = behaviour(&endpoint.stages, request.at).filter(|now| now.mode.is_up());
        let Some(now) = up else {
            return Verdict::NOTHING;
        };
        if now.failing.contains_key(&request.arrival.path)
            || quota.is_some_and(|quota| !quota.take(request.at))
            || request.patience().is_zero()
        {
            return Verdict::WORTHLESS;
        }
        let demand = Demand::of(now, request.arrival, slo.until);
        let budget = if any_answer {
            request.patience()
        } else if request.arrival.upload.is_some() {
            slo.latency.min(request.patience())
        } else {
            slo.latency
        };
        if demand.is_broken_off(&endpoint.stages, request.at) {
            return Verdict::NOTHING;
        }
        let haste = demand.haste(budget, slo.latency);
        let admitted = endpoint
            .room
            .admits(&endpoint.stages, &demand, request.at, haste);
        let good = endpoint.room.good_share(&demand, request.at, budget);
        Verdict {
            admitted,
            good: if admitted { good } else { 0.0 },
            is_worthless: false,
            any_answer,
        }
    }

    /// Whether no answer for a path can be within the objective, in any stage.
    fn is_unreachable(&mut self, path: &str) -> bool {
        if let Some(known) = self.unreachable.get(path) {
            return *known;
        }
        let up = self.stages.iter().filter(|(_, now)| now.mode.is_up());
        let mut up = up.peekable();
        let is_ever_up = up.peek().is_some();
        let slo = self.slo;
        let best = up
            .map(|(_, now)| 1.0 - Demand::on(now, path, slo.until).late_share(slo.latency))
            .fold(0.0, f64::max);
        let unreachable = is_ever_up && best < REACHABLE;
        self.unreachable.insert(path.to_owned(), unreachable);
        unreachable
    }
}

/// One endpoint.
struct Endpoint {
    stages: Stages,
    room: Room,
}

/// What an endpoint has left.
enum Room {
    Fluid(Fluid),
    Slots(Slots),
}

impl Endpoint {
    /// Number `place.0` of `place.1` endpoints.
    fn new(stages: Stages, place: (u32, u32)) -> Self {
        let holds = |now: &Behaviour| {
            let mut bodies = now.body.iter().chain(now.bodies.values());
            bodies.any(|body| body.holds_slot)
        };
        let room = if stages.iter().any(|(_, now)| holds(now)) {
            Room::Slots(Slots::new(place))
        } else {
            Room::Fluid(Fluid::new(place))
        };
        Self { stages, room }
    }
}

impl Room {
    /// Whether a request that is complete at `at` waits no longer than it may; it takes its place then.
    fn admits(
        &mut self,
        stages: &Stages,
        demand: &Demand<'_>,
        at: Duration,
        haste: (Duration, Duration),
    ) -> bool {
        match self {
            Self::Fluid(fluid) => fluid.admits(stages, demand, at, haste),
            Self::Slots(slots) => slots.admits(demand, at, haste),
        }
    }

    /// Share of such requests whose moment comes within `budget` however little is in line.
    fn good_share(&self, demand: &Demand<'_>, at: Duration, budget: Duration) -> f64 {
        let place = match self {
            Self::Fluid(fluid) => fluid.place(),
            Self::Slots(slots) => slots.place(),
        };
        let running = demand.running(place, at, budget);
        (1.0 - demand.late_share(running)) * demand.correct()
    }
}

/// The behaviour at a time.
fn behaviour(stages: &Stages, at: Duration) -> Option<&Behaviour> {
    let next = stages.partition_point(|(from, _)| *from <= at);
    let current = next.checked_sub(1).and_then(|index| stages.get(index));
    current.map(|(_, behaviour)| behaviour)
}

#[cfg(test)]
mod tests;

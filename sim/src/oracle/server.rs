//! The oracle's model of one upstream.

use std::collections::BTreeMap;
use std::time::Duration;

use super::demand::RequestDemand;
use super::fluid::Fluid;
use super::request::OracleRequest;
use super::slots::Slots;
use super::verdict::OracleVerdict;
use crate::profile::Behaviour;
use crate::scenario::{Scenario, Stages, TokenBucket, UpstreamProfile};

/// A smaller share of answers in time counts as none.
const REACHABLE: f64 = 0.01;

/// One upstream, whose endpoints get the arrivals in turn.
pub(super) struct Server<'a> {
    name: String,
    scenario: &'a Scenario,
    stages: Stages,
    endpoints: Vec<OracleEndpoint>,
    turn: usize,
    /// Whether an objective is out of reach for a path.
    unreachable: BTreeMap<Duration, BTreeMap<String, bool>>,
}

impl<'a> Server<'a> {
    pub(super) fn new(profile: &UpstreamProfile, scenario: &'a Scenario) -> Self {
        let count = profile.max_endpoints();
        let endpoint = |index| OracleEndpoint::new(profile.stages_of(index), (index, count));
        Self {
            name: profile.name.clone(),
            scenario,
            stages: profile.stages(),
            endpoints: (0..count).map(endpoint).collect(),
            turn: 0,
            unreachable: BTreeMap::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn judge(
        &mut self,
        request: &OracleRequest<'_>,
        quota: Option<&mut TokenBucket>,
    ) -> OracleVerdict {
        let in_rotation = behaviour(&self.stages, request.at).map_or(1, |now| now.endpoints);
        let in_rotation = usize::try_from(in_rotation).unwrap_or(usize::MAX).max(1);
        let index = self.turn % in_rotation;
        self.turn = self.turn.wrapping_add(1);
        let objective = self.scenario.latency_at(request.arrival.at);
        let any_answer = self.is_unreachable(&request.arrival.path, objective);
        let Some(endpoint) = self.endpoints.get_mut(index) else {
            return OracleVerdict::NOTHING;
        };
        let up = behaviour(&endpoint.stages, request.at).filter(|now| now.mode.is_up());
        let Some(now) = up else {
            return OracleVerdict::NOTHING;
        };
        if now.failing.contains_key(&*request.arrival.path)
            || now.lies.contains_key(&*request.arrival.path)
            || quota.is_some_and(|quota| !quota.take(request.at))
            || request.patience().is_zero()
        {
            return OracleVerdict::WORTHLESS;
        }
        let demand = RequestDemand::of(now, request, self.scenario.slo.until);
        let budget = if any_answer {
            request.patience()
        } else if request.arrival.upload.is_some() {
            objective.min(request.patience())
        } else {
            objective
        };
        if demand.is_broken_off(&endpoint.stages, request.at) {
            return OracleVerdict::NOTHING;
        }
        let haste = demand.haste(budget, objective);
        let admitted = endpoint
            .room
            .admits(&endpoint.stages, &demand, request.at, haste);
        let good = endpoint.room.good_share(&demand, request.at, budget);
        OracleVerdict {
            admitted,
            good: if admitted { good } else { 0.0 },
            is_worthless: false,
            any_answer,
        }
    }

    /// Whether no answer for a path can be within an objective, in any stage.
    pub(super) fn is_unreachable(&mut self, path: &str, objective: Duration) -> bool {
        let known = self.unreachable.entry(objective).or_default();
        if let Some(known) = known.get(path) {
            return *known;
        }
        let up = self.stages.iter().filter(|(_, now)| now.mode.is_up());
        let mut up = up.peekable();
        let is_ever_up = up.peek().is_some();
        let until = self.scenario.slo.until;
        let best = up
            .map(|(_, now)| 1.0 - RequestDemand::on(now, path, until).late_share(objective))
            .fold(0.0, f64::max);
        let unreachable = is_ever_up && best < REACHABLE;
        known.insert(path.to_owned(), unreachable);
        unreachable
    }
}

/// One endpoint.
struct OracleEndpoint {
    stages: Stages,
    room: EndpointRoom,
}

/// The model of an endpoint's free capacity.
enum EndpointRoom {
    Fluid(Fluid),
    Slots(Slots),
}

impl OracleEndpoint {
    /// An idle endpoint, number `place.0` of `place.1`.
    fn new(stages: Stages, place: (u32, u32)) -> Self {
        let holds = |now: &Behaviour| {
            let mut bodies = now.body.iter().chain(now.bodies.values());
            bodies.any(|body| body.holds_slot)
        };
        let room = if stages.iter().any(|(_, now)| holds(now)) {
            EndpointRoom::Slots(Slots::new(place))
        } else {
            EndpointRoom::Fluid(Fluid::new(place))
        };
        Self { stages, room }
    }
}

impl EndpointRoom {
    /// Whether a request that is complete at `at` waits no longer than it may; if so, it takes its place.
    fn admits(
        &mut self,
        stages: &Stages,
        demand: &RequestDemand<'_>,
        at: Duration,
        haste: (Duration, Duration),
    ) -> bool {
        match self {
            Self::Fluid(fluid) => fluid.admits(stages, demand, at, haste),
            Self::Slots(slots) => slots.admits(demand, at, haste),
        }
    }

    /// Share of these requests whose moment comes within `budget` even with an empty queue.
    fn good_share(&self, demand: &RequestDemand<'_>, at: Duration, budget: Duration) -> f64 {
        let place = match self {
            Self::Fluid(fluid) => fluid.place(),
            Self::Slots(slots) => slots.place(),
        };
        let running = demand.running(place, at, budget);
        (1.0 - demand.late_share(running)) * demand.correct()
    }
}

/// The behavior at a time.
fn behaviour(stages: &Stages, at: Duration) -> Option<&Behaviour> {
    let next = stages.partition_point(|(from, _)| *from <= at);
    let current = next.checked_sub(1).and_then(|index| stages.get(index));
    current.map(|(_, behaviour)| behaviour)
}

//! Rate limits at the entry, for each API, like TopFull's.
//!
//! One place watches all services. Where one is overloaded, it limits the rate of the APIs that need this service where
//! their requests come in, and nowhere else, so that a request that is admitted is not shed later.
//!
//! Formula: a service is overloaded while it is busy for more than 0.8 of its time. Every 2 s the APIs that pass an overloaded
//! service become one cluster, limited to the rates at which they ask now. Every 1 s each cluster changes its rates:
//! down while the 95th percentile of its latencies misses the objective, otherwise up, to at most 1.1 times what is
//! asked for. The change falls on the APIs that pass the overloaded service that the fewest use; upwards, on the others
//! first. An API that passes no overloaded service any more leaves its cluster. A cluster ends when each of its APIs has no
//! more than 10 % of failures within its rate, or after 150 changes.
//!
//! Source: J. Park et al., "TopFull: An Adaptive Top-Down Overload Control for SLO-Oriented Microservices", SIGCOMM 2024,
//! <https://ina.kaist.ac.kr/projects/topfull>; the authors' <https://github.com/kaist-ina/TopFull>, files
//! `overload_detection.py` and `deploy_mimd.py`: 0.8, 2 s, 1 s, 95 %, 1.1, 10 %, 150, at least 10 requests a second, and a
//! bucket of one second for each rate.
//!
//! Edges: a learned policy decides how far rates go up or down. The paper describes how it was trained, and its weights are
//! a file of the authors' framework without a license; they are not used here. Two rules stand in for it ([`RateStep`]).
//! `topfull-mimd` is what the authors compare it with: 5 % down, 1 % up. `topfull` is a rule of our own from the two numbers
//! that the policy sees: down by what the successes lack of the limit, at least 5 %, and up by half of what the latency
//! leaves of the objective, at least 1 %. Both are at most 50 %, which bounds the policy as well. So neither is TopFull at
//! its best. An API is a path of an entry, and the services that it passes are all that the entry may call, as in the
//! authors' configuration, which lists them. TopFull reads how busy a processor is; here it is the share of time that slots
//! work, without their waiting for others. A caller that goes away counts with the time that it waited. All APIs have the
//! same business priority. With several proxies, each limits what comes through it.

mod api;
mod cluster;
mod step;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tidegate_core::{Instant, Outcome};

use self::api::EntryApi;
use self::cluster::{ApiCluster, change_rates};
use self::step::RateStep;
use self::watch::ServiceLoad;
use crate::contender::{
    Admission, Ask, Contender, ContenderView, Done, Made, RequestId, WorkBegun,
};
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

/// With the step that follows from successes and limit.
pub(super) const KIND: ContenderKind = ContenderKind {
    name: "topfull",
    title: "Rate limits at the entry (TopFull), step by ratio",
    make: Make::Inside(|scenario, _| Ok(Box::new(TopFull::new(scenario, RateStep::Ratio)))),
};

/// With the fixed steps that its authors compare it with.
pub(super) const MIMD: ContenderKind = ContenderKind {
    name: "topfull-mimd",
    title: "Rate limits at the entry (TopFull), fixed steps",
    make: Make::Inside(make_mimd),
};

fn make_mimd(scenario: &Scenario, _seed: u64) -> Made {
    Ok(Box::new(TopFull::new(scenario, RateStep::Mimd)))
}

/// Interval between two changes of rates; every second change also looks for overloads.
const CHANGE_EVERY: Duration = Duration::from_secs(1);
/// Above this a service is overloaded.
const OVERLOADED: f64 = 0.8;

struct TopFull {
    step: RateStep,
    /// The latency objective at the entry.
    objective: Duration,
    loads: Vec<ServiceLoad>,
    /// The services that a request to an upstream may pass, itself included.
    passed: Vec<BTreeSet<usize>>,
    apis: Vec<EntryApi>,
    /// Where in `apis` a path of an upstream is.
    places: Vec<BTreeMap<String, usize>>,
    clusters: Vec<ApiCluster>,
    in_flight: BTreeMap<RequestId, usize>,
    ticks: u64,
}

impl TopFull {
    fn new(scenario: &Scenario, step: RateStep) -> Self {
        let count = scenario.upstreams.len();
        Self {
            step,
            objective: scenario.slo.latency,
            loads: vec![ServiceLoad::default(); count],
            passed: (0..count).map(|entry| passed(scenario, entry)).collect(),
            apis: Vec::new(),
            places: vec![BTreeMap::new(); count],
            clusters: Vec::new(),
            in_flight: BTreeMap::new(),
            ticks: 0,
        }
    }

    fn api_of(&mut self, upstream: usize, path: &str) -> Option<usize> {
        let places = self.places.get_mut(upstream)?;
        if let Some(place) = places.get(path) {
            return Some(*place);
        }
        let place = self.apis.len();
        places.insert(path.to_owned(), place);
        let passes = self.passed.get(upstream).cloned().unwrap_or_default();
        self.apis.push(EntryApi::new(passes));
        Some(place)
    }

    fn overloaded(&self) -> BTreeSet<usize> {
        let loads = self.loads.iter().enumerate();
        let overloaded = loads.filter(|(_, load)| load.busy() > OVERLOADED);
        overloaded.map(|(service, _)| service).collect()
    }

    /// Looks for APIs that pass an overloaded service, and puts them into clusters.
    fn detect(&mut self, overloaded: &BTreeSet<usize>, now: Instant) {
        for service in overloaded {
            let apis = self.apis.iter().enumerate();
            let hit = apis.filter(|(_, api)| api.asked() > 0.0 && api.passes(*service));
            let hit: BTreeSet<usize> = hit.map(|(place, _)| place).collect();
            if !hit.is_empty() {
                self.gather(hit, now);
            }
        }
    }

    /// One cluster of these APIs and of all clusters that have one of them; those that are new are limited from now on.
    fn gather(&mut self, hit: BTreeSet<usize>, now: Instant) {
        for place in &hit {
            if let Some(api) = self.apis.get_mut(*place) {
                api.begin_limit(now);
            }
        }
        let (mut touched, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.clusters)
            .into_iter()
            .partition(|cluster| !cluster.apis.is_disjoint(&hit));
        self.clusters = others;
        let mut gathered = touched.pop().unwrap_or_default();
        gathered.apis.extend(hit);
        for other in touched {
            gathered.apis.extend(other.apis);
        }
        self.clusters.push(gathered);
    }

    /// Changes the rates of all clusters, and splits or ends clusters.
    fn change(&mut self, overloaded: &BTreeSet<usize>, now: Instant) {
        for mut cluster in std::mem::take(&mut self.clusters) {
            if cluster.is_over(&self.apis) {
                for place in &cluster.apis {
                    if let Some(api) = self.apis.get_mut(*place) {
                        api.end_limit();
                    }
                }
                continue;
            }
            let apart = cluster.split(&self.apis, overloaded);
            if apart.is_empty() {
                let change = self.step.change(&cluster.state(&self.apis), self.objective);
                change_rates(&mut self.apis, &cluster.apis, overloaded, (change, now));
                cluster.changes += 1;
            }
            self.clusters.push(cluster);
            self.clusters.extend(apart);
        }
        self.clusters.retain(|cluster| !cluster.apis.is_empty());
    }
}

impl Contender for TopFull {
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission {
        if ask.service.is_some() {
            return Admission::Admit;
        }
        let Some(place) = self.api_of(ask.upstream, ask.path) else {
            return Admission::Admit;
        };
        let api = self.apis.get_mut(place);
        if api.is_some_and(|api| !api.admit(now)) {
            return Admission::shed("rate");
        }
        self.in_flight.insert(ask.request, place);
        Admission::Admit
    }

    fn watches_work(&self) -> bool {
        true
    }

    fn begun(&mut self, begun: &WorkBegun, _now: Instant) {
        if let Some(load) = self.loads.get_mut(begun.upstream) {
            load.add(begun);
        }
    }

    fn complete(&mut self, done: &Done, _now: Instant) {
        let place = self.in_flight.remove(&done.request);
        if let Some(api) = place.and_then(|place| self.apis.get_mut(place)) {
            api.complete(done.latency, done.outcome == Outcome::Success);
        }
    }

    fn tick_every(&self) -> Option<Duration> {
        Some(CHANGE_EVERY)
    }

    fn tick(&mut self, now: Instant) {
        self.ticks += 1;
        for load in &mut self.loads {
            load.roll(CHANGE_EVERY);
        }
        for api in &mut self.apis {
            api.roll();
        }
        let overloaded = self.overloaded();
        self.change(&overloaded, now);
        if self.ticks.is_multiple_of(2) {
            self.detect(&overloaded, now);
        }
    }

    fn view(&self, _upstream: usize, _now: Instant) -> ContenderView {
        ContenderView::default()
    }
}

/// All services that a request to `entry` may pass.
fn passed(scenario: &Scenario, entry: usize) -> BTreeSet<usize> {
    let mut passed = BTreeSet::new();
    let mut open = vec![entry];
    while let Some(service) = open.pop() {
        if !passed.insert(service) {
            continue;
        }
        let calls = scenario.upstreams.get(service).map(|one| &one.calls);
        for call in calls.into_iter().flatten() {
            let mut names = scenario.upstreams.iter();
            open.extend(names.position(|other| other.name == call.upstream));
        }
    }
    passed
}

//! Partial failures, queues, retry storms and cascades over time: static breakers against Tidegate.
//!
//! Five parts. `users`: k6 lets 290 users in, 100 a second, on a service that is partly broken. `chain`: the same in the last of
//! three services. `queue`: 80 to 120 % of the capacity with a waiting line of 20, or of another length. `storm`: five seconds above
//! the capacity, with callers that try up to ten times more, every 2 s or every 5 s, whatever they are told; the publication's begins
//! at the capacity, with a line of 20. `cascade`: the last service of Bookinfo's shape hangs for five seconds; the publication has no
//! such part.
//!
//! The service that breaks or is full is the testbed's standard one: 400 requests a second, 40 ms each on average.

use std::ops::Range;
use std::time::Duration;

use tidegate_sim::arrivals::{self, Arrival};
use tidegate_sim::number::float_len;
use tidegate_sim::profile::{Behaviour, Delay, Errors};
use tidegate_sim::scenario::{Scenario, ScenarioError};
use tidegate_testbed::variant::Variant;

use super::plan::{Study, by, parameters};
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad, Users, still};
use crate::result::{Extent, Parameter, Topology};

pub(super) const STUDY: Study = Study {
    name: "traffic",
    title: "Efficient service mesh traffic management for cloud-native applications (2026), section 4.2",
    cells,
};

/// Users of the publication.
const USERS: u32 = 290;

const OBJECTIVE: Duration = Duration::from_millis(300);

/// Contenders in every part of a full run. A part names those of a reduced run.
const ALL: [Protection; 5] = [
    Protection::NONE,
    Protection::EFFICIENT,
    Protection::Known(Variant::AdaptiveConcurrency),
    Protection::Known(Variant::AdmissionControl),
    Protection::TIDEGATE,
];

/// A part of the service is broken: share of errors, share of late answers, and by how much they are late.
struct ServiceFault {
    name: &'static str,
    errors: f64,
    late: f64,
    by: Duration,
    /// The contender of the publication.
    published: Protection,
}

const FAULTS: [ServiceFault; 2] = [
    ServiceFault {
        name: "late=50% by 3s errors=20%",
        errors: 0.2,
        late: 0.5,
        by: Duration::from_secs(3),
        published: Protection::NONE,
    },
    ServiceFault {
        name: "errors=30% late=20% by 500ms",
        errors: 0.3,
        late: 0.2,
        by: Duration::from_millis(500),
        published: Protection::EFFICIENT,
    },
];

const STORM: &str = include_str!("../../scenarios/storm.toml");
const STORM_AT_CAPACITY: &str = include_str!("../../scenarios/storm-at-capacity.toml");
const CHAIN: &str = include_str!("../../scenarios/chain.toml");
const QUEUE: &str = include_str!("../../scenarios/queue.toml");
const CASCADE: &str = include_str!("../../scenarios/cascade.toml");

/// Lengths of the waiting line at loads around the capacity; the publication's is 20.
const QUEUES: [u32; 4] = [10, 20, 50, 100];

/// The length of the publication.
const QUEUE_LENGTH: u32 = 20;

/// The parameter with the requests before the spike; where it is missing nothing is tried again before.
pub(crate) const REQUESTS_BEFORE_SPIKE: &str = "requests_before_spike";

/// When the load of the storms is above the capacity, in seconds from the beginning.
pub(crate) fn storm_spike() -> Option<Range<f64>> {
    let storm = Scenario::parse(STORM, "storm.toml").ok()?;
    let load = &storm.clients.first()?.load;
    let mut points = load
        .iter()
        .skip_while(|point| point.x.is_none_or(|x| x <= 1.0));
    let mut next = || points.next().map(|point| point.at.as_secs_f64());
    Some(next()?..next()?)
}

fn cells(extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    for repetition in 0..by(extent, 1, 3) {
        for fault in &FAULTS {
            let few = [fault.published, Protection::TIDEGATE];
            for contender in by(extent, &few[..], &ALL[..]) {
                cells.push(users(fault, *contender, repetition, extent)?);
            }
            let few = [Protection::NONE, Protection::TIDEGATE];
            for contender in by(extent, &few[..], &ALL[..]) {
                cells.push(chain(fault, *contender, repetition, extent)?);
            }
        }
        let few = [Protection::EFFICIENT, Protection::TIDEGATE];
        let contenders = by(extent, &few[..], &ALL[..]);
        for percent in by(extent, &[80, 100, 120][..], &[80, 90, 100, 110, 120][..]) {
            for length in by(extent, few_queues(*percent), &QUEUES[..]) {
                for contender in contenders {
                    cells.push(queue((*percent, *length), *contender, repetition, extent)?);
                }
            }
        }
        for (every_s, length_s) in [(2, 18), (5, 22)] {
            let length_s = by(extent, length_s, 60);
            for length in by(extent, &[QUEUE_LENGTH][..], &QUEUES[..]) {
                for contender in contenders {
                    let times = (every_s, length_s);
                    cells.push(storm(Some(*length), times, *contender, repetition)?);
                }
            }
            for contender in contenders {
                cells.push(storm(None, (every_s, length_s), *contender, repetition)?);
            }
        }
        let few = [
            Protection::NONE,
            Protection::EFFICIENT,
            Protection::TIDEGATE,
        ];
        for contender in by(extent, &few[..], &ALL[..]) {
            let scenario = Scenario::parse(CASCADE, "cascade.toml")?;
            let known = [("load_rps", 100_u32.into()), ("setup", "bookinfo".into())];
            cells.push(cell(
                "cascade",
                known,
                *contender,
                repetition,
                (scenario, CellLoad::Cascade),
            ));
        }
    }
    Ok(cells)
}

fn cell<const N: usize>(
    name: &str,
    known: [(&str, Parameter); N],
    contender: Protection,
    repetition: u32,
    (scenario, load): (Scenario, CellLoad),
) -> Cell {
    let objective_ms = scenario.slo.latency.as_secs_f64() * 1_000.0;
    let mut known = parameters(known);
    known.insert("objective_ms".to_owned(), objective_ms.into());
    Cell {
        study: STUDY.name,
        name: name.to_owned(),
        parameters: known,
        topology: match load {
            CellLoad::Cascade | CellLoad::UsersOfChain(_) => Topology::Sidecar,
            _ => Topology::Shared,
        },
        contender,
        repetition,
        clients: 1,
        servers: 1,
        scenario,
        load,
    }
}

fn users(
    fault: &ServiceFault,
    contender: Protection,
    repetition: u32,
    extent: Extent,
) -> Result<Cell, ScenarioError> {
    let upstream = fault.on(Behaviour::default());
    let load = crowd(extent);
    let played = (still(upstream, OBJECTIVE)?, CellLoad::Users(load));
    let name = format!("users {}", fault.name);
    Ok(cell(&name, fault.known(), contender, repetition, played))
}

/// The same fault in the last of three services.
fn chain(
    fault: &ServiceFault,
    contender: Protection,
    repetition: u32,
    extent: Extent,
) -> Result<Cell, ScenarioError> {
    let mut scenario = Scenario::parse(CHAIN, "chain.toml")?;
    if let Some(last) = scenario.upstreams.last_mut() {
        last.behaviour = fault.on(std::mem::take(&mut last.behaviour));
    }
    let played = (scenario, CellLoad::UsersOfChain(crowd(extent)));
    let name = format!("chain {}", fault.name);
    Ok(cell(&name, fault.known(), contender, repetition, played))
}

/// The publication's users.
const fn crowd(extent: Extent) -> Users {
    Users {
        users: USERS,
        per_second: 100.0,
        length: Duration::from_secs(by(extent, 12, 60)),
        think: Duration::from_secs(1),
    }
}

impl ServiceFault {
    /// A behaviour with this fault.
    fn on(&self, behaviour: Behaviour) -> Behaviour {
        Behaviour {
            errors: Some(Errors {
                share: self.errors,
                status: 500,
            }),
            // Late requests are drawn among those that do not fail.
            delay: Some(Delay {
                share: self.late / (1.0 - self.errors),
                by: self.by,
            }),
            ..behaviour
        }
    }

    fn known(&self) -> [(&'static str, Parameter); 4] {
        [
            ("users", USERS.into()),
            ("errors", self.errors.into()),
            ("late", self.late.into()),
            ("late_ms", (self.by.as_secs_f64() * 1_000.0).into()),
        ]
    }
}

/// Lengths of the waiting line in a reduced run: others than the publication's only above the capacity.
const fn few_queues(percent: u32) -> &'static [u32] {
    if percent > 100 { &[10, 20, 100] } else { &[20] }
}

fn queue(
    (percent, length): (u32, u32),
    contender: Protection,
    repetition: u32,
    extent: Extent,
) -> Result<Cell, ScenarioError> {
    let mut scenario = Scenario::parse(QUEUE, "queue.toml")?;
    bound(&mut scenario, length);
    scenario.duration = Duration::from_secs(by(extent, 6, 30));
    let points = scenario
        .clients
        .iter_mut()
        .flat_map(|client| &mut client.load);
    for point in points {
        point.x = Some(f64::from(percent) / 100.0);
    }
    let known = [
        ("offered_percent", percent.into()),
        ("queue", length.into()),
    ];
    let name = if length == QUEUE_LENGTH {
        format!("queue offered={percent}%")
    } else {
        format!("queue offered={percent}% length={length}")
    };
    Ok(cell(
        &name,
        known,
        contender,
        repetition,
        (scenario, CellLoad::Story),
    ))
}

/// A spike of five seconds with callers that try again: at the capacity with a waiting line of `queue`, as published; without
/// one, from 70 to 150 % of the capacity.
fn storm(
    queue: Option<u32>,
    (every_s, length_s): (u32, u64),
    contender: Protection,
    repetition: u32,
) -> Result<Cell, ScenarioError> {
    let mut scenario = match queue {
        Some(_) => Scenario::parse(STORM_AT_CAPACITY, "storm-at-capacity.toml")?,
        None => Scenario::parse(STORM, "storm.toml")?,
    };
    scenario.duration = Duration::from_secs(length_s);
    let retries = scenario
        .clients
        .iter_mut()
        .filter_map(|client| client.retries.as_mut());
    for retries in retries {
        retries.backoff = Duration::from_secs(every_s.into());
    }
    let mut name = format!("storm retry={every_s}s");
    let mut known = vec![
        ("retry_every_s", every_s.into()),
        ("retries", 10_u32.into()),
    ];
    if let (Some(length), Some(spike)) = (queue, storm_spike()) {
        bound(&mut scenario, length);
        name = format!("storm load=100% queue={length} retry={every_s}s");
        known.push(("queue", length.into()));
        let is_before = |arrival: &Arrival| arrival.at.as_secs_f64() < spike.start;
        let before = arrivals::schedule(&scenario);
        let before = float_len(before.into_iter().filter(is_before).count());
        known.push((REQUESTS_BEFORE_SPIKE, before.into()));
    }
    let mut cell = cell(
        &name,
        [],
        contender,
        repetition,
        (scenario, CellLoad::Story),
    );
    cell.parameters.extend(
        known
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value)),
    );
    Ok(cell)
}

/// Bounds the waiting line of the service.
fn bound(scenario: &mut Scenario, length: u32) {
    let queues = scenario.upstreams.iter_mut();
    let queues = queues.filter_map(|profile| profile.behaviour.queue.as_mut());
    for queue in queues {
        queue.max = length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spike_of_the_storms_is_known() {
        assert_eq!(storm_spike(), Some(4.0..9.0));
        let other = Scenario::parse(STORM_AT_CAPACITY, "s").unwrap();
        let points: Vec<_> = other.clients[0]
            .load
            .iter()
            .map(|at| (at.at, at.x))
            .collect();
        let second = Duration::from_secs;
        let expected = [(0, 1.0), (4, 1.2), (9, 1.0)].map(|(at, x)| (second(at), Some(x)));
        assert_eq!(points, expected, "the same spike");
    }

    #[test]
    fn a_fault_in_a_chain_is_in_its_last_service_alone() {
        let cell = chain(&FAULTS[0], Protection::NONE, 0, Extent::Reduced).unwrap();
        let broken: Vec<bool> = cell
            .scenario
            .upstreams
            .iter()
            .map(|profile| profile.behaviour.errors.is_some())
            .collect();
        assert_eq!(broken, [false, false, true]);
    }

    #[test]
    fn the_waiting_line_of_a_cell_is_that_of_its_name() {
        let cells = cells(Extent::Full).unwrap();
        let of = |name: &str| {
            let cell = cells.iter().find(|cell| cell.name == name).unwrap();
            cell.scenario.upstreams[0]
                .behaviour
                .queue
                .map(|queue| queue.max)
        };
        assert_eq!(of("queue offered=90%"), Some(20));
        assert_eq!(of("queue offered=120% length=50"), Some(50));
        assert_eq!(of("storm load=100% queue=10 retry=5s"), Some(10));
        assert_eq!(of("storm retry=5s"), None);
    }
}

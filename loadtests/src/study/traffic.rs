//! Partial failures, queues, retry storms and cascades over time: static breakers against Tidegate.
//!
//! Four parts. `users`: k6 lets 290 users in, 100 a second, on a service that is partly broken. `queue`: 80 to
//! 120 % of the capacity with a waiting line of 20. `storm`: five seconds above the capacity, with callers that try up
//! to ten times more, every 2 s or every 5 s, whatever they are told. `cascade`: the last service of Bookinfo's shape
//! hangs for five seconds; the publication has no such part.
//!
//! The service of the first three is the testbed's standard one: 400 requests a second, 40 ms each on average.

use std::ops::Range;
use std::time::Duration;

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
        name: "users late=50% by 3s errors=20%",
        errors: 0.2,
        late: 0.5,
        by: Duration::from_secs(3),
        published: Protection::NONE,
    },
    ServiceFault {
        name: "users errors=30% late=20% by 500ms",
        errors: 0.3,
        late: 0.2,
        by: Duration::from_millis(500),
        published: Protection::EFFICIENT,
    },
];

const STORM: &str = include_str!("../../scenarios/storm.toml");
const QUEUE: &str = include_str!("../../scenarios/queue.toml");
const CASCADE: &str = include_str!("../../scenarios/cascade.toml");

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
        }
        let few = [Protection::EFFICIENT, Protection::TIDEGATE];
        let contenders = by(extent, &few[..], &ALL[..]);
        for percent in by(extent, &[80, 100, 120][..], &[80, 90, 100, 110, 120][..]) {
            for contender in contenders {
                cells.push(queue(*percent, *contender, repetition, extent)?);
            }
        }
        for (every_s, length_s) in [(2, 18), (5, 22)] {
            for contender in contenders {
                let length_s = by(extent, length_s, 60);
                cells.push(storm(every_s, length_s, *contender, repetition)?);
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
        topology: if load == CellLoad::Cascade {
            Topology::Sidecar
        } else {
            Topology::Shared
        },
        contender,
        repetition,
        clients: 1,
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
    let upstream = Behaviour {
        errors: Some(Errors {
            share: fault.errors,
            status: 500,
        }),
        // Late requests are drawn among those that do not fail.
        delay: Some(Delay {
            share: fault.late / (1.0 - fault.errors),
            by: fault.by,
        }),
        ..Behaviour::default()
    };
    let load = Users {
        users: 290,
        per_second: 100.0,
        length: Duration::from_secs(by(extent, 12, 60)),
        think: Duration::from_secs(1),
    };
    let known = [
        ("users", load.users.into()),
        ("errors", fault.errors.into()),
        ("late", fault.late.into()),
        ("late_ms", (fault.by.as_secs_f64() * 1_000.0).into()),
    ];
    let played = (still(upstream, OBJECTIVE)?, CellLoad::Users(load));
    Ok(cell(fault.name, known, contender, repetition, played))
}

fn queue(
    percent: u32,
    contender: Protection,
    repetition: u32,
    extent: Extent,
) -> Result<Cell, ScenarioError> {
    let mut scenario = Scenario::parse(QUEUE, "queue.toml")?;
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
        ("queue", 20_u32.into()),
    ];
    Ok(cell(
        &format!("queue offered={percent}%"),
        known,
        contender,
        repetition,
        (scenario, CellLoad::Story),
    ))
}

fn storm(
    every_s: u32,
    length_s: u64,
    contender: Protection,
    repetition: u32,
) -> Result<Cell, ScenarioError> {
    let mut scenario = Scenario::parse(STORM, "storm.toml")?;
    scenario.duration = Duration::from_secs(length_s);
    let retries = scenario
        .clients
        .iter_mut()
        .filter_map(|client| client.retries.as_mut());
    for retries in retries {
        retries.backoff = Duration::from_secs(every_s.into());
    }
    let known = [
        ("retry_every_s", every_s.into()),
        ("retries", 10_u32.into()),
    ];
    Ok(cell(
        &format!("storm retry={every_s}s"),
        known,
        contender,
        repetition,
        (scenario, CellLoad::Story),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spike_of_the_storms_is_known() {
        assert_eq!(storm_spike(), Some(4.0..9.0));
    }
}

//! Users of a partly broken service: alone, and as the last of a chain.

use std::time::Duration;

use tidegate_sim::profile::{Behaviour, Delay, Errors};
use tidegate_sim::scenario::{Scenario, ScenarioError};

use super::super::plan::by;
use super::cell::cell;
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad, Users, still};
use crate::result::{Extent, Parameter};

const CHAIN: &str = include_str!("../../../scenarios/chain.toml");

/// Number of users in the publication.
const USERS: u32 = 290;

const OBJECTIVE: Duration = Duration::from_millis(300);

/// A partial fault of the service: share of errors, share of late answers, and their delay.
pub(super) struct ServiceFault {
    name: &'static str,
    errors: f64,
    late: f64,
    by: Duration,
    /// The contender of the publication.
    pub(super) published: Protection,
}

pub(super) const FAULTS: [ServiceFault; 2] = [
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

pub(super) fn users(
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
pub(super) fn chain(
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
    /// A behavior with this fault.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

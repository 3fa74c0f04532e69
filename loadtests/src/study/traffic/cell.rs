//! The common properties of all cells of the study.

use tidegate_sim::scenario::Scenario;

use super::super::plan::parameters;
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad};
use crate::result::{Parameter, Topology};

/// Name of the study.
pub(super) const NAME: &str = "traffic";

pub(super) fn cell<const N: usize>(
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
        study: NAME,
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

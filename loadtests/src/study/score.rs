//! One score from p95, p99, throughput, CPU and memory: the cells from which the report computes it.
//!
//! fortio in a closed loop at full rate over 32 connections, against an upstream that answers at once.

use std::time::Duration;

use tidegate_sim::scenario::ScenarioError;
use tidegate_testbed::variant::Variant;

use super::plan::{LAX, Study, by, instant, parameters};
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad, Fortio, MeasurementEnd, Pace, Wire, still};
use crate::result::{Extent, Topology};

pub(super) const STUDY: Study = Study {
    name: "score",
    title: "Performance and security of sidecar proxies (2026): composite SLO score",
    cells,
};

const CONNECTIONS: u32 = 32;

fn cells(extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    for repetition in 0..by(extent, 2, 5) {
        // The native module is added separately, beside Tidegate.
        for variant in Variant::ALL
            .into_iter()
            .filter(|one| *one != Variant::Native)
        {
            cells.push(Cell {
                study: STUDY.name,
                name: format!("connections={CONNECTIONS}"),
                parameters: parameters([("connections", CONNECTIONS.into())]),
                topology: Topology::Shared,
                contender: Protection::Known(variant),
                repetition,
                clients: 1,
                servers: 1,
                scenario: still(instant(), LAX)?,
                load: CellLoad::Fortio(Fortio {
                    qps: None,
                    connections: CONNECTIONS,
                    until: MeasurementEnd::Passed(Duration::from_secs(by(extent, 3, 30))),
                    warm_up: Duration::from_millis(by(extent, 1_000, 5_000)),
                    close: false,
                    wire: Wire::Fast,
                    pace: Pace::Lockstep,
                }),
            });
        }
    }
    Ok(cells)
}

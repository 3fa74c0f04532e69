//! The cost of proxies as the number of replicas grows: no proxy, a sidecar beside each, one shared proxy.
//!
//! The study used oha; fortio in a closed loop at full rate does the same: a fixed number of requests over 32, 64 and 128
//! connections. One process of fortio calls each replica, or all processes call the shared proxy, so that direct calls and
//! sidecars need no load balancer. Without a proxy is the publication's baseline.

use std::time::Duration;

use tidegate_sim::scenario::ScenarioError;

use super::plan::{LAX, Study, by, instant, parameters};
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad, Fortio, MeasurementEnd, Pace, Wire, still};
use crate::result::{Extent, Topology};

pub(super) const STUDY: Study = Study {
    name: "replicas",
    title: "Test report: Istio ambient vs sidecar (2024)",
    cells,
};

const CONNECTIONS: [u32; 3] = [32, 64, 128];
/// The connections of a reduced run.
const MIDDLE: [u32; 1] = [64];
const REPLICAS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// The replicas of a reduced run.
const FEW: [u32; 3] = [1, 4, 8];

/// The path of a request.
const WAYS: [(Topology, Protection); 5] = [
    (Topology::Direct, Protection::NONE),
    (Topology::Sidecar, Protection::NONE),
    (Topology::Sidecar, Protection::TIDEGATE),
    (Topology::Shared, Protection::NONE),
    (Topology::Shared, Protection::TIDEGATE),
];

fn cells(extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    for repetition in 0..by(extent, 1, 3) {
        for connections in by(extent, &MIDDLE[..], &CONNECTIONS[..]) {
            for replicas in by(extent, &FEW[..], &REPLICAS[..]) {
                for (topology, contender) in WAYS {
                    cells.push(Cell {
                        study: STUDY.name,
                        name: format!("connections={connections} replicas={replicas}"),
                        parameters: parameters([
                            ("connections", (*connections).into()),
                            ("replicas", (*replicas).into()),
                        ]),
                        topology,
                        contender,
                        repetition,
                        clients: *replicas,
                        servers: *replicas,
                        scenario: still(instant(), LAX)?,
                        load: CellLoad::Fortio(Fortio {
                            qps: None,
                            connections: *connections,
                            until: MeasurementEnd::Sent(by(extent, 10_000, 300_000)),
                            warm_up: Duration::from_millis(by(extent, 300, 3_000)),
                            close: false,
                            pace: Pace::Lockstep,
                            wire: Wire::Fast,
                        }),
                    });
                }
            }
        }
    }
    Ok(cells)
}

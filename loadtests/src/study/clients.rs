//! The cost of proxies as the number of clients grows: sidecars compared with one shared proxy, with and without the filter.
//!
//! fortio in a closed loop at full rate: a fixed number of requests over 32, 64 and 128 connections, divided among 1 to 8
//! clients. This is our variant of [`super::replicas`]: the publication adds servers, not clients.

use std::time::Duration;

use tidegate_sim::scenario::ScenarioError;

use super::plan::{LAX, Study, by, instant, parameters};
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad, Fortio, MeasurementEnd, Pace, Wire, still};
use crate::result::{Extent, Topology};

pub(super) const STUDY: Study = Study {
    name: "clients",
    title: "Saturated closed loops with 1 to 8 clients (ours)",
    cells,
};

const CONNECTIONS: [u32; 3] = [32, 64, 128];
const CLIENTS: [u32; 5] = [1, 2, 4, 6, 8];
/// A reduced run varies the connections only with this many clients,
const SOME: u32 = 4;
/// and the clients only with this many connections.
const MIDDLE: u32 = 64;

fn cells(extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    for repetition in 0..by(extent, 1, 3) {
        for connections in CONNECTIONS {
            for clients in CLIENTS {
                if extent == Extent::Reduced && connections != MIDDLE && clients != SOME {
                    continue;
                }
                for contender in [Protection::NONE, Protection::TIDEGATE] {
                    for topology in [Topology::Sidecar, Topology::Shared] {
                        let load = Fortio {
                            qps: None,
                            connections,
                            until: MeasurementEnd::Sent(by(extent, 10_000, 300_000)),
                            warm_up: Duration::from_millis(by(extent, 300, 3_000)),
                            close: false,
                            wire: Wire::Fast,
                            pace: Pace::Lockstep,
                        };
                        cells.push(cell(
                            (topology, contender),
                            (connections, clients),
                            repetition,
                            load,
                        )?);
                    }
                }
            }
        }
    }
    Ok(cells)
}

fn cell(
    (topology, contender): (Topology, Protection),
    (connections, clients): (u32, u32),
    repetition: u32,
    load: Fortio,
) -> Result<Cell, ScenarioError> {
    Ok(Cell {
        study: STUDY.name,
        name: format!("connections={connections} clients={clients}"),
        parameters: parameters([
            ("connections", connections.into()),
            ("clients", clients.into()),
        ]),
        topology,
        contender,
        repetition,
        clients,
        servers: 1,
        scenario: still(instant(), LAX)?,
        load: CellLoad::Fortio(load),
    })
}

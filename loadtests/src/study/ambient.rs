//! The latency that a proxy and the filter add to a request: direct, through Envoy, through Envoy with the filter.
//!
//! fortio at three rates, at the lowest also with a connection for each request. The upstream answers at once. Each cell is
//! played three times, so that a difference can be distinguished from noise.
//!
//! At one rate HTTP/2 and mutual TLS between client and proxy vary separately. They need another client of fortio, so
//! HTTP/1.1 is also played with that client. Mutual TLS needs a proxy.

use std::time::Duration;

use tidegate_sim::scenario::ScenarioError;

use super::plan::{LAX, Study, by, instant, parameters};
use crate::contender::Protection;
use crate::matrix::{Cell, CellLoad, Fortio, MeasurementEnd, Pace, Wire, still};
use crate::result::{Extent, Topology};

pub(super) const STUDY: Study = Study {
    name: "ambient",
    title: "Ambient Mesh: Can Sidecar-less Istio Make Applications Faster? (2024)",
    cells,
};

/// Requests a second, connections, and whether each request has a connection of its own.
const RATES: [(u32, u32, bool); 4] = [
    (100, 10, false),
    (100, 10, true),
    (1_000, 100, false),
    (4_000, 400, false),
];

/// The path of a request.
const WAYS: [(Topology, Protection); 3] = [
    (Topology::Direct, Protection::NONE),
    (Topology::Shared, Protection::NONE),
    (Topology::Shared, Protection::TIDEGATE),
];

const REPETITIONS: u32 = 3;

/// The load at which the protocol varies: requests a second, and connections.
const WIRED_AT: (u32, u32) = (1_000, 100);

const WIRES: [Wire; 4] = [
    Wire::Http1,
    Wire::Http2,
    Wire::MutualTls,
    Wire::MutualTlsHttp2,
];

fn cells(extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    // The repetition is the outermost loop, so that slow changes of the machine affect all cells alike.
    for repetition in 0..REPETITIONS {
        for (qps, connections, close) in RATES {
            for way in WAYS {
                let wire = (Wire::Fast, close);
                cells.push(cell(extent, (qps, connections), wire, way, repetition)?);
            }
        }
        for wire in WIRES {
            for way in WAYS {
                if wire.is_tls() && way.0 == Topology::Direct {
                    continue;
                }
                cells.push(cell(extent, WIRED_AT, (wire, false), way, repetition)?);
            }
        }
    }
    Ok(cells)
}

fn cell(
    extent: Extent,
    (qps, connections): (u32, u32),
    (wire, close): (Wire, bool),
    (topology, contender): (Topology, Protection),
    repetition: u32,
) -> Result<Cell, ScenarioError> {
    let mut name = format!("qps={qps} connections={connections}");
    if wire != Wire::Fast {
        name = format!("{name} wire={}", wire.name());
    }
    if close {
        name += " close";
    }
    Ok(Cell {
        study: STUDY.name,
        name,
        parameters: parameters([
            ("qps", qps.into()),
            ("connections", connections.into()),
            ("close", close.into()),
            ("wire", wire.name().into()),
        ]),
        topology,
        contender,
        repetition,
        clients: 1,
        servers: 1,
        scenario: still(instant(), LAX)?,
        load: CellLoad::Fortio(Fortio {
            qps: Some(qps.into()),
            connections,
            until: MeasurementEnd::Passed(Duration::from_millis(by(extent, 2_000, 30_000))),
            warm_up: Duration::from_millis(by(extent, 500, 3_000)),
            close,
            pace: Pace::Lockstep,
            wire,
        }),
    })
}

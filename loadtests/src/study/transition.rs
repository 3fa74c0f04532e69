//! From sidecars to a shared proxy: the same static values on both sides, and the same policy of Tidegate's.
//!
//! fortio at 100 to 4,000 requests a second over 8 to 256 connections; one knob of Istio's `connectionPool` is turned
//! at a time. The upstream serves 16 requests at a time in 8 ms each: 2,000 a second, and 125 a second through one
//! connection, as the published service did. Connections send spread over time; told nothing, fortio lets all of them send
//! at the same instants, which is another load and is added as `bursts`. The figures 3 to 8 of the publication are qps, success and latency over
//! the knobs and over the loads.

use std::time::Duration;

use tidegate_sim::profile::{Behaviour, ServiceTime};
use tidegate_sim::scenario::ScenarioError;
use tidegate_testbed::variant::Variant;

use super::plan::{LAX, Study, by, parameters};
use crate::contender::{Pool, Protection};
use crate::matrix::{Cell, CellLoad, Fortio, MeasurementEnd, Pace, still};
use crate::result::{Extent, Topology};

pub(super) const STUDY: Study = Study {
    name: "transition",
    title: "Adaptive Circuit Breaker Configuration for Transition from Istio Sidecar to Ambient Mode (2025)",
    cells,
};

/// Requests a second, and connections.
type Rate = (u32, u32);

/// The loads of the publication.
const RATES: [Rate; 6] = [
    (100, 8),
    (200, 16),
    (500, 32),
    (1_000, 64),
    (2_000, 128),
    (4_000, 256),
];

/// The load under which one knob is turned in a reduced run.
const TURNED_AT: [Rate; 1] = [(500, 32)];

/// Clients, each with its own sidecar.
const CLIENTS: [u32; 5] = [1, 2, 4, 6, 8];

/// Clients of a reduced run, where their number is not what changes.
const TWO: [u32; 1] = [2];

/// The best static values for a known capacity and two sidecars: 8 of the 16 slots for each.
const FITTED: Pool = Pool {
    connections: 8,
    pending: 8,
    requests_per_connection: 0,
};

/// The value of each knob while another one is turned.
const FIRM: Pool = Pool {
    connections: 1,
    pending: 32,
    requests_per_connection: 0,
};

/// The loads at which all connections also send at the same instants: a quarter of the capacity, and all of it.
const BURSTS: [Rate; 2] = [(500, 32), (2_000, 128)];

/// What the names of their cells begin with.
const IN_BURSTS: &str = "bursts";

/// Envoy's own filters that adapt, with the settings of their documentation.
const ADAPTIVE: [Protection; 2] = [
    Protection::Known(Variant::AdaptiveConcurrency),
    Protection::Known(Variant::AdmissionControl),
];

/// The load at which clients are counted, and adaptive filters compared, in a reduced run: the upstream's capacity is offered twice over.
const OVERLOAD: Rate = (4_000, 256);

fn cells(extent: Extent) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    let turned = by(extent, &TURNED_AT[..], &RATES[..]);
    let clients = by(extent, &TWO[..], &CLIENTS[..]);
    for (knob, pool) in pools(extent) {
        let contender = Protection::Static(pool);
        for (rate, clients) in pairs(turned, clients) {
            cells.extend(pair(extent, (&knob, contender), rate, clients, 0)?);
        }
    }
    for repetition in 0..by(extent, 1, 3) {
        for contender in [Protection::Static(FITTED), Protection::TIDEGATE] {
            let load = ("load", contender);
            for (rate, clients) in pairs(&RATES, clients) {
                cells.extend(pair(extent, load, rate, clients, repetition)?);
            }
            for (rate, clients) in pairs(&BURSTS, clients) {
                cells.extend(pair(
                    extent,
                    (IN_BURSTS, contender),
                    rate,
                    clients,
                    repetition,
                )?);
            }
            // A full run has these already.
            for clients in by(extent, &[4, 8][..], &[]) {
                cells.extend(pair(extent, load, OVERLOAD, *clients, repetition)?);
            }
        }
        for contender in ADAPTIVE {
            let load = ("load", contender);
            let rates = by(extent, &[OVERLOAD][..], &RATES[..]);
            for (rate, clients) in pairs(rates, clients) {
                cells.extend(pair(extent, load, rate, clients, repetition)?);
            }
        }
    }
    Ok(cells)
}

fn pairs<'a>(rates: &'a [Rate], clients: &'a [u32]) -> impl Iterator<Item = (Rate, u32)> + 'a {
    rates
        .iter()
        .flat_map(move |rate| clients.iter().map(move |clients| (*rate, *clients)))
}

/// Each knob with its values, by the name that its cells begin with.
fn pools(extent: Extent) -> Vec<(String, Pool)> {
    let powers = by(extent, &[1, 4, 32][..], &[1, 2, 4, 8, 16, 32][..]);
    let lives = by(extent, &[0, 1, 16][..], &[0, 1, 2, 4, 8, 16][..]);
    let connections = powers.iter().map(|value| {
        let pool = Pool {
            connections: *value,
            ..FIRM
        };
        (format!("maxConnections={value}"), pool)
    });
    // A line in which requests wait needs a knob that makes them wait.
    let pending = powers.iter().map(|value| {
        let pool = Pool {
            connections: 2,
            pending: *value,
            ..FIRM
        };
        (format!("http1MaxPendingRequests={value}"), pool)
    });
    let requests = lives.iter().map(|value| {
        let pool = Pool {
            connections: 8,
            requests_per_connection: *value,
            ..FIRM
        };
        (format!("maxRequestsPerConnection={value}"), pool)
    });
    connections.chain(pending).chain(requests).collect()
}

/// The same cell with sidecars and with a shared proxy.
fn pair(
    extent: Extent,
    (knob, contender): (&str, Protection),
    (qps, connections): Rate,
    clients: u32,
    repetition: u32,
) -> Result<[Cell; 2], ScenarioError> {
    let upstream = Behaviour {
        slots: 16,
        service: ServiceTime::constant(Duration::from_millis(8)),
        ..Behaviour::default()
    };
    let mut known = parameters([
        ("qps", qps.into()),
        ("connections", connections.into()),
        ("clients", clients.into()),
        ("capacity_rps", 2_000_u32.into()),
        ("objective_ms", 250_u32.into()),
    ]);
    if let Protection::Static(pool) = contender {
        known.extend(parameters([
            ("maxConnections", pool.connections.into()),
            ("http1MaxPendingRequests", pool.pending.into()),
            (
                "maxRequestsPerConnection",
                pool.requests_per_connection.into(),
            ),
        ]));
    }
    let scenario = still(upstream, LAX)?;
    let load = Fortio {
        qps: Some(qps.into()),
        connections,
        until: MeasurementEnd::Passed(Duration::from_secs(by(extent, 5, 30))),
        warm_up: Duration::from_millis(by(extent, 800, 5_000)),
        close: false,
        pace: if knob == IN_BURSTS {
            Pace::Lockstep
        } else {
            Pace::Spread
        },
    };
    Ok([Topology::Sidecar, Topology::Shared].map(|topology| Cell {
        study: STUDY.name,
        name: format!("{knob} qps={qps} connections={connections} clients={clients}"),
        parameters: known.clone(),
        topology,
        contender,
        repetition,
        clients,
        scenario: scenario.clone(),
        load: CellLoad::Fortio(load),
    }))
}

//! From sidecars to a shared proxy: the same static values on both sides, and the same policy of Tidegate.
//!
//! fortio at 100 to 4,000 requests a second over 8 to 256 connections; one setting of Istio's `connectionPool` varies at a
//! time. The upstream serves 16 requests at a time in 8 ms each: 2,000 a second, and 125 a second through one connection,
//! like the published service. The connections' requests are spread over time; by default, fortio sends on all of them at the
//! same instants, which is a different load and is added as `bursts`. Figures 3 to 8 of the publication are qps, success and
//! latency over the settings and over the loads. Its conclusion, that values must be tuned in proportion to the clients, is
//! played as well: values multiplied by the number of clients, and the result of `tidegate migrate` for them. Every run has
//! three repetitions of its reversal, in which sidecars are behind at an extreme load and ahead below it, and of
//! `maxRequestsPerConnection` from 1,000 requests a second on.

use std::time::Duration;

use tidegate_sim::profile::{Behaviour, ServiceTime};
use tidegate_sim::scenario::ScenarioError;
use tidegate_testbed::variant::Variant;

use super::plan::{LAX, Study, by, parameters};
use crate::contender::{PoolSettings, Protection};
use crate::matrix::{Cell, CellLoad, Fortio, MeasurementEnd, Pace, Wire, still};
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

/// Values of `maxConnections` and `http1MaxPendingRequests`.
const POWERS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Values of `maxRequestsPerConnection`; 0: unlimited.
const LIVES: [u32; 6] = [0, 1, 2, 4, 8, 16];

/// The values of a reduced run.
const FEW_LIVES: [u32; 3] = [0, 1, 16];

/// Names of the parameters of static breakers.
const POOL: [&str; 3] = [
    "maxConnections",
    "http1MaxPendingRequests",
    "maxRequestsPerConnection",
];

/// The loads of scaled and migrated values in a reduced run: half of the capacity, and twice the capacity.
const SCALED_AT: [Rate; 2] = [(1_000, 64), (4_000, 256)];

/// The load under which one setting varies in a reduced run.
const TURNED_AT: [Rate; 1] = [(500, 32)];

/// The load at which the publication finds sidecars behind: `maxConnections` varies there in every run.
const EXTREME: Rate = (4_000, 256);

/// `maxConnections` in a reduced run at [`EXTREME`]: both ends, and the value for which the publication gives figures.
const AT_EXTREME: [u32; 3] = [1, 8, 32];

/// From this rate on `maxRequestsPerConnection` makes a difference in the publication.
const MANY_QPS: u32 = 1_000;

/// Repetitions of results that documents quote.
const QUOTED: u32 = 3;

/// Clients, each with its own sidecar.
const CLIENTS: [u32; 5] = [1, 2, 4, 6, 8];

/// Clients of a reduced run, except where their number varies.
const TWO: [u32; 1] = [2];

/// The best static values for a known capacity and two sidecars: 8 of the 16 slots for each.
const FITTED: PoolSettings = PoolSettings {
    connections: 8,
    pending: 8,
    requests_per_connection: 0,
};

/// The value of each setting while another one varies.
const FIRM: PoolSettings = PoolSettings {
    connections: 1,
    pending: 32,
    requests_per_connection: 0,
};

/// The loads at which all connections also send at the same instants: a quarter of the capacity, and all of it.
const BURSTS: [Rate; 2] = [(500, 32), (2_000, 128)];

/// Prefix of the names of their cells.
const IN_BURSTS: &str = "bursts";

/// Envoy's own adaptive filters, with the settings of their documentation.
const ADAPTIVE: [Protection; 2] = [
    Protection::Known(Variant::AdaptiveConcurrency),
    Protection::Known(Variant::AdmissionControl),
];

/// The load at which the number of clients varies, and adaptive filters are compared, in a reduced run: twice the upstream's
/// capacity.
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
    cells.extend(extremes(extent, clients)?);
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
        let rates = by(extent, &SCALED_AT[..], &RATES[..]);
        let clients_of = by(extent, &[2, 8][..], &CLIENTS[..]);
        for (rate, clients) in pairs(rates, clients_of) {
            // For sidecars these values are those of the cells above.
            let scaled = Protection::Scaled(FITTED.times(clients));
            let [_, shared] = pair(extent, ("load", scaled), rate, clients, repetition)?;
            cells.push(shared);
            for mut cell in pair(extent, ("load", scaled), rate, clients, repetition)? {
                let max = match cell.topology {
                    Topology::Shared => FITTED.connections * clients,
                    Topology::Sidecar | Topology::Direct => FITTED.connections,
                };
                cell.contender = Protection::Migrated { max };
                cell.parameters
                    .retain(|name, _| !POOL.contains(&name.as_str()));
                cell.parameters.insert("limit.max".to_owned(), max.into());
                cells.push(cell);
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

/// Varies settings at the loads for which the publication has separate findings, beyond the repetition of [`cells`].
fn extremes(extent: Extent, clients: &[u32]) -> Result<Vec<Cell>, ScenarioError> {
    let mut cells = Vec::new();
    // A full run has the first repetition already.
    for repetition in by(extent, 0, 1)..QUOTED {
        for (knob, pool) in pools(Extent::Full) {
            let contender = Protection::Static(pool);
            let is_connections = knob.starts_with("maxConnections");
            let is_requests = knob.starts_with("maxRequestsPerConnection");
            let at_extreme = by(extent, &AT_EXTREME[..], &POWERS[..]);
            let lives = by(extent, &FEW_LIVES[..], &LIVES[..]);
            let is_played = (is_connections && at_extreme.contains(&pool.connections))
                || (is_requests && lives.contains(&pool.requests_per_connection));
            let rates = by(extent, &[(MANY_QPS, 64), EXTREME][..], &RATES[..]);
            let is_extreme = |rate: &Rate| {
                (is_connections && *rate == EXTREME) || (is_requests && rate.0 >= MANY_QPS)
            };
            let rates: Vec<Rate> = rates.iter().copied().filter(is_extreme).collect();
            for (rate, clients) in pairs(&rates, clients).filter(|_| is_played) {
                cells.extend(pair(extent, (&knob, contender), rate, clients, repetition)?);
            }
        }
    }
    Ok(cells)
}

/// Each setting with its values, by the prefix of the names of its cells.
fn pools(extent: Extent) -> Vec<(String, PoolSettings)> {
    let powers = by(extent, &[1, 4, 32][..], &POWERS[..]);
    let lives = by(extent, &FEW_LIVES[..], &LIVES[..]);
    let connections = powers.iter().map(|value| {
        let pool = PoolSettings {
            connections: *value,
            ..FIRM
        };
        (format!("maxConnections={value}"), pool)
    });
    // The limit of pending requests needs a setting that makes requests wait.
    let pending = powers.iter().map(|value| {
        let pool = PoolSettings {
            connections: 2,
            pending: *value,
            ..FIRM
        };
        (format!("http1MaxPendingRequests={value}"), pool)
    });
    let requests = lives.iter().map(|value| {
        let pool = PoolSettings {
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
    if let Protection::Static(pool) | Protection::Scaled(pool) = contender {
        let values = [pool.connections, pool.pending, pool.requests_per_connection];
        let values = values.map(Into::into);
        known.extend(POOL.map(str::to_owned).into_iter().zip(values));
    }
    let scenario = still(upstream, LAX)?;
    let load = Fortio {
        qps: Some(qps.into()),
        connections,
        until: MeasurementEnd::Passed(Duration::from_secs(by(extent, 5, 30))),
        warm_up: Duration::from_millis(by(extent, 800, 5_000)),
        close: false,
        wire: Wire::Fast,
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
        servers: 1,
        scenario: scenario.clone(),
        load: CellLoad::Fortio(load),
    }))
}

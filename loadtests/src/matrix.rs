//! A study as data: the cells of its matrix, each with everything needed to play it.
//!
//! Cells know nothing of processes: [`crate::runner`] plays each and returns a [`CellResult`]. The
//! same cell in another topology or with another contender has the same name, so that reports can compare them.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_sim::profile::Behaviour;
use tidegate_sim::scenario::{Scenario, ScenarioError};

use crate::contender::Protection;
use crate::result::{CellFigures, CellOutcome, CellResult, Parameter, Tool, Topology};

/// One cell.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Name of the study.
    pub study: &'static str,
    /// Name of the point in its matrix.
    pub name: String,
    /// The load and settings of the point.
    pub parameters: BTreeMap<String, Parameter>,
    /// Where the Envoys are.
    pub topology: Topology,
    /// What protects the upstream.
    pub contender: Protection,
    /// The repetition, from 0.
    pub repetition: u32,
    /// Clients; in the topology of sidecars each has its own Envoy.
    pub clients: u32,
    /// Replicas of the upstream. With several, each has a sidecar, and each client calls one of them.
    pub servers: u32,
    /// The upstream, the objective, and for a story also the clients and their load over time.
    pub scenario: Scenario,
    /// What makes the load, and how.
    pub load: CellLoad,
}

/// The tool that makes the load of a cell, and its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellLoad {
    /// fortio, with one process for each client; the processes share connections and requests evenly.
    Fortio(Fortio),
    /// k6: users that wait for their answers.
    Users(Users),
    /// Users, but calling the first service of the scenario's chain.
    UsersOfChain(Users),
    /// The testbed's open loop plays the scenario.
    Story,
    /// The open loop, but calling the front of Bookinfo; the scenario's upstream is its last service.
    Cascade,
}

/// The settings of fortio, for all clients together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fortio {
    /// Requests a second; `None`: at full rate.
    pub qps: Option<f64>,
    /// Connections, with one request under way on each.
    pub connections: u32,
    /// When it ends.
    pub until: MeasurementEnd,
    /// Load of the same kind before the measurement, which is not counted.
    pub warm_up: Duration,
    /// Whether each request has a connection of its own (`Connection: close`).
    pub close: bool,
    /// How the connections are timed against each other.
    pub pace: Pace,
    /// The protocol of the connections.
    pub wire: Wire,
}

/// The protocol between fortio and the first Envoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// HTTP/1.1 by fortio's own client.
    Fast,
    /// HTTP/1.1 by the client of Go's library, the baseline for the protocols below.
    Http1,
    /// HTTP/2 without TLS, by the same client; Envoy also uses it to the upstream.
    Http2,
    /// HTTP/1.1 in mutual TLS.
    MutualTls,
    /// HTTP/2 in mutual TLS; Envoy uses HTTP/2 without TLS to the upstream.
    MutualTlsHttp2,
}

impl Wire {
    /// Whether it is HTTP/2.
    #[must_use]
    pub const fn is_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::MutualTlsHttp2)
    }

    /// Whether it is in mutual TLS.
    #[must_use]
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::MutualTls | Self::MutualTlsHttp2)
    }

    /// Its name in cells.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::MutualTls => "mtls",
            Self::MutualTlsHttp2 => "mtls+http2",
        }
    }
}

/// How connections with a fixed rate are timed against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// All send at the same instants, which is fortio's default.
    Lockstep,
    /// Their requests are spread evenly over time, like those of independent clients.
    Spread,
}

/// When a measurement ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasurementEnd {
    /// After some time.
    Passed(Duration),
    /// After this number of requests.
    Sent(u32),
}

/// The settings of k6.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Users {
    /// Users at the end of the ramp.
    pub users: u32,
    /// Users added each second.
    pub per_second: f64,
    /// Total length.
    pub length: Duration,
    /// Pause of a user between an answer and the next request.
    pub think: Duration,
}

/// Estimated time for each request of a closed loop; only used to estimate the remaining time. In `baselines/reduced` it is 29 to
/// 105 µs.
const LOOP_REQUEST: Duration = Duration::from_micros(100);

/// The longest time for each request of a closed loop on average, on slow machines too.
const SLOWEST_LOOP_REQUEST: Duration = Duration::from_millis(1);

impl MeasurementEnd {
    /// Approximate length of a measurement.
    #[must_use]
    pub fn length(self) -> Duration {
        match self {
            Self::Passed(length) => length,
            Self::Sent(count) => LOOP_REQUEST * count,
        }
    }

    /// The longest that a measurement should take.
    #[must_use]
    pub fn longest(self) -> Duration {
        match self {
            Self::Passed(length) => length,
            Self::Sent(count) => SLOWEST_LOOP_REQUEST * count,
        }
    }
}

impl Cell {
    /// Approximate length of its load, without the start of Envoys.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.sum(MeasurementEnd::length)
    }

    /// The longest that its load should take, without the start of Envoys.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.sum(MeasurementEnd::longest)
    }

    fn sum(&self, measured: impl Fn(MeasurementEnd) -> Duration) -> Duration {
        match self.load {
            CellLoad::Fortio(fortio) => fortio.warm_up + measured(fortio.until),
            CellLoad::Users(users) | CellLoad::UsersOfChain(users) => users.length,
            CellLoad::Story | CellLoad::Cascade => self.scenario.duration,
        }
    }

    /// The tool that makes its load.
    #[must_use]
    pub const fn tool(&self) -> Tool {
        match self.load {
            CellLoad::Fortio(_) => Tool::Fortio,
            CellLoad::Users(_) | CellLoad::UsersOfChain(_) => Tool::K6,
            CellLoad::Story | CellLoad::Cascade => Tool::Testbed,
        }
    }

    /// Its result without figures.
    #[must_use]
    pub fn result(&self, outcome: CellOutcome) -> CellResult {
        CellResult {
            study: self.study.to_owned(),
            cell: self.name.clone(),
            parameters: self.parameters.clone(),
            topology: self.topology,
            contender: self.contender.name().to_owned(),
            repetition: self.repetition,
            tool: self.tool(),
            outcome,
            figures: CellFigures::default(),
            series: Vec::new(),
            raw: None,
        }
    }
}

/// The cells; each that plays Tidegate's filter is followed by one that plays the native module.
#[must_use]
pub fn with_native(cells: Vec<Cell>) -> Vec<Cell> {
    let twin = |cell: &Cell| {
        cell.contender.is_tidegate().then(|| Cell {
            contender: Protection::NATIVE,
            ..cell.clone()
        })
    };
    cells
        .into_iter()
        .flat_map(|cell| {
            let twin = twin(&cell);
            std::iter::once(cell).chain(twin)
        })
        .collect()
}

/// The cells, each repeated at least `least` times. In the added cells the repetition is the outermost loop.
#[must_use]
pub fn repeated(mut cells: Vec<Cell>, least: u32) -> Vec<Cell> {
    let key = |cell: &Cell| {
        let result = cell.result(CellOutcome::Ok);
        (result.study, result.cell, result.topology, result.contender)
    };
    let mut have: BTreeMap<_, u32> = BTreeMap::new();
    for cell in &cells {
        *have.entry(key(cell)).or_default() += 1;
    }
    let first: Vec<Cell> = cells
        .iter()
        .filter(|cell| cell.repetition == 0)
        .cloned()
        .collect();
    for repetition in 1..least {
        let missing = first
            .iter()
            .filter(|cell| have.get(&key(cell)).is_some_and(|have| *have <= repetition));
        cells.extend(missing.map(|cell| Cell {
            repetition,
            ..cell.clone()
        }));
    }
    cells
}

/// A scenario with only an upstream and an objective: a tool makes the load.
///
/// # Errors
/// If this text does not fit the format of scenarios.
pub fn still(upstream: Behaviour, objective: Duration) -> Result<Scenario, ScenarioError> {
    let text = "name = 'load'\ntitle = 'load'\nprose = 'load from a tool'\nseed = 1\nduration = '1s'\n\
        [[clients]]\nload = [{ at = '0s', x = 0.1 }]\n[[upstreams]]\nname = 'main'";
    let mut scenario = Scenario::parse(text, "load")?;
    scenario.slo.latency = objective;
    if let Some(profile) = scenario.upstreams.first_mut() {
        profile.behaviour = upstream;
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Extent;
    use crate::study::ALL;

    /// Before, it was the whole seconds at 10,000 requests a second.
    #[test]
    fn a_short_closed_loop_takes_time_too() {
        let half = MeasurementEnd::Sent(5_000);
        assert_eq!(half.length(), Duration::from_millis(500));
        assert_eq!(half.longest(), Duration::from_secs(5));
    }

    #[test]
    fn every_cell_has_at_least_the_repetitions_asked_for() {
        for study in ALL {
            let once = study.cells(Extent::Reduced).unwrap();
            let count = |cells: &[Cell]| {
                let mut counts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
                for cell in cells {
                    let name = format!("{} {} {}", cell.name, cell.topology, cell.contender.name());
                    counts.entry(name).or_default().push(cell.repetition);
                }
                counts
            };
            for (name, mut found) in count(&repeated(once, 3)) {
                found.sort_unstable();
                assert_eq!(found[..3], [0, 1, 2], "{name}");
                assert!(
                    found.iter().zip(0..).all(|(is, expected)| *is == expected),
                    "{name}"
                );
            }
        }
    }
}

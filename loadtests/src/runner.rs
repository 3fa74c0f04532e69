//! Plays one cell: starts its proxies and services, makes the load, ends everything, and returns the figures.
//!
//! A failed cell is a result too: it has the error, and the other cells are played. CPU time, shed requests and those that
//! reached the upstream are counted only during the measurement, not during the warm-up.

use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_sim::number::{float, ratio};
use tidegate_testbed::envoy::{AdminError, Envoy};
use tidegate_testbed::upstream::Upstream;

use crate::matrix::{Cell, CellLoad, Fortio, MeasurementEnd, Users, Wire};
use crate::result::{CellFigures, CellOutcome, CellResult, Point};
use crate::tool::tally::RequestTally;
use crate::tool::{self, ToolError, fortio, k6, open_loop};
use crate::topology::bookinfo::Bookinfo;
use crate::topology::chain::ServiceChain;
use crate::topology::{
    Mesh, MeshPlan, Ports, Seen, TlsFiles, TopologyError, cpu, resident_bytes, seen,
};

/// Why a cell gave no figures.
#[derive(Debug, thiserror::Error)]
enum CellError {
    #[error("set up")]
    Topology(#[from] TopologyError),
    #[error("make load")]
    Tool(#[from] ToolError),
    #[error("ask envoy for its counters")]
    Admin(#[from] AdminError),
    #[error("make folder {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("the cell had not ended after {0:?}")]
    Endless(Duration),
    #[error("there is no Envoy in front of what is called")]
    NoFront,
}

/// A cell may take this long beyond its load: Envoys start, and tools have their own bounds.
const GRACE: Duration = Duration::from_secs(120);

/// Its load may take this many times as long as it should: some machines are slow.
const PATIENCE: u32 = 4;

/// The time after which a cell is given up.
fn bound(cell: &Cell) -> Duration {
    cell.longest() * PATIENCE + GRACE
}

/// Plays cells.
#[derive(Debug, Clone)]
pub struct Runner {
    /// Folder of the run.
    pub folder: PathBuf,
    /// The ports on which Envoys listen.
    pub ports: Ports,
}

/// The measurements of a cell.
#[derive(Debug, Default)]
struct PlayedCell {
    figures: CellFigures,
    series: Vec<Point>,
}

/// Counters at one moment that the tool does not provide.
#[derive(Debug, Clone, Copy)]
struct CellMark {
    cpu: Duration,
    seen: Seen,
    received: u64,
}

impl CellMark {
    async fn now(proxies: &[Envoy], received: u64) -> Result<Self, AdminError> {
        Ok(Self {
            cpu: cpu(proxies),
            seen: seen(proxies).await?,
            received,
        })
    }

    /// Adds to `figures` what was counted since.
    async fn complete(
        self,
        figures: &mut CellFigures,
        proxies: &[Envoy],
        received: u64,
    ) -> Result<(), AdminError> {
        let now = Self::now(proxies, received).await?;
        let requests = figures.requests.unwrap_or(0.0);
        let received = float(now.received.saturating_sub(self.received));
        figures.reached_per_request = (requests > 0.0).then(|| received / requests);
        if proxies.is_empty() {
            return Ok(());
        }
        let seen = now.seen - self.seen;
        figures.shed_ratio = figures
            .shed_ratio
            .or_else(|| (seen.requests > 0).then(|| ratio(seen.shed, seen.requests)));
        figures.cpu_seconds = Some((now.cpu.saturating_sub(self.cpu)).as_secs_f64());
        figures.rss_mib = Some(float(resident_bytes(proxies)) / (1024.0 * 1024.0));
        Ok(())
    }
}

impl Runner {
    /// Plays `cell`; writes files of tools to the folder `raw/NAME` of the run.
    pub async fn play(&self, cell: &Cell, name: &str) -> CellResult {
        let raw = Path::new("raw").join(name);
        let within = bound(cell);
        let played =
            match tokio::time::timeout(within, self.measure(cell, &self.folder.join(&raw))).await {
                Ok(played) => played,
                Err(_) => Err(CellError::Endless(within)),
            };
        match played {
            Ok(played) => CellResult {
                figures: played.figures,
                series: played.series,
                raw: cell.tool().program().map(|_| raw.display().to_string()),
                ..cell.result(CellOutcome::Ok)
            },
            Err(error) => cell.result(CellOutcome::Failed {
                error: chain(&error),
            }),
        }
    }

    async fn measure(&self, cell: &Cell, raw: &Path) -> Result<PlayedCell, CellError> {
        if cell.tool().program().is_some() {
            let folder = |source| CellError::Folder {
                path: raw.to_owned(),
                source,
            };
            fs::create_dir_all(raw).map_err(folder)?;
        }
        if cell.load == CellLoad::Cascade {
            return self.cascade(cell).await;
        }
        if let CellLoad::UsersOfChain(load) = cell.load {
            let mut chain =
                ServiceChain::start(&cell.contender, &cell.scenario, self.ports).await?;
            let front = (chain.entry(), chain.proxies());
            let played = by_users(cell, load, front, || received(chain.last()), raw).await?;
            chain.check()?;
            return Ok(played);
        }
        let wire = match cell.load {
            CellLoad::Fortio(load) => load.wire,
            _ => Wire::Fast,
        };
        let tls = wire.is_tls().then(|| TlsFiles::make(raw)).transpose()?;
        let plan = MeshPlan {
            topology: cell.topology,
            contender: &cell.contender,
            scenario: &cell.scenario,
            clients: cell.clients,
            servers: cell.servers,
            wire: (wire, tls.as_ref()),
            ports: self.ports,
        };
        let mut mesh = Mesh::start(plan).await?;
        let played = match cell.load {
            CellLoad::Fortio(load) => by_fortio(cell, load, &mesh, (raw, tls.as_ref())).await?,
            CellLoad::Users(load) => {
                let entry = *mesh.entries().first().ok_or(CellError::NoFront)?;
                let front = (entry, mesh.proxies());
                by_users(cell, load, front, || mesh.received(), raw).await?
            }
            CellLoad::Story | CellLoad::Cascade | CellLoad::UsersOfChain(_) => {
                let front = mesh.proxies().first().ok_or(CellError::NoFront)?;
                tell(cell, mesh.proxies(), front, mesh.upstream()).await?
            }
        };
        mesh.check()?;
        Ok(played)
    }

    async fn cascade(&self, cell: &Cell) -> Result<PlayedCell, CellError> {
        let mut bookinfo = Bookinfo::start(&cell.contender, &cell.scenario, self.ports).await?;
        let front = bookinfo.proxies().last().ok_or(CellError::NoFront)?;
        let played = tell(cell, bookinfo.proxies(), front, bookinfo.ratings()).await?;
        bookinfo.check()?;
        Ok(played)
    }
}

async fn by_fortio(
    cell: &Cell,
    load: Fortio,
    mesh: &Mesh,
    (raw, tls): (&Path, Option<&TlsFiles>),
) -> Result<PlayedCell, CellError> {
    let warm_up = Fortio {
        until: MeasurementEnd::Passed(load.warm_up),
        ..load
    };
    fortio::drive(warm_up, mesh.entries(), (raw, "warm-up"), tls).await?;
    let mark = CellMark::now(mesh.proxies(), mesh.received()).await?;
    // Only processes of fortio end between these two readings.
    let before = tool::ended_cpu();
    let measured = fortio::drive(load, mesh.entries(), (raw, "fortio"), tls).await?;
    let client = tool::ended_cpu().zip(before);
    let mut figures = measured.figures(load.qps, cell.scenario.slo.latency);
    figures.client_cpu_seconds =
        client.map(|(after, before)| after.saturating_sub(before).as_secs_f64());
    mark.complete(&mut figures, mesh.proxies(), mesh.received())
        .await?;
    Ok(PlayedCell {
        figures,
        series: Vec::new(),
    })
}

async fn by_users(
    cell: &Cell,
    load: Users,
    (entry, proxies): (SocketAddr, &[Envoy]),
    received: impl Fn() -> u64,
    raw: &Path,
) -> Result<PlayedCell, CellError> {
    let mark = CellMark::now(proxies, received()).await?;
    let requests = k6::drive(load, entry, raw, "k6").await?;
    let tally = RequestTally {
        requests: &requests,
        length: load.length,
        objective: cell.scenario.slo.latency,
    };
    let (mut figures, series) = (tally.figures(), tally.points());
    mark.complete(&mut figures, proxies, received()).await?;
    Ok(PlayedCell { figures, series })
}

async fn tell(
    cell: &Cell,
    proxies: &[Envoy],
    front: &Envoy,
    upstream: &Upstream,
) -> Result<PlayedCell, CellError> {
    let mark = CellMark::now(proxies, received(upstream)).await?;
    let told = open_loop::tell(&cell.scenario, front.addr(), upstream, front).await;
    let scenario = &cell.scenario;
    let tally = RequestTally {
        requests: &told.requests,
        length: scenario.duration,
        objective: scenario.slo.latency,
    };
    let (mut figures, mut series) = (tally.figures(), tally.points());
    figures.offered_qps = figures.qps;
    told.count_attempts(&mut series);
    mark.complete(&mut figures, proxies, received(upstream))
        .await?;
    Ok(PlayedCell { figures, series })
}

/// Requests that have reached a service.
fn received(upstream: &Upstream) -> u64 {
    upstream.counts().received
}

/// An error with its causes in one text.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Extent;
    use crate::study::ALL;

    /// Before, a cell of 300,000 requests was given up after 252 s, but its tool only after 330 s.
    #[test]
    fn a_cell_is_given_up_after_its_tools() {
        let extents = [Extent::Reduced, Extent::Full];
        for study in ALL {
            let cells = extents.map(|extent| study.cells(extent).unwrap());
            for cell in cells.iter().flatten() {
                let CellLoad::Fortio(load) = cell.load else {
                    continue;
                };
                let tools = load.warm_up + load.until.longest() + tool::GRACE * 2;
                assert!(tools < bound(cell), "{} {}", study.name, cell.name);
            }
        }
    }
}

//! A fleet: thousands of independent proxies in front of one service.
//!
//! The question: do sidecars that each adapt alone reach a fair share without oscillating, and how does that compare with
//! one or a few shared waypoints in front of the same service under the same load?
//!
//! A fleet is a scenario with [`crate::scenario::Callers`], played by [`crate::world`] like any other. Each request is an
//! event at its proxy and at its endpoint. Two things make a million requests a second affordable: the world keeps a tally
//! instead of the requests, and every proxy runs one [`tidegate_core::Engine`] that serves it alone.
//!
//! Edges: quantiles of latency come from buckets a fifth apart, as those of the control laws do.

mod checks;
mod figures;
mod plan;
mod report;
mod series;
mod story;
mod swing;

use crate::contender::ContenderError;
use crate::digest::Digest;
use crate::tidegate::AlonePolicy;
use crate::world;

pub use checks::{FleetCheck, RunCost, checks};
pub use figures::{FleetFigures, FleetPhaseFigures};
pub use plan::{Fleet, FleetPhase, FleetSize, FleetTopology};
pub use report::{page, table};
pub use series::FleetPoint;
pub use story::FleetStory;
pub use swing::Swing;

/// What a run left behind.
#[derive(Debug, Clone)]
pub struct FleetRun {
    /// In figures, and over time.
    pub figures: FleetFigures,
    /// Hash of all events of the run.
    pub digest: Digest,
    /// Events that happened.
    pub events: u64,
}

/// Plays a fleet.
///
/// # Errors
/// When the engines reject the scenario's policy.
pub fn play(fleet: &Fleet) -> Result<FleetRun, ContenderError> {
    let scenario = &fleet.scenario;
    let policy = AlonePolicy::new(scenario, fleet.is_protected, fleet.knows_endpoints)?;
    let run = world::tally_with(scenario, &|_, seed| Ok(policy.make(seed)))?;
    Ok(FleetRun {
        figures: FleetFigures::of(fleet, &run),
        digest: run.digest,
        events: run.events,
    })
}

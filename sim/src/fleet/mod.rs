//! A fleet: thousands of independent proxies in front of one service.
//!
//! The question: do sidecars that each adapt alone reach a fair share without oscillating, and how does that compare with
//! one or a few shared waypoints in front of the same service under the same load? Every proxy runs the filter's
//! [`tidegate_core::Engine`], as with one worker. Endpoints and balancers are those of [`crate::world`].
//!
//! It is as detailed as the world: each request is an event at its proxy and at its endpoint. What makes a million
//! requests a second affordable is that nothing is kept of a request that has ended (counts by tenths of a second
//! take the place of records), a queue whose cost does not grow with its length ([`wheel`]), and that the fleet is
//! played in shards, each with a fixed part of the proxies and endpoints ([`shard`]). What one shard sends to another
//! takes the network's delay, so that shards can play for that long independently
//! (Chandy and Misra, "Distributed Simulation", 1979): the outcome depends on the number of shards, which is fixed, and
//! not on the number of threads ([`lockstep`]).
//!
//! Edges: one service, whose callers do not retry; a network of one fixed delay; quantiles of latency come from
//! buckets a fifth apart, as those of the control laws do.

mod checks;
mod demand;
mod figures;
mod ledger;
mod lockstep;
mod plan;
mod proxy;
mod report;
mod series;

mod shard;
mod slab;
mod story;
mod swing;
mod wheel;

use crate::digest::Digest;

pub use checks::{FleetCheck, RunCost, checks};
pub use figures::{FleetFigures, FleetPhaseFigures};
pub use lockstep::play;
pub use plan::{Fleet, FleetError, FleetPhase, FleetSize, FleetTopology, Heavy};
pub use report::{page, table};
pub use series::FleetPoint;
pub use story::FleetStory;
pub use swing::Swing;

/// What a run left behind.
#[derive(Debug, Clone)]
pub struct FleetRun {
    /// In figures, and over time.
    pub figures: FleetFigures,
    /// Stands for every event of the run.
    pub digest: Digest,
    /// Events that happened.
    pub events: u64,
}

//! Faults drawn from a seed, injected into real processes under load, and what must hold after each.
//!
//! The world is an Envoy with the filter, the control service that configures it, and two upstreams, each in a separate
//! process; callers run in this process. A [`plan`] is a function of the seed alone. Every fault is undone; the world must
//! recover within a bound; then the load pauses, and the counts are compared with [`invariants`].
//!
//! - pure: [`fault`], [`plan`], [`policy`], [`account`], [`invariants`], [`report`];
//! - processes: [`world`], [`backend`], [`service`], [`proxy`], [`clock`];
//! - actions: [`inject`], [`load`], [`conduct`].

pub mod account;
pub mod backend;
pub mod clock;
pub mod conduct;
pub mod fault;
pub mod inject;
pub mod invariants;
pub mod load;
pub mod outcome;
pub mod plan;
pub mod policy;
pub mod proxy;
pub mod report;
pub mod service;
mod stage;
pub mod vital;
pub mod world;

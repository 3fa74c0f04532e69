//! The simulator: scenarios as data, an oracle that knows the capacity, and the scores of runs.
//!
//! The library uses no sockets and no clock, so that the same scenario runs on simulated time and, in the testbed, on real
//! Envoys:
//!
//! - what is to happen: [`scenario`] (one story as data), [`profile`] (what an upstream does), [`arrivals`], [`closed_loop`],
//!   [`policy`];
//! - what protects the upstream: [`contender`] (what it has to answer), [`kind`], [`rivals`], [`roster`] (all of them);
//! - what happened to it: [`run`], [`record`], [`decision`], [`oracle`], [`score`], [`series`]; whether that is enough:
//!   [`targets`], [`known_gaps`];
//! - whether laws are overfitted to the stories they are judged by: [`sweep`], with seeds for [`acceptance`];
//! - tables, charts and pages: [`charts`], and the crate `tidegate_report`.
//!
//! What plays in simulated time, with the laws of core, needs the feature `world`. The rest is enough for real Envoys.

#[cfg(feature = "world")]
pub mod acceptance;
pub mod arrivals;
pub mod charts;
pub mod closed_loop;
#[cfg(feature = "world")]
pub mod compare;
#[cfg(feature = "world")]
pub mod contender;
#[cfg(feature = "world")]
pub mod decision;
#[cfg(feature = "world")]
pub mod digest;
pub mod fault;
#[cfg(feature = "world")]
pub mod fleet;
#[cfg(feature = "world")]
pub mod kind;
#[cfg(feature = "world")]
pub mod known_gaps;
pub mod number;
pub mod oracle;
pub mod policy;
pub mod profile;
pub mod record;
#[cfg(feature = "world")]
pub mod rivals;
pub mod rng;
#[cfg(feature = "world")]
pub mod roster;
#[cfg(feature = "world")]
pub mod run;
pub mod scenario;
pub mod score;
pub mod series;
#[cfg(feature = "world")]
pub mod sweep;
pub mod targets;
#[cfg(feature = "world")]
pub mod tidegate;
#[cfg(feature = "world")]
pub mod world;

//! Advice from observed traffic. Nothing here is ever applied.
//!
//! [`recommend`] finds an objective for each upstream of a [service graph](tidegate_graph::ServiceGraph), or says why the
//! observations do not suffice for one. [`split`] derives a target for each call from one objective end to end;
//! [`traces`] finds calls that are made at the same time. [`chain`] finds settings that conflict along chains of calls.
//! [`score`] scores benefit and cost of protection.
//!
//! Pure: observations and policies in force are arguments, and results are values. The caller reads files, Prometheus and the
//! policies of the control service.

#![forbid(unsafe_code)]

pub mod chain;
mod interval;
mod observed;
mod quantity;
pub mod recommend;
pub mod score;
pub mod split;
pub mod traces;

pub use interval::{LatencyInterval, ShareInterval, latency_interval, wilson};
pub use observed::{CallerTraffic, NoRule, ObservedUpstream, RuleTarget, observed_upstreams};

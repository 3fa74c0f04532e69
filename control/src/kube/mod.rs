//! Kubernetes: policies come from the API server, and Istio's objects go to it.
//!
//! ```text
//!   BreakerPolicy --watch--> World --plan--> TrafficExtension | WasmPlugin
//!        ^                     |   (pure)         |
//!        +---- status, Events -+                  | watch
//!                              ^------------------+
//! ```
//!
//! Every replica watches and hands the policies on to its own proxies; one, by
//! a Lease, writes. What is written follows from what is seen ([`plan`]), so
//! that a replica needs no memory, and an object that somebody removes or
//! changes comes back as it was. Objects and fields of others are left alone:
//! a conflict is told in the policy's status.

mod account;
mod cause;
pub mod condition;
mod contact;
mod counts;
pub mod election;
pub mod extension;
mod feed;
pub mod flavour;
pub mod held;
mod lease;
pub mod object;
mod outlook;
mod pauses;
pub mod plan;
pub mod refusal;
pub mod rights;
mod run;
pub mod settings;
mod shared;
pub mod world;
mod writer;

pub use counts::Counts;
pub use run::{Health, KubeError, Surroundings, client, start};
pub use settings::Settings;

//! Kubernetes: policies come from the API server, and Istio's objects go to it.
//!
//! ```text
//!   BreakerPolicy --watch--> view --plan--> TrafficExtension | WasmPlugin
//!        ^                     |   (pure)         |
//!        +---- status, Events -+                  | watch
//!                              ^------------------+
//! ```
//!
//! Every replica watches, and passes the policies to its own proxies; one
//! replica, chosen by a Lease, writes. What it writes follows from what it sees
//! ([`plan`]), so a replica needs no memory, and an object that is removed or
//! changed by someone else is restored. Objects and fields of other owners are
//! never modified: a conflict is reported in the policy's status.

mod client;
pub mod clock;
mod event;
pub mod istio;
pub mod lease;
pub mod plan;
pub mod pools;
mod reach;
mod reconcile;
mod rejections;
pub mod rights;
mod run;
pub mod settings;
mod shared;
pub mod status;
pub mod view;
mod watch;
mod write;

pub use client::{ConnectError, client};
pub use event::{DISCOVERY, KubeEvent, ReconcileResult, WriteOutcome, WriteTarget};
pub use run::{Health, KubeContext, KubeError, start};
pub use settings::KubeSettings;
pub use view::Listing;

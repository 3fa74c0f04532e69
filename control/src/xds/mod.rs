//! Discovery: proxies subscribe to their plugin configuration and are told when it changes.
//!
//! The protocol is a conversation per proxy and type of resource, in two dialects. [`Subscription`] (state of
//! the world) and [`DeltaSubscription`] (incremental) hold it without any I/O. [`routes`] puts it on the wire.

mod answer;
mod delta;
#[cfg(test)]
pub(crate) mod fuzz;
mod interest;
mod ledger;
mod node;
mod plugin;
mod resource;
mod service;
mod stream;
mod subscription;
mod wire;

pub use answer::{Heard, Refusal};
pub use delta::{DeltaPush, DeltaRequest, DeltaSubscription};
pub use interest::{Excess, MAX_NAME_BYTES, MAX_NAMES};
pub use plugin::{Module, OnCrash, Plugin};
pub use resource::{Desired, Name, Resource, Version};
pub use service::{Context, routes};
pub use subscription::{Push, Request, Subscription};

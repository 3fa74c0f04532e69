//! Discovery: proxies subscribe to their plugin configuration and are told when it changes.
//!
//! The protocol is a conversation per proxy and type of resource, in two dialects. [`Subscription`] (state of
//! the world) and [`DeltaSubscription`] (incremental) hold it without any I/O.

mod answer;
mod delta;
mod interest;
mod ledger;
mod resource;
mod subscription;

pub use answer::{Heard, Refusal};
pub use delta::{DeltaPush, DeltaRequest, DeltaSubscription};
pub use interest::{Excess, MAX_NAME_BYTES, MAX_NAMES};
pub use resource::{Desired, Name, Resource, Version};
pub use subscription::{Push, Request, Subscription};

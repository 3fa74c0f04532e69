//! The xDS protocol without I/O: what to send to a proxy, given its requests and what it should have.
//!
//! The protocol is a conversation per proxy and resource type, in two dialects: [`SotwSubscription`] (state of the
//! world) and [`DeltaSubscription`] (incremental). [`crate::discovery`] puts them on the wire.

mod answer;
mod delta;
mod document;
mod interest;
mod ledger;
mod native;
mod plugin;
mod resource;
mod subscription;

pub use answer::{PushReply, Rejection};
pub use delta::{DeltaPush, DeltaRequest, DeltaSubscription};
pub use interest::{Excess, MAX_NAME_BYTES, MAX_NAMES};
pub use native::{NativeModule, NativeTemplate};
pub use plugin::{Module, OnCrash, PluginTemplate, RELOAD_BACKOFF, USUAL_NAME, USUAL_NATIVE_NAME};
pub use resource::{Desired, Name, Resource, ResourceVersion};
pub use subscription::{SotwPush, SotwRequest, SotwSubscription};

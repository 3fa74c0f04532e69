//! The connected proxies: what each should run, what it runs, and what it rejected.

mod event;
mod metadata;
mod origin;
mod record;
mod registry;
mod seat;

pub use event::FleetEvent;
pub use origin::{DiscoveryApi, StreamOrigin};
pub use record::{LastRejection, ProxyRecord, ResourceRecord};
pub use registry::{Assignment, ClaimedPolicy, ProxyFleet, RejectedPolicy, StreamId};
pub use seat::{AssignmentChange, StreamSeat};

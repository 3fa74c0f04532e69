//! Where policies come from: a directory of files, a store that REST fills, and Kubernetes.
//!
//! The [`Catalog`] merges them and passes the result to the [`ProxyFleet`](crate::fleet::ProxyFleet).

mod catalog;
mod directory;
mod event;
mod shutoff;
mod store;
mod watch;

pub use catalog::{Catalog, ChangeError, PolicyRecord};
pub use directory::Directory;
pub use event::SourceEvent;
pub use shutoff::{MAX_NOTE_BYTES, Shutoff, ShutoffFile, ShutoffSource};
pub use store::{Precondition, Store, StoreError, StoredPolicy};
pub use watch::watch;

//! Where policies come from: a directory that people or volumes fill, and a store that REST fills.
//!
//! The [`Catalogue`] puts both together and hands the whole to the [`Fleet`](crate::fleet::Fleet).

mod catalogue;
mod directory;
mod store;
mod watch;

pub use catalogue::{Catalogue, ChangeError, PolicyRecord};
pub use directory::Directory;
pub use store::{Precondition, Store, StoreError, Stored};
pub use watch::watch;

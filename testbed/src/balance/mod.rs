//! What load reports are worth to a balancer: one caller's Envoy in front of four servers, one of which is slow.
//!
//! ```text
//!  open loop --> caller's Envoy --> server's Envoy --> server    (four times; with or without the native module)
//! ```
//!
//! All contenders get the same arrivals. What differs is how the caller's Envoy spreads them, and whether the servers' Envoys have the
//! native module.

mod contender;
mod figures;
mod plan;
mod play;

pub use contender::BalanceContender;
pub use figures::{BalanceFigures, BalanceReport, table};
pub use plan::{BalancePlan, DEFAULT_LOAD};
pub use play::play;

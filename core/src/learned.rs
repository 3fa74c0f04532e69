//! What the control laws know of an upstream, in a form that travels and outlives them.

use serde::{Deserialize, Serialize};

use crate::breaker::BreakerCheckpoint;
use crate::limit::LimitCheckpoint;

/// What the laws know of an upstream; outlives VMs and configurations. By default nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// What the laws of the limit know.
    pub limit: LimitCheckpoint,
    /// What the laws of the breaker know.
    pub breaker: BreakerCheckpoint,
}

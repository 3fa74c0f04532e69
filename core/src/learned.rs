//! What the control laws know of an upstream, in a form that travels and outlives them.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::breaker::BreakerCheckpoint;
use crate::config::Slo;
use crate::limit::LimitCheckpoint;

/// What the laws know of an upstream; outlives VMs and configurations. By default nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// What the laws of the limit know.
    pub limit: LimitCheckpoint,
    /// What the laws of the breaker know.
    pub breaker: BreakerCheckpoint,
}

impl Learned {
    /// How long a request may wait before it hangs: longer than a queue within the objective, than answers usually take, and than
    /// the last few answers took.
    pub(crate) fn hang_after(&self, slo: &Slo) -> Duration {
        self.limit
            .floor
            .hang_after(slo)
            .max(self.breaker.hang_after())
    }
}

//! A request as the oracle sees it.

use std::time::Duration;

use crate::arrivals::Arrival;
use crate::scenario::ClientProfile;

/// A request that is complete at the service.
pub(super) struct OracleRequest<'a> {
    pub(super) at: Duration,
    pub(super) arrival: &'a Arrival,
    pub(super) client: &'a ClientProfile,
}

impl OracleRequest<'_> {
    /// How long the caller still waits.
    pub(super) fn patience(&self) -> Duration {
        let uploading = self.at.saturating_sub(self.arrival.at);
        self.client.deadline.saturating_sub(uploading)
    }
}

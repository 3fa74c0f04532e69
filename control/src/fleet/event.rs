//! The events of discovery streams that the fleet reports to its listeners, such as the metrics.

use std::time::Duration;

use super::DiscoveryApi;

/// An event on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetEvent {
    /// A stream began.
    Connected {
        /// The service it uses.
        api: DiscoveryApi,
        /// `sotw` or `delta`.
        dialect: &'static str,
    },
    /// A stream ended.
    Disconnected {
        /// The service it used.
        api: DiscoveryApi,
        /// `sotw` or `delta`.
        dialect: &'static str,
    },
    /// A configuration was pushed.
    Pushed,
    /// A proxy accepted a push (ACK).
    Accepted {
        /// Time since the change that caused the push; `None` if no push was pending.
        waited: Option<Duration>,
    },
    /// A proxy rejected a push (NACK).
    Rejected,
    /// A proxy answered an earlier push.
    Stale,
}

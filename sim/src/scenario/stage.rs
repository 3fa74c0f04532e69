//! What a run happens on: the network, and what becomes of the proxies.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::contender::Mishap;

/// Time on the wire, one way, between caller and proxy and between proxy and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// At least so long.
    #[serde(with = "humantime_serde")]
    pub delay: Duration,
    /// And up to so much longer, evenly spread.
    #[serde(default, with = "humantime_serde")]
    pub jitter: Duration,
}

/// Two processes on one machine.
impl Default for Network {
    fn default() -> Self {
        Self {
            delay: Duration::from_micros(100),
            jitter: Duration::from_micros(100),
        }
    }
}

/// How the workers of a proxy count what is in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Together, by a gauge of the proxy.
    #[default]
    Shared,
    /// Each for itself: the proxy refuses the gauge.
    Unshared,
}

/// Something that happens to every proxy at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// When, from the start of the run.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// What.
    #[serde(flatten)]
    pub what: Mishap,
}

//! What a successor needs of the breaker besides its state.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::latency::RecentLatency;
use super::rates::Rates;
use super::{Judge, OutageSigns, RatesCheckpoint};
use crate::breaker::BreakerState;
use crate::time::Instant;
use crate::units::Seconds;

/// What is known of an upstream's outcomes; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BreakerCheckpoint {
    /// What is usual while the breaker is closed.
    pub rates: RatesCheckpoint,
    /// The mean latency of the last few answers; 0 before the first.
    pub latency: Seconds,
    /// The present outage; `None` while the breaker is closed.
    pub outage: Option<Outage>,
}

/// The present outage: the breaker is open, or not closed again yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// When it began.
    pub since: Instant,
    /// The open interval in force, milliseconds.
    pub open_interval_ms: u32,
}

impl BreakerCheckpoint {
    /// How long a request may wait before it hangs, judged by the last few answers; zero before the first.
    pub(crate) fn hang_after(&self) -> Duration {
        RecentLatency::resume(self.latency).hang_after()
    }

    /// The open interval in force, milliseconds; 0 while the breaker is closed.
    #[must_use]
    pub fn open_interval_ms(&self) -> u32 {
        self.outage.map_or(0, |outage| outage.open_interval_ms)
    }
}

impl Judge {
    /// Continues from the state of an earlier leader.
    pub(crate) fn resume(state: BreakerState, epoch: u32, known: &BreakerCheckpoint) -> Self {
        let outage = known.outage.filter(|_| state != BreakerState::Closed);
        Self {
            state,
            epoch,
            rates: Rates::resume(known.rates),
            latency: RecentLatency::resume(known.latency),
            signs: outage.map(|outage| {
                Box::new(OutageSigns {
                    outage_since: Some(outage.since),
                    interval: Duration::from_millis(outage.open_interval_ms.into()),
                    ..OutageSigns::default()
                })
            }),
            ..Self::default()
        }
    }

    /// What a successor needs besides [`Judge::state`] and [`Judge::epoch`].
    pub(crate) fn checkpoint(&self) -> BreakerCheckpoint {
        let signs = self.signs.as_deref();
        let signs = signs.filter(|_| self.state != BreakerState::Closed);
        BreakerCheckpoint {
            rates: self.rates.checkpoint(),
            latency: self.latency.checkpoint(),
            outage: signs.and_then(|signs| {
                let millis = signs.interval.as_millis();
                Some(Outage {
                    since: signs.outage_since?,
                    open_interval_ms: u32::try_from(millis).unwrap_or(u32::MAX),
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{PerSecond, Share};

    #[test]
    fn the_checkpoint_has_the_outage_until_the_breaker_is_closed() {
        let known = BreakerCheckpoint {
            rates: RatesCheckpoint {
                failures: Share::new(0.25),
                outcomes: PerSecond::new(100.0),
            },
            latency: Seconds::new(2.0),
            outage: Some(Outage {
                since: Instant::from_nanos(7),
                open_interval_ms: 250,
            }),
        };
        let until = Instant::from_nanos(9);
        for (state, outage) in [
            (BreakerState::Closed, None),
            (BreakerState::Open { until, probes: 1 }, known.outage),
            (BreakerState::Ramp { limit: 4 }, known.outage),
        ] {
            let told = Judge::resume(state, 1, &known).checkpoint();
            assert_eq!(told, BreakerCheckpoint { outage, ..known });
        }
    }
}

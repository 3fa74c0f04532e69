//! What the leader decided for one upstream, and which of it is believed.
//!
//! Shared data is one table for all plugins of a VM id, and Istio leaves the id empty: another plugin may overwrite ours.
//! A number outside the range of its unit ([`units`](crate::units)) cannot even be read. [`Directive::check`] rejects what
//! only the directive as a whole can tell.

use serde::{Deserialize, Serialize};

use super::envelope::WireError;
use crate::breaker::BreakerState;
use crate::ladder::{Ladder, Margin};
use crate::learned::Learned;
use crate::level::Level;
use crate::time::Instant;

/// The leader's decision for one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Directive {
    /// [`crate::UpstreamKey::hash`].
    #[serde(with = "postcard::fixint::le")]
    pub upstream: u64,
    /// Counts the breaker's transitions.
    pub epoch: u32,
    /// The breaker's state.
    pub breaker: BreakerState,
    /// Most requests in flight for the marginal level.
    pub limit: u32,
    /// Most requests in flight for levels above it.
    pub reserve: u32,
    /// Under a limit below one: requests are admitted until the count of grants reaches this.
    pub grants: Option<u64>,
    /// The level at which demand crosses the capacity.
    pub margin: Margin,
    /// Workers that serve this upstream, at least 1. A worker that cannot see the shared count keeps to its share.
    pub workers: u16,
    /// Requests of the whole proxy that have not ended.
    pub unended: u32,
    /// The latest admission among the requests that any worker saw answered; zero before the first.
    pub answered_up_to: Instant,
    /// Learned state.
    pub learned: Learned,
}

impl Directive {
    /// The directive for an unknown upstream.
    pub(crate) fn unknown(upstream: u64) -> Self {
        Self {
            upstream,
            epoch: 0,
            breaker: BreakerState::Closed,
            limit: 1,
            reserve: 1,
            grants: None,
            margin: Margin::NONE,
            workers: 1,
            unended: 0,
            answered_up_to: Instant::ZERO,
            learned: Learned::default(),
        }
    }

    /// The limits by level.
    pub(crate) fn ladder(&self) -> Ladder {
        Ladder::new(self.margin, self.limit, self.reserve)
    }

    /// Whether requests have been granted one by one at some time: the breaker has opened, or the limit is below one.
    pub(crate) const fn has_grants(&self) -> bool {
        self.epoch != 0 || self.grants.is_some()
    }

    /// Rejects a directive that no leader can have written.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub(super) fn check(&self) -> Result<(), WireError> {
        let Self {
            limit,
            reserve,
            margin,
            workers,
            breaker,
            ..
        } = self;
        let checks = [
            ("limit", *limit >= 1),
            ("reserve", reserve >= limit),
            ("workers", *workers >= 1),
            ("margin.level", margin.level.index() < Level::COUNT),
            ("margin.share", (0.0..=1.0).contains(&margin.share)),
            // A ramp doubles its limit, and twice nothing is nothing.
            (
                "breaker.limit",
                !matches!(breaker, BreakerState::Ramp { limit: 0 }),
            ),
        ];
        let mut all = checks.into_iter();
        all.find(|(_, is_plausible)| !is_plausible)
            .map_or(Ok(()), |(field, _)| Err(WireError::OutOfRange { field }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_that_can_never_grow_is_rejected_by_name() {
        let directive = Directive {
            breaker: BreakerState::Ramp { limit: 0 },
            ..Directive::unknown(7)
        };
        let rejected = WireError::OutOfRange {
            field: "breaker.limit",
        };
        assert_eq!(directive.check(), Err(rejected));
        assert_eq!(Directive::unknown(7).check(), Ok(()));
    }
}

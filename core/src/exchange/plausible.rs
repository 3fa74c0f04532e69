//! Which directives from elsewhere are believed.
//!
//! Shared data is one table for all plugins of a VM id, and Istio leaves the id empty: whoever writes there may write
//! over ours. What was learned cannot be read with a number outside the range of its unit ([`units`](crate::units)). Here
//! stands what only the directive as a whole can tell.

use super::{Directive, WireError};
use crate::breaker::BreakerState;
use crate::level::Level;

/// Refuses a directive that no leader can have written.
pub(super) fn check(directive: &Directive) -> Result<(), WireError> {
    let Directive {
        limit,
        reserve,
        margin,
        workers,
        breaker,
        ..
    } = directive;
    let checks = [
        ("limit", *limit >= 1),
        ("reserve", reserve >= limit),
        ("workers", *workers >= 1),
        ("margin.level", margin.level.index() < Level::COUNT),
        ("margin.share", (0.0..=1.0).contains(&margin.share)),
        // A ramp doubles; nothing doubled stays nothing.
        (
            "breaker.limit",
            !matches!(breaker, BreakerState::Ramp { limit: 0 }),
        ),
    ];
    let mut all = checks.into_iter();
    all.find(|(_, is_plausible)| !is_plausible)
        .map_or(Ok(()), |(field, _)| Err(WireError::OutOfRange { field }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_that_can_never_grow_is_refused_by_name() {
        let directive = Directive {
            breaker: BreakerState::Ramp { limit: 0 },
            ..Directive::unknown(7)
        };
        let refused = WireError::OutOfRange {
            field: "breaker.limit",
        };
        assert_eq!(check(&directive), Err(refused));
        assert_eq!(check(&Directive::unknown(7)), Ok(()));
    }
}

//! The limit in force, and why it is what it is.

use super::ceiling::Ceiling;
use super::reason::LimitReason;
use crate::ablation::{Mechanism, is_off};

/// The reserve above the limit, in standard deviations of a Poisson in-flight.
const RESERVE_DEVIATIONS: f64 = 2.0;

/// The limit that the laws ask for, and the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedLimit {
    pub(super) limit: f64,
    pub(super) law: LimitReason,
    /// What bursts may fill: a limit for requests above the marginal level.
    pub(super) burst: f64,
}

/// The limit of the last round.
#[derive(Clone, Copy, Debug)]
pub(super) struct InForce {
    pub(super) limit: f64,
    pub(super) reason: LimitReason,
}

impl InForce {
    /// Before the first round.
    pub(super) const NONE: Self = Self {
        limit: 0.0,
        reason: LimitReason::WarmUp,
    };

    /// Keeps the wanted limit under the ceiling and within the policy's bounds. Returns the limits for the marginal level
    /// and for the levels above it. With a `min` of 0 the limit of Hold may be below one: there is a place at times.
    pub(super) fn set(
        &mut self,
        wanted: &WantedLimit,
        ceiling: &Ceiling,
        min: f64,
        max: f64,
    ) -> (u32, u32) {
        let held = ceiling.hold(wanted.limit);
        let may_be_below =
            min < 1.0 && wanted.law == LimitReason::Hold && !is_off(Mechanism::BelowOne);
        let least = if may_be_below { min } else { min.max(1.0) };
        let limit = held.max(least).min(max);
        let reason = if held < wanted.limit {
            LimitReason::LoadFailures
        } else if (limit - held).abs() > 0.5 {
            LimitReason::Bounds
        } else if may_be_below && limit < 1.0 {
            LimitReason::BelowOne
        } else {
            wanted.law
        };
        *self = Self { limit, reason };
        let reserve = ceiling.hold(wanted.burst.max(limit + RESERVE_DEVIATIONS * limit.sqrt()));
        (count(limit), count(reserve.min(max).max(limit)))
    }

    /// Whether the ceiling or the policy's bounds hold the limit. Refusals then say nothing about queues.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self.reason, LimitReason::LoadFailures | LimitReason::Bounds)
    }
}

/// A limit as a count, at least one.
pub(super) fn count(limit: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u32"
    )]
    let whole = limit.round().max(1.0).min(f64::from(u32::MAX)) as u32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::CeilingCheckpoint;
    use crate::limit::testing::assert_close;
    use crate::units::Requests;

    fn ceiling(value: Option<f64>) -> Ceiling {
        Ceiling::resume(value.map(|value| CeilingCheckpoint {
            limit: Requests::new(value),
            is_proven: false,
        }))
    }

    /// The laws ask for 100, and for a burst for more important requests: limit, reserve and reason in force.
    #[test]
    fn the_bounds_override_the_ceiling_and_the_ceiling_overrides_the_laws() {
        use LimitReason::{Bounds, Cruise, LoadFailures};
        for (name, burst, top, [min, max], expected) in [
            ("the law", 0.0, None, [1.0, 1e3], (100, 120, Cruise)),
            ("a burst", 150.0, None, [1.0, 1e3], (100, 150, Cruise)),
            (
                "a high ceiling",
                150.0,
                Some(130.0),
                [1.0, 1e3],
                (100, 130, Cruise),
            ),
            (
                "a ceiling",
                150.0,
                Some(50.0),
                [1.0, 1e3],
                (50, 50, LoadFailures),
            ),
            (
                "a forged ceiling",
                150.0,
                Some(0.0),
                [1.0, 1e3],
                (1, 1, LoadFailures),
            ),
            ("the greatest", 150.0, None, [1.0, 80.0], (80, 80, Bounds)),
            ("the least", 0.0, None, [400.0, 1e3], (400, 440, Bounds)),
            (
                "least and ceiling",
                150.0,
                Some(50.0),
                [60.0, 1e3],
                (60, 60, LoadFailures),
            ),
        ] {
            let wanted = WantedLimit {
                limit: 100.0,
                law: Cruise,
                burst,
            };
            let mut in_force = InForce::NONE;
            assert!(!in_force.is_held(), "{name}");
            let (limit, reserve) = in_force.set(&wanted, &ceiling(top), min, max);
            assert_eq!((limit, reserve, in_force.reason), expected, "{name}");
            assert_close(in_force.limit, f64::from(limit), name);
            assert_eq!(in_force.is_held(), in_force.reason != Cruise, "{name}");
        }
    }

    /// The law, the limit that it asks for, and the minimum: the limit in force and the reason.
    #[test]
    fn only_the_limit_of_hold_may_be_below_one() {
        use LimitReason::{BelowOne, Bounds, Cruise, Hold};
        for (law, limit, min, expected, reason) in [
            (Hold, 0.3, 0.0, 0.3, BelowOne),
            (Hold, 1.2, 0.0, 1.2, Hold),
            (Hold, 0.3, 1.0, 1.0, Bounds),
            (Hold, 0.3, 2.0, 2.0, Bounds),
            (Cruise, 0.3, 0.0, 1.0, Bounds),
            (Cruise, 0.7, 0.0, 1.0, Cruise),
        ] {
            let wanted = WantedLimit {
                limit,
                law,
                burst: limit,
            };
            let mut in_force = InForce::NONE;
            let (count, _) = in_force.set(&wanted, &ceiling(None), min, 1e3);
            assert_close(in_force.limit, expected, "limit");
            assert_eq!(
                (in_force.reason, count >= 1),
                (reason, true),
                "{limit} {min}"
            );
        }
    }

    #[test]
    fn a_limit_is_at_least_one_and_a_whole_number() {
        for (limit, expected) in [
            (-3.0, 1),
            (0.0, 1),
            (1.4, 1),
            (2.6, 3),
            (f64::INFINITY, u32::MAX),
        ] {
            assert_eq!(count(limit), expected, "{limit}");
        }
    }
}

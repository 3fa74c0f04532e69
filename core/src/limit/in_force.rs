//! The limit in force, and why it is what it is.

use super::ceiling::Ceiling;
use super::learned::LimitReason;

/// The reserve above the limit, in standard deviations of a Poisson in-flight.
const RESERVE_DEVIATIONS: f64 = 2.0;

/// What the laws want of a limit, and by which of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) limit: f64,
    pub(super) law: LimitReason,
    /// What bursts may fill, above the limit, for requests above the marginal level.
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

    /// What is wanted, held under the ceiling and within the policy's bounds; the limits for the marginal level, and for
    /// those above it.
    pub(super) fn set(
        &mut self,
        wanted: &Wanted,
        ceiling: &Ceiling,
        min: f64,
        max: f64,
    ) -> (u32, u32) {
        let held = ceiling.hold(wanted.limit);
        let limit = held.clamp(min, max);
        let reason = if held < wanted.limit {
            LimitReason::LoadFailures
        } else if (limit - held).abs() > 0.5 {
            LimitReason::Bounds
        } else {
            wanted.law
        };
        *self = Self { limit, reason };
        let reserve = ceiling.hold(wanted.burst.max(limit + RESERVE_DEVIATIONS * limit.sqrt()));
        (count(limit), count(reserve.clamp(limit, max.max(limit))))
    }

    /// Held by something else than the laws for queues: what is refused then says nothing about queues.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self.reason, LimitReason::LoadFailures | LimitReason::Bounds)
    }
}

/// A limit as a count: at least one, whatever the float.
pub(super) fn count(limit: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u32"
    )]
    let whole = limit.round().clamp(1.0, f64::from(u32::MAX)) as u32;
    whole
}

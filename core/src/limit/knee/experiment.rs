//! One cut of the knee's, from what was before it to what it says.
//!
//! What throughput alone says of a cut ([`super::cut`]) is weighed here with what is known besides: whether others may
//! have cut meanwhile, and how few requests it was about.

use super::Belief;
use super::cut::{Loss, Point, loss};
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;

/// A limit of so few cannot be cut by a quarter. What it seems to prove is believed where it leaves the objective room.
const FEW: f64 = 6.0;
/// Latency that has fallen to this share of what it was before the cut shows a queue.
const FALLEN: f64 = 0.9;

/// What the cut was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Aim {
    /// To hold a queue that was found just now: on no beat, so that others may have cut meanwhile. `low` was the low
    /// latency quantile, seconds.
    Entry {
        /// Before the cut.
        low: f64,
    },
    /// To try the baseline on the beat, from this limit.
    Trial {
        /// Where to go back to when the cut says nothing.
        limit: f64,
    },
    /// To make a queue shorter, from this limit: on no beat.
    Step {
        /// Where to go back to when there was none.
        limit: f64,
    },
    /// To find the baseline from above.
    Search,
}

/// A cut under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experiment {
    /// What was measured before it.
    pub(super) before: Point,
    pub(super) aim: Aim,
}

impl Experiment {
    /// The limit to go back to when the cut says nothing; 0 when there is no going back.
    pub(super) const fn limit(&self) -> f64 {
        match self.aim {
            Aim::Trial { limit } | Aim::Step { limit } => limit,
            Aim::Entry { .. } | Aim::Search => 0.0,
        }
    }

    /// What it says, when this was measured after it with `low` as the low latency quantile, seconds. Throughput that falls
    /// with more than the power `no_queue` of in-flight was not held up by a queue.
    pub(super) fn loss(&self, measured: &Sample, low: f64, no_queue: f64, belief: &Belief) -> Loss {
        let now_at = Point::of(measured);
        let is_late = low > belief.plausible_low;
        let others_cut = belief.is_one_of_many
            && matches!(self.aim, Aim::Entry { low: before } if low < before * FALLEN)
            && !is_off(Mechanism::OthersCut);
        match loss(self.before, now_at, measured.span, no_queue) {
            // A queue has become shorter: what throughput was lost others have got.
            Loss::Lost | Loss::Partly if others_cut => Loss::Kept,
            Loss::Lost if self.before.in_flight < FEW && is_late && !is_off(Mechanism::FewLost) => {
                Loss::Unclear
            }
            // A few in flight, late as before: others may have taken their place.
            Loss::Partly if now_at.in_flight < FEW && is_late && !is_off(Mechanism::FewPartly) => {
                Loss::Kept
            }
            loss => loss,
        }
    }
}

//! Between experiments: the queue is held at what keeps the upstream busy.

use super::cut::Point;
use super::experiment::Aim;
use super::room::Wait;
use super::{Belief, HOLLOW, Knee, STEP_DOWN, low};
use crate::ablation::{Mechanism, is_off};
use crate::limit::headroom::headroom;
use crate::sample::Sample;

/// A queue beyond this many times the headroom is cut, below the other share it may grow.
const TOO_MUCH: f64 = 1.5;
const TOO_LITTLE: f64 = 0.5;
/// One step up.
const STEP_UP: f64 = 1.1;
/// One step up towards what Little's law promises, or what packs of requests need.
const LEAP_UP: f64 = 1.5;

impl Knee {
    /// Between experiments: the queue is held at what keeps the upstream busy.
    pub(super) fn follow_queue(&mut self, now_at: Point, measured: &Sample, belief: &Belief) {
        let refused = measured.tally.refused_for_load() > 0;
        if now_at.in_flight < self.value * HOLLOW && !is_off(Mechanism::HollowKnee) {
            // The limit is met for moments only: a cut would be no experiment, and who is refused comes in a pack.
            self.last = None;
            if refused {
                self.change((self.value * LEAP_UP).min(belief.most).max(self.value));
            }
            return;
        }
        self.last = Some(now_at);
        let measured_low = low(&measured.tally.latency).unwrap_or_default();
        let delay = (measured_low - belief.low).max(0.0);
        let queue = now_at.throughput * delay;
        let whole = headroom(belief.model, belief.endpoints);
        let wait = Wait {
            delay,
            whole: whole / now_at.throughput,
        };
        let is_cut = self
            .room
            .weigh(&measured.tally.latency, wait, belief.target);
        let room = whole * self.room.share();
        let model = belief.model - whole + room;
        let is_above = self.value > model && !self.claims.are_pending() && !self.is_low;
        if is_above && (is_cut || queue > TOO_MUCH * room) && !is_off(Mechanism::StepDown) {
            self.step_down(model, now_at, belief);
        } else if queue < TOO_LITTLE * room && refused && !is_off(Mechanism::FollowUp) {
            let step = (self.value * STEP_UP).max(self.value + 1.0);
            self.change(model.min(self.value * LEAP_UP).max(step));
        }
    }

    /// Towards the model. Whether there was a queue to cut is seen by what comes of it, as a service that has become
    /// slower would be asked for less and less otherwise; why there was none is for the beat to say. Where most of a queue
    /// is of others nothing would be seen: they do not cut at the same time.
    fn step_down(&mut self, model: f64, now_at: Point, belief: &Belief) {
        let limit = self.value;
        let value = (limit * STEP_DOWN).max(model);
        if belief.is_one_of_many || is_off(Mechanism::StepBack) {
            self.change(value);
        } else {
            self.value = value;
            self.test(now_at, Aim::Step { limit });
        }
    }
}

//! What a cut says, and what follows from it.

use super::cut::{Loss, NO_QUEUE, NO_QUEUE_SEEKING, Point, is_followed};
use super::experiment::{Aim, Experiment};
use super::room::Room;
use super::{Belief, Knee, MEASURED, Mode, SEEK_DOWN, Verdict, low};
use crate::ablation::{Mechanism, is_off};
use crate::histogram::Histogram;
use crate::limit::headroom::MIN_HEADROOM;
use crate::sample::Sample;

/// A cut that brings latency below this share of the baseline shows that the baseline had a queue in it.
const STILL_QUEUED: f64 = 0.75;

impl Knee {
    /// What a cut that led to `now_at` says. Nothing, when the limit stays where it is.
    pub(super) fn conclude(
        &mut self,
        experiment: &Experiment,
        now_at: Point,
        measured: &Sample,
        belief: &Belief,
    ) -> Option<Verdict> {
        let latency = &measured.tally.latency;
        let measured_low = low(latency).unwrap_or_default();
        let no_queue = match self.mode {
            Mode::Seek => NO_QUEUE_SEEKING,
            Mode::Hold => NO_QUEUE,
        };
        let loss = experiment.loss(measured, measured_low, no_queue, belief);
        // A queue that was cut, and not by chance.
        let found = (latency.len() >= MEASURED && is_followed(experiment.before, now_at))
            .then_some(Verdict::Queue);
        if let Aim::Step { limit } = experiment.aim {
            if loss == Loss::Kept {
                return found;
            }
            self.is_low = !is_off(Mechanism::IsLow);
            self.room = Room::WHOLE;
            self.change(limit);
            return Some(Verdict::Nothing);
        }
        let before = experiment.before;
        self.peak = self.peak.max(now_at.throughput).max(before.throughput);
        let lower = low(latency).is_some_and(|low| low < belief.low * STILL_QUEUED)
            && !is_off(Mechanism::SeekAgain);
        match (self.mode, loss) {
            (_, Loss::Lost | Loss::Partly) => {
                // Below the knee: go back. If latency is up all the same, it is not for a queue.
                let was_seeking = core::mem::replace(&mut self.mode, Mode::Hold) == Mode::Seek;
                let mean = latency.mean().unwrap_or_default();
                let value = if was_seeking {
                    Self::model(self.peak, mean, belief.endpoints)
                } else if loss == Loss::Partly {
                    Self::model(before.throughput, mean, belief.endpoints).max(self.value)
                } else {
                    // Where requests come in packs fewer are in flight on average than the limit lets in.
                    let most = before.in_flight.max(experiment.limit());
                    most.max(self.value) + 1.0
                };
                self.change(value);
                let delay = (measured_low - belief.low).max(0.0);
                let claimed = now_at.throughput * delay > MIN_HEADROOM;
                let is_believed = claimed && self.claims.claim(mean, belief.harmless);
                Some(if was_seeking || is_believed {
                    Verdict::BaselineMoved(Box::new(latency.clone()))
                } else {
                    Verdict::Nothing
                })
            }
            (Mode::Seek, Loss::Kept | Loss::Unclear) => Some(self.seek_on(now_at, latency)),
            (Mode::Hold, Loss::Kept) if lower => {
                self.mode = Mode::Seek;
                self.peak = now_at.throughput.max(before.throughput);
                Some(self.seek_on(now_at, latency))
            }
            (Mode::Hold, Loss::Unclear) => {
                self.value = self.value.max(experiment.limit());
                None
            }
            (Mode::Hold, Loss::Kept) => {
                self.claims.deny();
                found
            }
        }
    }

    /// Further down: what was measured is a lower baseline.
    fn seek_on(&mut self, now_at: Point, latency: &Histogram) -> Verdict {
        self.value *= SEEK_DOWN;
        self.test(now_at, Aim::Search);
        Verdict::BaselineLower(Box::new(latency.clone()))
    }
}

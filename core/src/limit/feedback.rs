//! How much of the wait that the objective affords is in use.
//!
//! What a queue makes late is worked out from latencies: those beyond the objective that would not be without the wait. A
//! request that is late because of the queue and one that is shed cost the same, so the wait shrinks while more are late
//! than were shed, and grows back when it would make few late.

use crate::sample::Sample;

/// Answers that make a judgement.
const JUDGED: u64 = 50;
/// Share of the answers that a queue may make late: what a limit without headroom loses in throughput at the least.
const LATE: f64 = 0.05;
/// What is left of the wait after a judgement with more, the least that ever is, and what one with less gives back.
const CUT: f64 = 0.8;
const MIN: f64 = 0.1;
const STEP: f64 = 0.05;
/// What is left of it where more in flight was found to carry less.
const CONTENDED: f64 = 0.5;

/// The part of a wait that is in use, and what has been seen since it last changed.
#[derive(Clone, Debug)]
pub(super) struct SloFeedback {
    gain: f64,
    answers: f64,
    late: f64,
    more: f64,
}

impl SloFeedback {
    pub(super) const FULL: Self = Self {
        gain: 1.0,
        answers: 0.0,
        late: 0.0,
        more: 0.0,
    };

    pub(super) const fn gain(&self) -> f64 {
        self.gain
    }

    /// More in flight carries less.
    pub(super) fn contend(&mut self) {
        self.gain = (self.gain * CONTENDED).max(MIN);
    }

    /// One window in which requests waited for `delay` seconds, where the objective is `target` and the whole wait `wait`.
    pub(super) fn weigh(&mut self, window: &Sample, delay: f64, wait: f64, target: f64, judged: f64, refused: f64, most: f64) {
        let latency = &window.tally.latency;
        #[expect(clippy::cast_precision_loss, reason = "counts of one window stay far below 2^53")]
        let answers = latency.len() as f64;
        let late = latency.share_above(target);
        let due = late - latency.share_above(target + delay);
        let more = latency.share_above(target - wait * STEP) - late;
        self.answers += answers;
        self.late += due * answers - refused;
        self.more += more * answers;
        if self.answers < judged {
            return;
        }
        let allowed = LATE * self.answers;
        if self.late > allowed {
            self.gain = (self.gain * CUT).max(MIN);
        } else if self.late + self.more <= allowed {
            self.gain = (self.gain + STEP).min(most);
        }
        *self = Self { gain: self.gain, ..Self::FULL };
    }
}

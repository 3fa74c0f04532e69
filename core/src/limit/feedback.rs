//! How much of the wait that the objective affords is used.
//!
//! An answer is late because of the queue if its latency exceeds the objective, but would not without the wait. A request
//! that is late because of the queue costs as much as one that is shed. So the wait shrinks while more requests are late
//! than were shed, and grows while a longer wait would make few requests late.

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::histogram::Histogram;
use crate::units::Gain;

/// Share of the answers that a queue may make late: at least this much throughput is lost by a limit without headroom.
const LATE: f64 = 0.05;
/// What is left of the wait after a judgment with too many late answers, and the least part in use.
const CUT: f64 = 0.8;
const MIN: f64 = 0.1;
/// The part of the wait in use before the first judgment.
const FIRST: f64 = 1.0;

/// How a wait is judged.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Answers that make a judgment.
    judged: f64,
    /// What one judgment gives back.
    step: f64,
    /// The greatest part in use.
    most: f64,
}

/// A single burst may be unusually large, so a judgment takes many answers. Bursts may use more than the first guess.
static OF_BURSTS: Manner = Manner {
    judged: 500.0,
    step: 0.15,
    most: 1.5,
};
/// A standing queue is there all the time, so fewer answers make a judgment.
static OF_HOLD: Manner = Manner {
    judged: 50.0,
    step: 0.05,
    most: 1.0,
};

/// The part of a wait that is in use, and what has been seen since it last changed.
#[derive(Clone, Debug)]
pub(super) struct SloFeedback {
    manner: &'static Manner,
    gain: f64,
    answers: f64,
    /// Late because of the queue, less those that a shorter wait would shed.
    late: f64,
    /// Further answers that a longer wait would make late.
    more: f64,
    /// The shed requests that counted since the limit was last seen with room.
    counted: f64,
}

/// What was shed in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShedRequests {
    /// Requests that were refused because of load.
    pub(super) refused: f64,
    /// The places of the wait: capacity x wait.
    pub(super) places: f64,
}

/// The answers of one window against the objective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lateness<'a> {
    latency: &'a Histogram,
    /// The objective, seconds.
    target: f64,
    /// How long requests have waited, seconds.
    delay: f64,
}

impl<'a> Lateness<'a> {
    pub(super) fn of(latency: &'a Histogram, target: Duration, delay: f64) -> Self {
        Self {
            latency,
            target: target.as_secs_f64(),
            delay,
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of one window stay far below 2^53"
    )]
    fn answers(&self) -> f64 {
        self.latency.len() as f64
    }

    /// Share of the answers that would be in time without the wait, 0..=1.
    fn because_of_the_queue(&self) -> f64 {
        let late = self.latency.share_above(self.target);
        late - self.latency.share_above(self.target + self.delay)
    }

    /// Share of the answers that a longer wait would make late, 0..=1; `longer` is in seconds.
    fn with_more(&self, longer: f64) -> f64 {
        self.latency.share_above(self.target - longer) - self.latency.share_above(self.target)
    }
}

impl SloFeedback {
    /// For the wait of bursts; continues from the state of an earlier leader; 0: unknown.
    pub(super) fn resume(known: Gain) -> Self {
        let gain = if known.get() > 0.0 {
            known.get()
        } else {
            FIRST
        };
        Self::at(&OF_BURSTS, gain.clamp(MIN, OF_BURSTS.most))
    }

    /// The state for a successor.
    pub(super) const fn checkpoint(&self) -> Gain {
        Gain::new(self.gain)
    }

    /// For the wait while a queue stands, before any answer.
    pub(super) const OF_HOLD: Self = Self::at(&OF_HOLD, FIRST);

    const fn at(manner: &'static Manner, gain: f64) -> Self {
        Self {
            manner,
            gain,
            answers: 0.0,
            late: 0.0,
            more: 0.0,
            counted: 0.0,
        }
    }

    pub(super) const fn gain(&self) -> f64 {
        self.gain
    }

    /// Learns from one window; `wait` is the whole wait, in seconds.
    pub(super) fn weigh(&mut self, lateness: &Lateness<'_>, wait: f64, shed: ShedRequests) {
        let answers = lateness.answers();
        self.answers += answers;
        self.late += lateness.because_of_the_queue() * answers - self.count(shed);
        self.more += lateness.with_more(wait * self.manner.step) * answers;
        if self.answers < self.manner.judged {
            return;
        }
        let allowed = LATE * self.answers;
        let gain = if self.late > allowed {
            (self.gain * CUT).max(MIN)
        } else if self.late + self.more <= allowed {
            (self.gain + self.manner.step).min(self.manner.most)
        } else {
            self.gain
        };
        *self = Self {
            counted: self.counted,
            ..Self::at(self.manner, gain)
        };
    }

    /// How many of the shed requests a shorter wait would shed as well: the places that it takes, each time the limit fills.
    fn count(&mut self, shed: ShedRequests) -> f64 {
        if is_off(Mechanism::ShedOnce) {
            return shed.refused;
        }
        if shed.refused <= 0.0 {
            self.counted = 0.0;
        }
        let taken = shed.places * (1.0 - CUT);
        let counts = shed.refused.min((taken - self.counted).max(0.0));
        self.counted += counts;
        counts
    }
}

#[cfg(test)]
mod tests;

//! How much of the wait that the objective affords turns out well.
//!
//! What a queue makes late is worked out from latencies: those beyond the objective that would not be without the wait. A
//! request that is late because of the queue and one that is shed cost the same. So the wait shrinks while more are late
//! than were shed, and grows while a longer one would make few late.

use core::time::Duration;

use crate::histogram::Histogram;
use crate::units::Gain;

/// Share of the answers that a queue may make late: what a limit without headroom loses in throughput at the least.
const LATE: f64 = 0.05;
/// What is left of the wait after a judgement with more, and the least that ever is.
const CUT: f64 = 0.8;
const MIN: f64 = 0.1;
/// The wait in use before anything was judged.
const FIRST: f64 = 1.0;

/// How a wait is judged.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Answers that make a judgement.
    judged: f64,
    /// What one gives back.
    step: f64,
    /// The most that is in use.
    most: f64,
}

/// A burst alone may have been larger than most, so it takes many answers. Bursts may be bolder than the first guess.
const OF_BURSTS: Manner = Manner {
    judged: 500.0,
    step: 0.15,
    most: 1.5,
};
/// A queue that stands is there all the time.
const OF_HOLD: Manner = Manner {
    judged: 50.0,
    step: 0.05,
    most: 1.0,
};

/// The part of a wait that is in use, and what has been seen since it last changed.
#[derive(Clone, Debug)]
pub(super) struct SloFeedback {
    manner: Manner,
    gain: f64,
    answers: f64,
    /// Late because of the queue, less those that were shed.
    late: f64,
    /// More that a longer wait would make late.
    more: f64,
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

    /// Share of the answers that a wait longer by so many seconds would make late, 0..=1.
    fn with_more(&self, longer: f64) -> f64 {
        self.latency.share_above(self.target - longer) - self.latency.share_above(self.target)
    }
}

impl SloFeedback {
    /// Of the wait of bursts: goes on from what a leader knew; 0 is nothing.
    pub(super) fn resume(known: Gain) -> Self {
        let gain = if known.get() > 0.0 {
            known.get()
        } else {
            FIRST
        };
        Self::at(OF_BURSTS, gain.clamp(MIN, OF_BURSTS.most))
    }

    /// What a successor needs.
    pub(super) const fn checkpoint(&self) -> Gain {
        Gain::new(self.gain)
    }

    /// Of the wait while a queue stands.
    pub(super) const fn of_hold() -> Self {
        Self::at(OF_HOLD, FIRST)
    }

    const fn at(manner: Manner, gain: f64) -> Self {
        Self {
            manner,
            gain,
            answers: 0.0,
            late: 0.0,
            more: 0.0,
        }
    }

    pub(super) const fn gain(&self) -> f64 {
        self.gain
    }

    /// One window, in which `refused` requests were shed; the whole `wait` is in seconds.
    pub(super) fn weigh(&mut self, lateness: &Lateness<'_>, wait: f64, refused: f64) {
        let answers = lateness.answers();
        self.answers += answers;
        self.late += lateness.because_of_the_queue() * answers - refused;
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
        *self = Self::at(self.manner, gain);
    }
}

#[cfg(test)]
mod tests;

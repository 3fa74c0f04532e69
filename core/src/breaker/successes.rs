//! Have failures replaced successes?
//!
//! In an outage successes are missing for [longer than usual](super::silence), and [more failures](super::failure_peak) come than beside
//! successes before. Each worker watches its own outcomes, and the leader those of all.

use core::time::Duration;

use super::failure_peak::FailurePeak;
use super::silence::Silence;
use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

/// The successes of one upstream, and the failures beside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Successes {
    gaps: Silence,
    /// `None` before the first failure: most upstreams never fail.
    failures: Option<Box<FailurePeak>>,
}

impl Successes {
    /// A success at `now`.
    pub(crate) fn succeed(&mut self, now: Instant) {
        self.succeed_within(Duration::ZERO, now);
    }

    /// Successes in the last `span` before `now`, at unknown moments.
    pub(crate) fn succeed_within(&mut self, span: Duration, now: Instant) {
        let kept = self.gaps.end_before(span, now);
        if let Some(failures) = &mut self.failures {
            failures.succeed(kept, now);
        }
    }

    /// So many failures.
    pub(crate) fn fail(&mut self, failures: u32, now: Instant) {
        if failures > 0 {
            self.failures.get_or_insert_default().fail(failures, now);
        }
    }

    /// A success came although failures were enough to trip: only some requests fail.
    pub(crate) const fn doubt(&mut self, now: Instant) {
        self.gaps.doubt(now);
    }

    /// The watch starts over: the time before says nothing about gaps.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.gaps.restart(now);
        if let Some(failures) = &mut self.failures {
            failures.restart();
        }
    }

    /// Whether failures have replaced successes. If no success has ever come, they have been missing since `asked_since`.
    pub(crate) fn are_replaced(&self, asked_since: Instant, now: Instant) -> bool {
        let Some(failures) = &self.failures else {
            return false;
        };
        let is_silent = self.gaps.lacks_successes(failures.run(), asked_since, now)
            || is_off(Mechanism::Silence);
        let are_more =
            failures.is_exceeded(self.gaps.gap(asked_since, now)) || is_off(Mechanism::FailurePeak);
        is_silent && are_more
    }
}

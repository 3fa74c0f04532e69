//! How far the baseline is proved: one learned while requests had to be refused may have a queue in it.

use crate::ablation::{Mechanism, is_off};
use crate::limit::STANDING_AFTER;
use crate::limit::figures::Figures;
use crate::time::Instant;

/// So many answers without a refusal, or with room for more, make a baseline that is trusted.
const PROVEN: u64 = 10;
/// When more than this share is refused before the baseline is trusted, it has to be found from above.
const SEEK_SHARE: f64 = 0.2;

/// What speaks for the baseline, and since when it is in doubt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    /// Answers that came while nothing was refused, or with room for more; enough from [`PROVEN`] on.
    answers: u64,
    refusing_since: Option<Instant>,
}

impl Proof {
    /// Of a baseline that was learned by somebody else, or of none.
    pub(super) fn inherited(is_known: bool) -> Self {
        Self {
            answers: if is_known || is_off(Mechanism::Proof) {
                PROVEN
            } else {
                0
            },
            refusing_since: None,
        }
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.answers >= PROVEN
    }

    /// Nothing speaks against the baseline: it is proved, or nothing has been refused yet.
    pub(super) const fn is_undoubted(&self) -> bool {
        self.is_complete() || self.refusing_since.is_none()
    }

    /// An experiment has shown the baseline.
    pub(super) const fn complete(&mut self) {
        self.answers = PROVEN;
    }

    /// There is room, and nothing is refused.
    pub(super) const fn calm(&mut self) {
        self.refusing_since = None;
    }

    /// One window. `is_free` when what was refused came in a pack, or what waits does no harm. True when the window
    /// puts a baseline that is not proved in doubt.
    pub(super) fn weigh(&mut self, figures: &Figures, is_free: bool) -> bool {
        if !figures.refused || is_free {
            self.answers = self.answers.saturating_add(figures.answers);
            self.refusing_since = None;
            return false;
        }
        !self.is_complete() && figures.refused_share > SEEK_SHARE
    }

    /// One window of doubt. True when doubt has lasted, and the baseline is to be sought from above.
    pub(super) fn doubt(&mut self, now: Instant) -> bool {
        let since = *self.refusing_since.get_or_insert(now);
        now.saturating_since(since) >= STANDING_AFTER
    }
}

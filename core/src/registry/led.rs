//! An upstream that a worker knows as a leader alone.
//!
//! Other workers have its requests. So there are no counts, no requests in flight and no gate of this worker's own, and the leader's
//! laws have what is known. A [slot](crate::slot) is made with the first request of this worker.

use core::cell::Cell;
use std::sync::Arc;

use crate::config::RuleIndex;
use crate::exchange::UNSTAMPED;
use crate::time::Instant;
use crate::upstream::UpstreamKey;

/// The place of such an upstream.
#[derive(Debug)]
pub(crate) struct LedUpstream {
    pub(crate) key: Arc<UpstreamKey>,
    /// [`UpstreamKey::hash`] of it.
    pub(crate) hash: u64,
    /// The configuration's rule that applies.
    pub(crate) rule: RuleIndex,
    /// When this worker last decided about it for the others.
    pub(super) last_led: Instant,
    /// The stamp of its last directive.
    pub(super) followed: u32,
    /// Whether metrics show what holds.
    pub(super) is_shown: Cell<bool>,
}

impl LedUpstream {
    pub(super) const fn new(
        key: Arc<UpstreamKey>,
        hash: u64,
        rule: RuleIndex,
        now: Instant,
    ) -> Self {
        Self {
            key,
            hash,
            rule,
            last_led: now,
            followed: UNSTAMPED,
            is_shown: Cell::new(false),
        }
    }

    /// There is another leader or policy.
    pub(super) fn begin_anew(&mut self) {
        self.followed = UNSTAMPED;
        self.is_shown.set(false);
    }
}

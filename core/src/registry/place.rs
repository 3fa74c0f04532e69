//! The place of one upstream in a worker: its state, and whether there is anything to do for it.

use core::cell::Cell;

use crate::breaker::BreakerState;
use crate::config::RuleIndex;
use crate::exchange::{PackedDirective, UNSTAMPED};
use crate::slot::Slot;
use crate::time::Instant;

/// An upstream with nothing under way is at rest this many ticks after its last request. Its last report is published in each
/// of them: a leader that misses all of them has missed a second.
pub(super) const TICKS_TO_SLEEP: u8 = 10;
/// The same if the leader reads in each tick what its workers reported in it. A worker may be late for one. A report that is
/// missed loses nothing: it comes with the next request.
pub(super) const TICKS_TO_SLEEP_IF_READ: u8 = 3;

/// One upstream: what every tick needs. The rest is boxed, because few upstreams are in use at a time.
#[derive(Debug)]
pub(super) struct UpstreamPlace {
    pub(super) rest: Rest,
    /// The stamp of the directive that the upstream follows.
    pub(super) followed: u32,
    /// Whether metrics show what holds. Of use where this worker leads.
    pub(super) is_shown: Cell<bool>,
    /// The configuration's rule that applies. It is not in the slot, because a leader asks in each round.
    pub(super) rule: RuleIndex,
    pub(super) slot: Box<Slot>,
}

/// Whether there is anything to do for an upstream.
///
/// ```text
/// Awake -- TICKS_TO_SLEEP without a request, nothing under way, breaker closed --> Asleep
///   ^                                                                                |
///   +------- a request; a breaker that is not closed; another leader or policy ------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// There may be something to do; `ticks` have passed since the last use.
    Awake { ticks: u8 },
    /// There is nothing to do. Until `reported_until` the leader is told so, for as long as reports would have been sent.
    Asleep { reported_until: Instant },
}

impl UpstreamPlace {
    pub(super) fn new(slot: Slot, rule: RuleIndex) -> Self {
        Self {
            rest: Rest::AWAKE,
            followed: UNSTAMPED,
            is_shown: Cell::new(false),
            rule,
            slot: Box::new(slot),
        }
    }

    pub(super) const fn is_awake(&self) -> bool {
        matches!(self.rest, Rest::Awake { .. })
    }

    /// Whether this directive of the same leader would change nothing. While something is under way, the same directive may have
    /// another effect than before.
    pub(super) fn follows(&self, entry: &PackedDirective<'_>) -> bool {
        is_same(self.followed, entry) && (!self.is_awake() || self.is_settled())
    }

    /// Whether nothing is under way.
    pub(super) fn is_settled(&self) -> bool {
        let gate = &self.slot.gate;
        self.slot.is_idle() && gate.state() == BreakerState::Closed && !gate.is_ahead()
    }

    /// There is another leader or policy: the same directive may have another effect, and the leader may not know the earlier
    /// reports.
    pub(super) fn begin_anew(&mut self) {
        self.rest = Rest::AWAKE;
        self.followed = UNSTAMPED;
        self.is_shown.set(false);
    }

    /// Whether metrics show what holds, and will until something happens.
    pub(super) const fn is_settled_and_shown(&self) -> bool {
        self.is_shown.get() && !self.is_awake()
    }

    /// The end of a slice in which there was nothing to report, which the leader is told until `reported_until`. The upstream falls
    /// asleep `ticks_to_sleep` after its last request.
    pub(super) fn tire(&mut self, ticks_to_sleep: u8, reported_until: Instant) {
        if let Rest::Awake { ticks } = self.rest
            && ticks >= ticks_to_sleep
            && self.is_settled()
        {
            self.rest = Rest::Asleep { reported_until };
            self.slot.waiting.rest();
        }
    }
}

impl Rest {
    pub(super) const AWAKE: Self = Self::Awake { ticks: 0 };
}

/// Whether the directive with this stamp, `followed`, is this one.
pub(super) fn is_same(followed: u32, entry: &PackedDirective<'_>) -> bool {
    entry.stamp != UNSTAMPED && entry.stamp == followed
}

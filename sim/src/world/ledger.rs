//! The record of a run while it is played.

use std::collections::BTreeMap;

use tidegate_core::Instant;

use super::event::WorldEvent;
use crate::decision::LimitMove;
use crate::digest::Digest;
use crate::run::Noted;
use crate::series::SeriesSample;

/// The record of a run while it is played.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) digest: Digest,
    pub(super) events: u64,
    pub(super) most_in_flight: u64,
    pub(super) asked: u64,
    pub(super) admitted: u64,
    pub(super) sheds: BTreeMap<&'static str, u64>,
    pub(super) sheds_at: BTreeMap<usize, u64>,
    pub(super) samples: Vec<SeriesSample>,
    pub(super) notes: Vec<Noted>,
    pub(super) moves: Vec<LimitMove>,
}

impl Ledger {
    pub(super) fn hear(&mut self, at: Instant, what: WorldEvent) {
        let (kind, subject) = what.code();
        self.events += 1;
        self.digest.feed(at.as_nanos());
        // The first kinds fit into four bits; later ones are fed as a number of their own.
        if kind < 16 {
            self.digest.feed(subject << 4 | kind);
        } else {
            self.digest.feed(subject << 4);
            self.digest.feed(kind);
        }
    }

    pub(super) fn ask(&mut self) {
        self.asked += 1;
    }

    pub(super) fn admit(&mut self) {
        self.admitted += 1;
    }

    pub(super) fn shed(&mut self, attempt: usize, upstream: usize, reason: &'static str) {
        self.digest.feed(u64::try_from(attempt).unwrap_or(u64::MAX));
        self.digest.feed_bytes(reason.as_bytes());
        *self.sheds.entry(reason).or_default() += 1;
        *self.sheds_at.entry(upstream).or_default() += 1;
    }

    /// Keeps a decision that differs from the last one about the same upstream.
    pub(super) fn explain(&mut self, next: LimitMove) {
        let mut before = self.moves.iter().rev();
        let last = before.find(|last| last.upstream == next.upstream);
        if last.is_none_or(|last| next.decision.differs(&last.decision)) {
            self.moves.push(next);
        }
    }

    pub(super) fn hold(&mut self, in_flight: u64) {
        self.most_in_flight = self.most_in_flight.max(in_flight);
    }
}

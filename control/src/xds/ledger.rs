//! What one proxy holds of one type of resource, what is under way to it, and what it refused.
//!
//! Problem: policies change at any time, a proxy answers at any time or never, and neither may be pushed what
//! it has, nor what it has just refused, nor two things at once.
//!
//! Mechanism: at most one push is under way. What changes meanwhile waits; after the answer one push carries
//! the newest of everything that differs, so that versions in between are skipped.
//!
//! ```text
//!            next(): something differs
//!     Idle ------------------------------> Waiting { nonce, versions }
//!       ^                                      |
//!       +---- settle(): ACK: now held ---------+
//!       +---- settle(): NACK, one resource: refused until its version changes
//!       +---- settle(): NACK, several: each becomes a suspect and is tried alone
//! ```
//!
//! Edges: a refusal speaks of the push as a whole; without the trial one by one, a bad resource would
//! keep the good ones that happened to travel with it away from the proxy. An answer with another nonce than
//! the one under way is late and says nothing. What a proxy forgets, even while a push of it is under way,
//! counts as not held.

use std::collections::BTreeMap;

use super::{Name, Version};

/// Versions by name; `None`: the proxy is to know that the resource does not exist.
pub(super) type Versions = BTreeMap<Name, Option<Version>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    held: Versions,
    refused: Versions,
    suspects: Versions,
    state: State,
    nonces: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Waiting {
        nonce: u64,
        versions: Versions,
        // Whether it carried one resource only, so that a refusal means that one.
        is_alone: bool,
    },
}

/// What the proxy made of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Refuse,
}

/// A push to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) nonce: String,
    pub(super) versions: Versions,
}

impl Ledger {
    /// What is sent next so that the proxy comes to have `wanted`, if anything is and nothing is under way.
    pub(super) fn next(&mut self, wanted: &Versions) -> Option<Batch> {
        if matches!(self.state, State::Waiting { .. }) {
            return None;
        }
        let (suspects, clear): (Vec<_>, Vec<_>) = wanted
            .iter()
            .filter(|(name, version)| self.held.get(*name) != Some(version))
            .filter(|(name, version)| self.refused.get(*name) != Some(version))
            .partition(|(name, version)| self.suspects.get(*name) == Some(version));
        let alone = suspects.into_iter().take(usize::from(clear.is_empty()));
        let versions: Versions = clear
            .into_iter()
            .chain(alone)
            .map(|(name, version)| (name.clone(), version.clone()))
            .collect();
        if versions.is_empty() {
            return None;
        }
        self.nonces += 1;
        self.state = State::Waiting {
            nonce: self.nonces,
            is_alone: versions.len() == 1,
            versions: versions.clone(),
        };
        Some(Batch {
            nonce: self.nonces.to_string(),
            versions,
        })
    }

    /// Takes the proxy's answer; what it was about, or `None` when nothing with this nonce is under way.
    pub(super) fn settle(&mut self, nonce: &str, verdict: Verdict) -> Option<Versions> {
        if !self.is_under_way(nonce) {
            return None;
        }
        let State::Waiting {
            versions, is_alone, ..
        } = std::mem::take(&mut self.state)
        else {
            return None;
        };
        for (name, version) in &versions {
            let (name, version) = (name.clone(), version.clone());
            self.suspects.remove(&name);
            match verdict {
                Verdict::Accept => {
                    self.refused.remove(&name);
                    self.held.insert(name, version);
                }
                Verdict::Refuse if is_alone => _ = self.refused.insert(name, version),
                Verdict::Refuse => _ = self.suspects.insert(name, version),
            }
        }
        Some(versions)
    }

    /// Whether an answer to the push with this nonce is awaited.
    pub(super) fn is_under_way(&self, nonce: &str) -> bool {
        matches!(&self.state, State::Waiting { nonce: own, .. } if *own.to_string() == *nonce)
    }

    /// Whether this is the nonce of the last push, answered or not; the empty one before any push.
    pub(super) fn is_latest(&self, nonce: &str) -> bool {
        match self.nonces {
            0 => nonce.is_empty(),
            latest => nonce == latest.to_string(),
        }
    }

    /// The proxy says that it has this (after a reconnect).
    pub(super) fn assume(&mut self, name: Name, version: Version) {
        self.held.insert(name, Some(version));
    }

    /// The proxy has dropped this, or wants it again whatever it has.
    pub(super) fn forget(&mut self, name: &str) {
        for versions in [&mut self.held, &mut self.refused, &mut self.suspects] {
            versions.remove(name);
        }
        if let State::Waiting { versions, .. } = &mut self.state {
            versions.remove(name);
        }
    }

    /// Forgets all but what `keep` says.
    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        for versions in [&mut self.held, &mut self.refused, &mut self.suspects] {
            versions.retain(|name, _| keep(name));
        }
        if let State::Waiting { versions, .. } = &mut self.state {
            versions.retain(|name, _| keep(name));
        }
    }

    /// What the proxy holds, or was told that it does not exist.
    pub(super) const fn held(&self) -> &Versions {
        &self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(versions: &[(&str, &str)]) -> Versions {
        versions
            .iter()
            .map(|(name, version)| (Name::from(*name), Some(Version::new(version))))
            .collect()
    }

    fn pushed(ledger: &mut Ledger, wanted: &Versions) -> (String, Versions) {
        let batch = ledger.next(wanted).unwrap();
        (batch.nonce, batch.versions)
    }

    #[test]
    fn what_is_held_is_not_pushed_again() {
        let mut ledger = Ledger::default();
        let wanted = versions(&[("a", "1")]);

        let (nonce, batch) = pushed(&mut ledger, &wanted);
        assert_eq!(batch, wanted);
        assert_eq!(ledger.settle(&nonce, Verdict::Accept), Some(wanted.clone()));

        assert_eq!(ledger.next(&wanted), None);
    }

    #[test]
    fn while_a_push_is_under_way_nothing_follows_and_then_only_the_newest() {
        let mut ledger = Ledger::default();
        let (nonce, _) = pushed(&mut ledger, &versions(&[("a", "1")]));

        assert_eq!(ledger.next(&versions(&[("a", "2")])), None);
        assert_eq!(ledger.next(&versions(&[("a", "3")])), None);
        ledger.settle(&nonce, Verdict::Accept);

        let newest = versions(&[("a", "3")]);
        assert_eq!(pushed(&mut ledger, &newest).1, newest);
    }

    #[test]
    fn what_was_refused_waits_for_another_version() {
        let mut ledger = Ledger::default();
        let bad = versions(&[("a", "bad")]);
        let (nonce, _) = pushed(&mut ledger, &bad);

        ledger.settle(&nonce, Verdict::Refuse);

        assert_eq!(ledger.next(&bad), None);
        assert!(ledger.next(&versions(&[("a", "good")])).is_some());
    }

    #[test]
    fn after_a_refused_group_each_is_tried_alone() {
        let mut ledger = Ledger::default();
        let wanted = versions(&[("a", "bad"), ("b", "good")]);
        let (nonce, _) = pushed(&mut ledger, &wanted);
        ledger.settle(&nonce, Verdict::Refuse);

        let (nonce, first) = pushed(&mut ledger, &wanted);
        assert_eq!(first, versions(&[("a", "bad")]));
        ledger.settle(&nonce, Verdict::Refuse);
        let (nonce, second) = pushed(&mut ledger, &wanted);
        assert_eq!(second, versions(&[("b", "good")]));
        ledger.settle(&nonce, Verdict::Accept);

        assert_eq!(ledger.next(&wanted), None);
        assert_eq!(*ledger.held(), versions(&[("b", "good")]));
    }

    #[test]
    fn a_late_answer_says_nothing() {
        let mut ledger = Ledger::default();
        let (old, _) = pushed(&mut ledger, &versions(&[("a", "1")]));
        ledger.settle(&old, Verdict::Accept);
        pushed(&mut ledger, &versions(&[("a", "2")]));

        assert_eq!(ledger.settle(&old, Verdict::Refuse), None);
        assert_eq!(ledger.settle("", Verdict::Accept), None);

        assert_eq!(*ledger.held(), versions(&[("a", "1")]));
    }

    #[test]
    fn what_was_forgotten_under_way_is_pushed_again() {
        let mut ledger = Ledger::default();
        let wanted = versions(&[("a", "1")]);
        let (nonce, _) = pushed(&mut ledger, &wanted);

        ledger.forget("a");
        ledger.settle(&nonce, Verdict::Accept);

        assert_eq!(pushed(&mut ledger, &wanted).1, wanted);
    }
}

//! What one proxy holds of one resource type, which push is pending, and what the proxy rejected.
//!
//! Problem: policies change at any time, and a proxy answers at any time or never. Never push to it what it has, or what
//! it has just rejected, or two pushes at once.
//!
//! Mechanism: at most one push is pending. Changes in the meantime wait; after the answer, one push carries the newest
//! version of everything that differs, so versions in between are skipped.
//!
//! ```text
//!            next(): something differs
//!     Idle ------------------------------> Waiting { nonce, versions }
//!       ^                                      |
//!       +---- settle(): ACK: now held ---------+
//!       +---- settle(): NACK, one resource: rejected until its version changes
//!       +---- settle(): NACK, several: each becomes a suspect and is tried alone
//! ```
//!
//! Edge cases: a rejection refers to the whole push; without the trial one by one, a bad resource would keep the good
//! ones of the same push from the proxy. An answer with a nonce other than the pending one is late and is ignored. A
//! resource that the proxy forgets, even while a push of it is pending, counts as not held.

use std::collections::BTreeMap;

use super::resource::{Name, ResourceVersion};

/// Versions by name; `None`: the proxy should know that the resource does not exist.
pub(super) type ResourceVersions = BTreeMap<Name, Option<ResourceVersion>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct PushLedger {
    held: ResourceVersions,
    rejected: ResourceVersions,
    suspects: ResourceVersions,
    state: LedgerState,
    nonces: u64,
}

#[derive(Debug, Default)]
enum LedgerState {
    #[default]
    Idle,
    Waiting {
        nonce: u64,
        versions: ResourceVersions,
        // Whether it carried a single resource, so that a rejection refers to that one.
        is_alone: bool,
    },
}

/// The proxy's decision about a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PushVerdict {
    Accept,
    Reject,
}

/// A push to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) nonce: String,
    pub(super) versions: ResourceVersions,
}

impl PushLedger {
    /// The next push toward `wanted`; `None` if nothing differs or a push is pending.
    pub(super) fn next(&mut self, wanted: &ResourceVersions) -> Option<Batch> {
        if matches!(self.state, LedgerState::Waiting { .. }) {
            return None;
        }
        let (suspects, clear): (Vec<_>, Vec<_>) = wanted
            .iter()
            .filter(|(name, version)| self.held.get(*name) != Some(version))
            .filter(|(name, version)| self.rejected.get(*name) != Some(version))
            .partition(|(name, version)| self.suspects.get(*name) == Some(version));
        let alone = suspects.into_iter().take(usize::from(clear.is_empty()));
        let versions: ResourceVersions = clear
            .into_iter()
            .chain(alone)
            .map(|(name, version)| (name.clone(), version.clone()))
            .collect();
        if versions.is_empty() {
            return None;
        }
        self.nonces += 1;
        self.state = LedgerState::Waiting {
            nonce: self.nonces,
            is_alone: versions.len() == 1,
            versions: versions.clone(),
        };
        Some(Batch {
            nonce: self.nonces.to_string(),
            versions,
        })
    }

    /// Processes the proxy's answer. Returns the contents of the push, or `None` if no push with this nonce is pending.
    pub(super) fn settle(&mut self, nonce: &str, verdict: PushVerdict) -> Option<ResourceVersions> {
        if !self.is_pending(nonce) {
            return None;
        }
        let LedgerState::Waiting {
            versions, is_alone, ..
        } = std::mem::take(&mut self.state)
        else {
            return None;
        };
        for (name, version) in &versions {
            let (name, version) = (name.clone(), version.clone());
            self.suspects.remove(&name);
            match verdict {
                PushVerdict::Accept => {
                    self.rejected.remove(&name);
                    self.held.insert(name, version);
                }
                PushVerdict::Reject if is_alone => _ = self.rejected.insert(name, version),
                PushVerdict::Reject => _ = self.suspects.insert(name, version),
            }
        }
        Some(versions)
    }

    /// Whether the push with this nonce is pending.
    pub(super) fn is_pending(&self, nonce: &str) -> bool {
        matches!(&self.state, LedgerState::Waiting { nonce: own, .. } if *own.to_string() == *nonce)
    }

    /// Whether this is the nonce of the last push, answered or not; before any push, the empty nonce.
    pub(super) fn is_latest(&self, nonce: &str) -> bool {
        match self.nonces {
            0 => nonce.is_empty(),
            latest => nonce == latest.to_string(),
        }
    }

    /// Records that the proxy has this, as it reports after a reconnect.
    pub(super) fn assume(&mut self, name: Name, version: ResourceVersion) {
        self.held.insert(name, Some(version));
    }

    /// Forgets a resource that the proxy has dropped, or wants again even if it has it.
    pub(super) fn forget(&mut self, name: &str) {
        for versions in [&mut self.held, &mut self.rejected, &mut self.suspects] {
            versions.remove(name);
        }
        if let LedgerState::Waiting { versions, .. } = &mut self.state {
            versions.remove(name);
        }
    }

    /// Forgets all resources except those that `keep` selects.
    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        for versions in [&mut self.held, &mut self.rejected, &mut self.suspects] {
            versions.retain(|name, _| keep(name));
        }
        if let LedgerState::Waiting { versions, .. } = &mut self.state {
            versions.retain(|name, _| keep(name));
        }
    }

    /// The versions that the proxy holds; `None`: it knows that the resource does not exist.
    pub(super) const fn held(&self) -> &ResourceVersions {
        &self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(versions: &[(&str, &str)]) -> ResourceVersions {
        versions
            .iter()
            .map(|(name, version)| (Name::from(*name), Some(ResourceVersion::new(version))))
            .collect()
    }

    fn pushed(ledger: &mut PushLedger, wanted: &ResourceVersions) -> (String, ResourceVersions) {
        let batch = ledger.next(wanted).unwrap();
        (batch.nonce, batch.versions)
    }

    #[test]
    fn a_held_version_is_not_pushed_again() {
        let mut ledger = PushLedger::default();
        let wanted = versions(&[("a", "1")]);

        let (nonce, batch) = pushed(&mut ledger, &wanted);
        assert_eq!(batch, wanted);
        assert_eq!(
            ledger.settle(&nonce, PushVerdict::Accept),
            Some(wanted.clone())
        );

        assert_eq!(ledger.next(&wanted), None);
    }

    #[test]
    fn a_pending_push_delays_changes_and_only_the_newest_follows() {
        let mut ledger = PushLedger::default();
        let (nonce, _) = pushed(&mut ledger, &versions(&[("a", "1")]));

        assert_eq!(ledger.next(&versions(&[("a", "2")])), None);
        assert_eq!(ledger.next(&versions(&[("a", "3")])), None);
        ledger.settle(&nonce, PushVerdict::Accept);

        let newest = versions(&[("a", "3")]);
        assert_eq!(pushed(&mut ledger, &newest).1, newest);
    }

    #[test]
    fn a_rejected_version_is_not_pushed_again() {
        let mut ledger = PushLedger::default();
        let bad = versions(&[("a", "bad")]);
        let (nonce, _) = pushed(&mut ledger, &bad);

        ledger.settle(&nonce, PushVerdict::Reject);

        assert_eq!(ledger.next(&bad), None);
        assert!(ledger.next(&versions(&[("a", "good")])).is_some());
    }

    #[test]
    fn after_a_rejected_group_each_resource_is_tried_alone() {
        let mut ledger = PushLedger::default();
        let wanted = versions(&[("a", "bad"), ("b", "good")]);
        let (nonce, _) = pushed(&mut ledger, &wanted);
        ledger.settle(&nonce, PushVerdict::Reject);

        let (nonce, first) = pushed(&mut ledger, &wanted);
        assert_eq!(first, versions(&[("a", "bad")]));
        ledger.settle(&nonce, PushVerdict::Reject);
        let (nonce, second) = pushed(&mut ledger, &wanted);
        assert_eq!(second, versions(&[("b", "good")]));
        ledger.settle(&nonce, PushVerdict::Accept);

        assert_eq!(ledger.next(&wanted), None);
        assert_eq!(*ledger.held(), versions(&[("b", "good")]));
    }

    #[test]
    fn a_late_answer_is_ignored() {
        let mut ledger = PushLedger::default();
        let (old, _) = pushed(&mut ledger, &versions(&[("a", "1")]));
        ledger.settle(&old, PushVerdict::Accept);
        pushed(&mut ledger, &versions(&[("a", "2")]));

        assert_eq!(ledger.settle(&old, PushVerdict::Reject), None);
        assert_eq!(ledger.settle("", PushVerdict::Accept), None);

        assert_eq!(*ledger.held(), versions(&[("a", "1")]));
    }

    #[test]
    fn a_resource_forgotten_while_pending_is_pushed_again() {
        let mut ledger = PushLedger::default();
        let wanted = versions(&[("a", "1")]);
        let (nonce, _) = pushed(&mut ledger, &wanted);

        ledger.forget("a");
        ledger.settle(&nonce, PushVerdict::Accept);

        assert_eq!(pushed(&mut ledger, &wanted).1, wanted);
    }
}

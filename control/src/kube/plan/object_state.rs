//! The state of one object: whether it matches its desired state, who owns it, and whether to write it.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::kube::istio::{DesiredObject, ObjectKey};
use crate::kube::status::ObjectState;
use crate::kube::view::{
    ClusterView, ObjectComparison, ObservedObject, ObservedPolicy, WriteSubject,
};

/// Takes the place of the hash for a deletion, which has no desired object.
pub const REMOVAL: &str = "removal";

/// Determines the states of objects, and collects when failed writes should be retried.
pub(super) struct ObjectStates<'a> {
    view: &'a ClusterView,
    now: Instant,
    /// The uids of all policies.
    living: BTreeSet<&'a str>,
    retry_at: Option<Instant>,
}

impl<'a> ObjectStates<'a> {
    pub(super) fn new(view: &'a ClusterView, now: Instant) -> Self {
        Self {
            view,
            now,
            living: view.policies.values().map(|p| p.uid.as_str()).collect(),
            retry_at: None,
        }
    }

    /// The earliest time of a retry.
    pub(super) const fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// The state of the object that `policy` needs.
    pub(super) fn state(
        &mut self,
        policy: &ObservedPolicy,
        desired: &DesiredObject,
    ) -> ObjectState {
        let Some(seen) = self.view.objects.get(&desired.key) else {
            return self.due(&desired.key, &desired.hash, None);
        };
        if seen.is_leaving || self.is_orphaned(seen) {
            return ObjectState::Leaving;
        }
        if !seen.belongs_to(&policy.uid) {
            return ObjectState::Foreign;
        }
        match seen.compare(desired) {
            ObjectComparison::Same => ObjectState::Current,
            ObjectComparison::Added(path) => ObjectState::Added(path),
            ObjectComparison::Differs if self.is_as_written(&desired.key, &desired.hash, seen) => {
                ObjectState::Altered
            }
            ObjectComparison::Differs => self.due(&desired.key, &desired.hash, Some(seen)),
        }
    }

    /// Whether the object is the direct result of writing the object with this hash.
    fn is_as_written(&self, key: &ObjectKey, hash: &str, seen: &ObservedObject) -> bool {
        let written = self.view.written.get(key);
        written.is_some_and(|(h, version)| h == hash && *version == seen.resource_version)
    }

    /// [`ObjectState::Due`], unless the same write failed and its retry time has not come.
    pub(super) fn due(
        &mut self,
        key: &ObjectKey,
        hash: &str,
        seen: Option<&ObservedObject>,
    ) -> ObjectState {
        let subject = WriteSubject::Object(key.clone());
        let Some(failure) = self.view.write_failures.get(&subject) else {
            return ObjectState::Due;
        };
        let version = seen.map(|seen| seen.resource_version.as_str());
        let is_the_same = failure.hash == hash && failure.resource_version.as_deref() == version;
        if !is_the_same || failure.retry_at <= self.now {
            return ObjectState::Due;
        }
        self.wait_until(failure.retry_at);
        ObjectState::WriteFailed(failure.cause.clone())
    }

    pub(super) fn wait_until(&mut self, time: Instant) {
        let earliest = self.retry_at.map_or(time, |before| before.min(time));
        self.retry_at = Some(earliest);
    }

    /// Whether the object belonged to a deleted policy; a new policy of the same name may exist.
    pub(super) fn is_orphaned(&self, seen: &ObservedObject) -> bool {
        let is_ours = seen.is_labelled && !seen.owners.is_empty();
        let mut owners = seen.owners.iter();
        is_ours && !owners.any(|owner| self.living.contains(owner.as_str()))
    }
}

//! How one object stands: whether it is as it ought to be, whose it is, and whether anything is to be done about it.

use std::time::Instant;

use super::Planner;
use crate::kube::extension::{ObjectKey, Wanted};
use crate::kube::held::Held;
use crate::kube::object::{Likeness, Seen};
use crate::kube::outlook::Standing;
use crate::kube::refusal::Subject;

impl Planner<'_> {
    pub(super) fn standing(&mut self, held: &Held, wanted: &Wanted) -> Standing {
        let Some(seen) = self.world.objects.get(&wanted.key) else {
            return self.due(&wanted.key, &wanted.hash, None);
        };
        if seen.is_leaving || self.is_left_over(seen) {
            return Standing::Leaving;
        }
        if !seen.belongs_to(&held.uid) {
            return Standing::Foreign;
        }
        match seen.likeness(wanted) {
            Likeness::Same => Standing::Current,
            Likeness::Added(path) => Standing::Added(path),
            Likeness::Differs if self.is_as_written(&wanted.key, &wanted.hash, seen) => {
                Standing::Altered
            }
            Likeness::Differs => self.due(&wanted.key, &wanted.hash, Some(seen)),
        }
    }

    /// Whether the object is what came of writing just this.
    fn is_as_written(&self, key: &ObjectKey, hash: &str, seen: &Seen) -> bool {
        let written = self.world.written.get(key);
        written.is_some_and(|(h, version)| h == hash && *version == seen.resource_version)
    }

    pub(super) fn due(&mut self, key: &ObjectKey, hash: &str, seen: Option<&Seen>) -> Standing {
        let subject = Subject::Object(key.clone());
        let Some(refusal) = self.world.refusals.get(&subject) else {
            return Standing::Due;
        };
        let version = seen.map(|seen| seen.resource_version.as_str());
        let is_the_same = refusal.hash == hash && refusal.resource_version.as_deref() == version;
        if !is_the_same || refusal.retry_at <= self.now.instant {
            return Standing::Due;
        }
        self.wait_until(refusal.retry_at);
        Standing::Refused(refusal.cause.clone())
    }

    pub(super) fn wait_until(&mut self, time: Instant) {
        let earliest = self.plan.retry_at.map_or(time, |before| before.min(time));
        self.plan.retry_at = Some(earliest);
    }

    /// Whether it was a policy's that is gone; one of the same name may have come in its place.
    pub(super) fn is_left_over(&self, seen: &Seen) -> bool {
        let is_ours = seen.is_labelled && !seen.owners.is_empty();
        let mut owners = seen.owners.iter();
        is_ours && !owners.any(|owner| self.living.contains(owner.as_str()))
    }

    /// Whether an object that nobody wants is still what keeps a policy in force.
    pub(super) fn is_needed(&self, key: &ObjectKey, seen: &Seen) -> bool {
        let mut owners = seen.owners.iter();
        owners.any(|owner| match self.outlooks.get(owner.as_str()) {
            None => false,
            Some((held, _)) if held.sound.is_none() => true,
            Some(_) if Some(key.flavour) == self.flavour => false,
            Some((_, outlook)) => {
                let is_current = |(_, standing): &(_, Standing)| *standing == Standing::Current;
                self.flavour.is_none() || !outlook.objects.iter().all(is_current)
            }
        })
    }
}

//! What is known of the cluster: the policies, Istio's objects, and what became
//! of the last writes.
//!
//! Nothing is decided before all lists have come in. The answer to a write is
//! known before the watch tells of it; what the watch tells of the time before
//! is passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kube::core::DynamicObject;

use super::extension::ObjectKey;
use super::flavour::{Flavour, Served};
use super::held::Held;
use super::object::{Seen, key_of};
use super::refusal::{Cause, Refusal, Subject};
use super::settings::ProxyNamespaces;
use crate::policy::{Gathered, Policies, PolicyName};

/// What is known.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The policies.
    pub policies: BTreeMap<PolicyName, Held>,
    /// Istio's objects, those of others included.
    pub objects: BTreeMap<ObjectKey, Seen>,
    /// Which of Istio's APIs there are; `None`: not known yet.
    pub discovered: Option<Served>,
    /// The lists that have come in whole.
    pub listed: BTreeSet<Listing>,
    /// Writes that did not come about.
    pub refusals: BTreeMap<Subject, Refusal>,
    /// For what was written: its hash, and the version of the object that came of it.
    pub written: BTreeMap<ObjectKey, (String, String)>,
}

/// A list of objects that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// The policies.
    Policies,
    /// Istio's objects of one API.
    Objects(Flavour),
}

impl Listing {
    /// As in the API's path.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policies => "breakerpolicies",
            Self::Objects(flavour) => flavour.plural(),
        }
    }
}

impl World {
    /// Which of Istio's APIs there are; `None` while anything is missing without which nothing can be decided.
    #[must_use]
    pub fn served(&self) -> Option<Served> {
        let served = self.discovered?;
        let is_listed = |flavour: &Flavour| self.listed.contains(&Listing::Objects(*flavour));
        let mut needed = Flavour::ALL.iter().filter(|flavour| served.has(**flavour));
        (self.listed.contains(&Listing::Policies) && needed.all(is_listed)).then_some(served)
    }

    /// The API server has these. What was seen of others is gone with them.
    pub fn discover(&mut self, served: Served) {
        self.discovered = Some(served);
        self.objects.retain(|key, _| served.has(key.flavour));
        self.listed.retain(|listing| match listing {
            Listing::Policies => true,
            Listing::Objects(flavour) => served.has(*flavour),
        });
    }

    /// One of Istio's objects was seen.
    pub fn see_object(&mut self, object: &DynamicObject, flavour: Flavour) {
        let Some(key) = key_of(object, flavour) else {
            return;
        };
        let seen = Seen::of(object);
        // The answer to a write may come before the watch has told of what was before it.
        let known = self.objects.get(&key);
        if known.is_none_or(|known| !is_older(&seen.resource_version, &known.resource_version)) {
            self.objects.insert(key, seen);
        }
    }

    /// One of Istio's objects is gone.
    pub fn forget_object(&mut self, object: &DynamicObject, flavour: Flavour) {
        if let Some(key) = key_of(object, flavour) {
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            if self.objects.get(&key).is_some_and(|seen| seen.uid == uid) {
                self.objects.remove(&key);
                self.written.remove(&key);
            }
        }
    }

    /// These are all of Istio's objects of one API.
    pub fn see_all_objects(&mut self, objects: &[DynamicObject], flavour: Flavour) {
        self.objects.retain(|key, _| key.flavour != flavour);
        for object in objects {
            if let Some(key) = key_of(object, flavour) {
                self.objects.insert(key, Seen::of(object));
            }
        }
        self.listed.insert(Listing::Objects(flavour));
    }

    /// A policy was seen. Returns whether what it says has changed.
    pub fn see_policy(&mut self, object: &DynamicObject) -> bool {
        let Some(name) = Held::name_of(object) else {
            return false;
        };
        let version = object.metadata.resource_version.as_deref();
        let known = self.policies.get(&name);
        if known.is_some_and(|known| is_older(version.unwrap_or_default(), &known.resource_version))
        {
            return false;
        }
        let before = self.policies.remove(&name);
        let (held, is_news) = Held::of(object, name.clone(), before);
        self.policies.insert(name, held);
        is_news
    }

    /// A policy is gone.
    pub fn forget_policy(&mut self, object: &DynamicObject) -> bool {
        Held::name_of(object).is_some_and(|name| self.policies.remove(&name).is_some())
    }

    /// These are all policies there are. Returns whether what they say has changed.
    pub fn see_all_policies(&mut self, objects: &[DynamicObject]) -> bool {
        let mut before = std::mem::take(&mut self.policies);
        let mut has_news = false;
        for object in objects {
            if let Some(name) = Held::name_of(object) {
                let before = before.remove(&name);
                let (held, is_news) = Held::of(object, name.clone(), before);
                has_news |= is_news;
                self.policies.insert(name, held);
            }
        }
        self.listed.insert(Listing::Policies);
        has_news || !before.is_empty()
    }

    /// What is sound, and what is wrong, for the proxies that this service configures itself.
    #[must_use]
    pub fn gathered(&self, proxies: &ProxyNamespaces) -> Gathered {
        let mut policies = Policies::default();
        let mut problems = Vec::new();
        for held in self.policies.values() {
            problems.extend(held.problems());
            match &held.sound {
                Some(sound) if proxies.bar(sound) => problems.push(held.barred(proxies)),
                Some(sound) => {
                    policies.insert_shared(Arc::clone(sound));
                }
                None => {}
            }
        }
        Gathered { policies, problems }
    }

    /// A write was taken; this is the object that came of it.
    pub fn applied(&mut self, key: ObjectKey, hash: String, seen: Seen) {
        self.refusals.remove(&Subject::Object(key.clone()));
        self.written
            .insert(key.clone(), (hash, seen.resource_version.clone()));
        self.objects.insert(key, seen);
    }

    /// An object was removed.
    pub fn removed(&mut self, key: &ObjectKey) {
        self.refusals.remove(&Subject::Object(key.clone()));
        self.written.remove(key);
        self.objects.remove(key);
    }

    /// A status was written; this is the policy that came of it.
    pub fn told(&mut self, name: &PolicyName, object: &DynamicObject) {
        self.refusals.remove(&Subject::Status(name.clone()));
        // One that says something new comes by the watch, which puts it in force as well.
        let generation = object.metadata.generation.unwrap_or_default();
        let known = self.policies.get(name);
        if known.is_some_and(|known| known.generation == generation) {
            self.see_policy(object);
        }
    }

    /// A write of what has this hash was not taken.
    pub fn refused(&mut self, subject: Subject, hash: String, cause: Cause, now: Instant) {
        let resource_version = match &subject {
            Subject::Object(key) => self.objects.get(key).map(|o| o.resource_version.clone()),
            Subject::Status(_) => None,
        };
        let before = self.refusals.get(&subject);
        let refusal = Refusal::after(before, hash, resource_version, cause, now);
        self.refusals.insert(subject, refusal);
    }
}

/// Whether one version of an object comes before another; of versions that are no numbers nothing is known.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

//! What is known of the cluster: the policies, Istio's objects, and the results
//! of the last writes.
//!
//! Nothing is decided before all lists are complete. The response to a write is
//! known before the watch reports the change; earlier versions that the watch
//! still reports are ignored.

mod object;
mod policy;
mod pools;
mod reach;
mod write_failure;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kube::core::DynamicObject;

use super::istio::{IstioApi, ObjectKey, ServedApis};
use super::settings::ProxyNamespaces;
use crate::fleet::RejectedPolicy;
use crate::policy::{Gathered, Policies, PolicyName};
use crate::source::Shutoff;

pub use object::{ObjectComparison, ObservedObject, key_of};
pub use policy::ObservedPolicy;
pub use pools::{PoolComparison, PoolFindings};
pub use reach::ReachFindings;
pub use write_failure::{WriteFailure, WriteFailureCause, WriteSubject};

/// What is known of the cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterView {
    /// The policies.
    pub policies: BTreeMap<PolicyName, ObservedPolicy>,
    /// Istio's objects, including those of other owners.
    pub objects: BTreeMap<ObjectKey, ObservedObject>,
    /// The APIs of Istio that the server has; `None`: not known yet.
    pub discovered: Option<ServedApis>,
    /// The lists that are complete.
    pub listed: BTreeSet<Listing>,
    /// Failed writes that have not succeeded since.
    pub write_failures: BTreeMap<WriteSubject, WriteFailure>,
    /// Whether all policies are off, and what turned them off.
    pub shutoff: Shutoff,
    /// Which objectives are out of reach.
    pub reach: ReachFindings,
    /// Which policies a static pool constrains.
    pub pools: PoolFindings,
    /// The policies that the connected standalone proxies reject.
    pub rejected: Arc<BTreeMap<PolicyName, RejectedPolicy>>,
    /// For each written object, its hash and the version that the write produced.
    pub written: BTreeMap<ObjectKey, (String, String)>,
}

/// A watched list of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// The policies.
    Policies,
    /// Istio's objects of one API.
    Objects(IstioApi),
}

impl Listing {
    /// The plural name in the API's path.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policies => "breakerpolicies",
            Self::Objects(api) => api.plural(),
        }
    }
}

impl ClusterView {
    /// The APIs of Istio that the server has; `None` until all lists that decisions need are complete.
    #[must_use]
    pub fn served(&self) -> Option<ServedApis> {
        let served = self.discovered?;
        let is_listed = |api: &IstioApi| self.listed.contains(&Listing::Objects(*api));
        let mut needed = IstioApi::ALL.iter().filter(|api| served.has(**api));
        (self.listed.contains(&Listing::Policies) && needed.all(is_listed)).then_some(served)
    }

    /// Sets the APIs that the server has. Forgets objects of other APIs.
    pub fn discover(&mut self, served: ServedApis) {
        self.discovered = Some(served);
        self.objects.retain(|key, _| served.has(key.api));
        self.listed.retain(|listing| match listing {
            Listing::Policies => true,
            Listing::Objects(api) => served.has(*api),
        });
    }

    /// Records one of Istio's objects as the watch reports it.
    pub fn see_object(&mut self, object: &DynamicObject, api: IstioApi) {
        let Some(key) = key_of(object, api) else {
            return;
        };
        let seen = ObservedObject::of(object);
        // The response to a write may arrive before the watch reports earlier versions.
        let known = self.objects.get(&key);
        if known.is_none_or(|known| !is_older(&seen.resource_version, &known.resource_version)) {
            self.objects.insert(key, seen);
        }
    }

    /// Removes one of Istio's objects that was deleted.
    pub fn forget_object(&mut self, object: &DynamicObject, api: IstioApi) {
        if let Some(key) = key_of(object, api) {
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            if self.objects.get(&key).is_some_and(|seen| seen.uid == uid) {
                self.objects.remove(&key);
                self.written.remove(&key);
            }
        }
    }

    /// Replaces all of Istio's objects of one API.
    pub fn see_all_objects(&mut self, objects: &[DynamicObject], api: IstioApi) {
        self.objects.retain(|key, _| key.api != api);
        for object in objects {
            if let Some(key) = key_of(object, api) {
                self.objects.insert(key, ObservedObject::of(object));
            }
        }
        self.listed.insert(Listing::Objects(api));
    }

    /// Records a policy as the watch reports it. Returns whether its content has changed.
    pub fn see_policy(&mut self, object: &DynamicObject) -> bool {
        let Some(name) = ObservedPolicy::name_of(object) else {
            return false;
        };
        let version = object.metadata.resource_version.as_deref();
        let known = self.policies.get(&name);
        if known.is_some_and(|known| is_older(version.unwrap_or_default(), &known.resource_version))
        {
            return false;
        }
        let before = self.policies.remove(&name);
        let (policy, is_news) = ObservedPolicy::of(object, name.clone(), before);
        self.policies.insert(name, policy);
        is_news
    }

    /// Removes a policy that was deleted. Returns whether it was known.
    pub fn forget_policy(&mut self, object: &DynamicObject) -> bool {
        ObservedPolicy::name_of(object).is_some_and(|name| self.policies.remove(&name).is_some())
    }

    /// Replaces all policies. Returns whether their content has changed.
    pub fn see_all_policies(&mut self, objects: &[DynamicObject]) -> bool {
        let mut before = std::mem::take(&mut self.policies);
        let mut has_news = false;
        for object in objects {
            if let Some(name) = ObservedPolicy::name_of(object) {
                let before = before.remove(&name);
                let (policy, is_news) = ObservedPolicy::of(object, name.clone(), before);
                has_news |= is_news;
                self.policies.insert(name, policy);
            }
        }
        self.listed.insert(Listing::Policies);
        has_news || !before.is_empty()
    }

    /// The valid policies and all errors, for the proxies that this service configures itself.
    #[must_use]
    pub fn gathered(&self, proxies: &ProxyNamespaces) -> Gathered {
        let mut policies = Policies::default();
        let mut problems = Vec::new();
        for policy in self.policies.values() {
            problems.extend(policy.problems());
            match &policy.valid {
                Some(valid) if proxies.bar(valid) => problems.push(policy.barred(proxies)),
                Some(valid) => {
                    policies.insert_shared(Arc::clone(valid));
                }
                None => {}
            }
        }
        Gathered { policies, problems }
    }

    /// Records a successful write; `seen` is the resulting object.
    pub fn applied(&mut self, key: ObjectKey, hash: String, seen: ObservedObject) {
        self.write_failures
            .remove(&WriteSubject::Object(key.clone()));
        self.written
            .insert(key.clone(), (hash, seen.resource_version.clone()));
        self.objects.insert(key, seen);
    }

    /// Records the successful removal of an object.
    pub fn removed(&mut self, key: &ObjectKey) {
        self.write_failures
            .remove(&WriteSubject::Object(key.clone()));
        self.written.remove(key);
        self.objects.remove(key);
    }

    /// Records a successful write of a status; `object` is the resulting policy.
    pub fn status_written(&mut self, name: &PolicyName, object: &DynamicObject) {
        self.write_failures
            .remove(&WriteSubject::Status(name.clone()));
        // New content arrives through the watch, which also puts it in force.
        let generation = object.metadata.generation.unwrap_or_default();
        let known = self.policies.get(name);
        if known.is_some_and(|known| known.generation == generation) {
            self.see_policy(object);
        }
    }

    /// Records a failed write of the object with this hash.
    pub fn write_failed(
        &mut self,
        subject: WriteSubject,
        hash: String,
        cause: WriteFailureCause,
        now: Instant,
    ) {
        let resource_version = match &subject {
            WriteSubject::Object(key) => self.objects.get(key).map(|o| o.resource_version.clone()),
            WriteSubject::Status(_) => None,
        };
        let before = self.write_failures.get(&subject);
        let failure = WriteFailure::after(before, hash, resource_version, cause, now);
        self.write_failures.insert(subject, failure);
    }
}

/// Whether one version of an object is older than another; `false` for versions that are not numbers.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

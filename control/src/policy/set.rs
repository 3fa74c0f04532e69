//! A set of policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CheckedPolicy, PolicyClaim, PolicyName, ProxyNode};

/// Checked policies with unique names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    by_name: BTreeMap<PolicyName, Arc<CheckedPolicy>>,
}

impl Policies {
    /// Adds `policy`; returns the policy with the same name that it replaces.
    pub fn insert(&mut self, policy: CheckedPolicy) -> Option<Arc<CheckedPolicy>> {
        self.insert_shared(Arc::new(policy))
    }

    /// Like [`Self::insert`], for a shared policy.
    pub fn insert_shared(&mut self, policy: Arc<CheckedPolicy>) -> Option<Arc<CheckedPolicy>> {
        self.by_name.insert(policy.name().clone(), policy)
    }

    /// Removes the policy called `name` and returns it.
    pub fn remove(&mut self, name: &PolicyName) -> Option<Arc<CheckedPolicy>> {
        self.by_name.remove(name)
    }

    /// The policy called `name`.
    #[must_use]
    pub fn get(&self, name: &PolicyName) -> Option<&Arc<CheckedPolicy>> {
        self.by_name.get(name)
    }

    /// All policies, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CheckedPolicy>> {
        self.by_name.values()
    }

    /// Number of policies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The claims to `proxy`, the winner's first.
    #[must_use]
    pub fn claims(&self, proxy: &ProxyNode) -> Vec<PolicyClaim> {
        let mut claims: Vec<PolicyClaim> = self
            .iter()
            .filter_map(|policy| PolicyClaim::of(policy, proxy))
            .collect();
        claims.sort();
        claims
    }
}

impl FromIterator<CheckedPolicy> for Policies {
    fn from_iter<T: IntoIterator<Item = CheckedPolicy>>(policies: T) -> Self {
        let mut set = Self::default();
        for policy in policies {
            set.insert(policy);
        }
        set
    }
}

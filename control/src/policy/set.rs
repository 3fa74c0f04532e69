//! All policies there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Claim, Policy, PolicyName};
use crate::render::Proxy;

/// Checked policies, each name once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    by_name: BTreeMap<PolicyName, Arc<Policy>>,
}

impl Policies {
    /// Adds `policy`, or puts it in the place of the one with its name, which
    /// is returned.
    pub fn insert(&mut self, policy: Policy) -> Option<Arc<Policy>> {
        self.insert_shared(Arc::new(policy))
    }

    /// Like [`Self::insert`], of a policy that others hold as well.
    pub fn insert_shared(&mut self, policy: Arc<Policy>) -> Option<Arc<Policy>> {
        self.by_name.insert(policy.name().clone(), policy)
    }

    /// Removes the policy called `name` and returns it.
    pub fn remove(&mut self, name: &PolicyName) -> Option<Arc<Policy>> {
        self.by_name.remove(name)
    }

    /// The policy called `name`.
    #[must_use]
    pub fn get(&self, name: &PolicyName) -> Option<&Arc<Policy>> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.by_name.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The claims to `proxy`, the winner's first.
    #[must_use]
    pub fn claims(&self, proxy: &Proxy) -> Vec<Claim> {
        let mut claims: Vec<Claim> = self
            .iter()
            .filter_map(|policy| Claim::of(policy, proxy))
            .collect();
        claims.sort();
        claims
    }
}

impl FromIterator<Policy> for Policies {
    fn from_iter<T: IntoIterator<Item = Policy>>(policies: T) -> Self {
        let mut set = Self::default();
        for policy in policies {
            set.insert(policy);
        }
        set
    }
}

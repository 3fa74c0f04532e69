//! All policies there are, and which of them wins.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Policy, PolicyName, Specificity, Targets};
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
        let policy = Arc::new(policy);
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

    /// Every policy that matches `proxy`, the winner first: the most specific,
    /// then the oldest (one whose age is unknown counts as the youngest), then
    /// by name.
    #[must_use]
    pub fn matching(&self, proxy: &Proxy) -> Vec<&Arc<Policy>> {
        let mut found: Vec<(Specificity, &Arc<Policy>)> = self
            .iter()
            .filter_map(|policy| Some((specificity(policy, proxy)?, policy)))
            .collect();
        found.sort_by(|a, b| Reverse(a.0).cmp(&Reverse(b.0)).then(older(a.1, b.1)));
        found.into_iter().map(|(_, policy)| policy).collect()
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

/// How closely `policy` fits `proxy`; `None` if it does not match.
fn specificity(policy: &Policy, proxy: &Proxy) -> Option<Specificity> {
    let Targets::Proxies(matches) = policy.targets() else {
        return None;
    };
    matches
        .iter()
        .filter(|entry| entry.matches(proxy))
        .map(super::ProxyMatch::specificity)
        .max()
}

/// The older first; without a time last; then by name.
fn older(a: &Policy, b: &Policy) -> Ordering {
    (a.created().is_none(), a.created(), a.name()).cmp(&(
        b.created().is_none(),
        b.created(),
        b.name(),
    ))
}

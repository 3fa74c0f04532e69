//! Rendering that keeps up: a change costs what it touches.
//!
//! A configuration depends on its policy alone, so it is rendered once for each
//! policy and shared by all proxies that run it. Every proxy keeps the sorted
//! claims to it, and an index leads from a policy to the proxies it claims. When
//! a policy changes, its old claims are dropped, its new ones are found, and
//! only proxies with one of either are looked at again.
//!
//! Edges: a policy that is put again unchanged costs a comparison; a change
//! that leaves the bytes alone (only precedence moved) changes no version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{PluginConfig, Proxy, Rendered};
use crate::policy::{Claim, Policies, Policy, PolicyName};

/// Which proxies a change concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes<K> {
    /// Proxies that are to run another configuration than before.
    pub pushed: BTreeSet<K>,
    /// Proxies that keep their configuration, under another policy or with
    /// others overruled.
    pub relabelled: BTreeSet<K>,
}

/// What every connected proxy is to run; `K` is how a proxy is told apart.
#[derive(Clone, Debug)]
pub struct Renderer<K> {
    policies: Policies,
    configs: BTreeMap<PolicyName, PluginConfig>,
    unmatched: PluginConfig,
    proxies: BTreeMap<K, Connected>,
    /// The proxies that a policy has a claim to, won or not.
    claimed: BTreeMap<PolicyName, BTreeSet<K>>,
    rendered_total: u64,
}

#[derive(Clone, Debug)]
struct Connected {
    proxy: Proxy,
    /// Sorted: the first wins.
    claims: Vec<Claim>,
    rendered: Rendered,
}

impl<K: Ord + Clone> Default for Renderer<K> {
    fn default() -> Self {
        Self {
            policies: Policies::default(),
            configs: BTreeMap::new(),
            unmatched: PluginConfig::unmatched(),
            proxies: BTreeMap::new(),
            claimed: BTreeMap::new(),
            rendered_total: 0,
        }
    }
}

impl<K: Ord + Clone> Renderer<K> {
    /// The policies in force.
    #[must_use]
    pub const fn policies(&self) -> &Policies {
        &self.policies
    }

    /// How many configurations were rendered so far.
    #[must_use]
    pub const fn rendered_total(&self) -> u64 {
        self.rendered_total
    }

    /// What proxies run under the policy called `name`.
    #[must_use]
    pub fn config(&self, name: &PolicyName) -> Option<&PluginConfig> {
        self.configs.get(name)
    }

    /// What the proxy is to run; `None` if it is not connected.
    #[must_use]
    pub fn rendered(&self, key: &K) -> Option<&Rendered> {
        self.proxies.get(key).map(|connected| &connected.rendered)
    }

    /// The proxies that the policy matches, those that it lost included.
    pub fn claimed_by(&self, name: &PolicyName) -> impl Iterator<Item = &K> {
        self.claimed.get(name).into_iter().flatten()
    }

    /// Takes a proxy in, or what is now known of it, and says what it is to run.
    pub fn connect(&mut self, key: K, proxy: Proxy) -> Rendered {
        self.disconnect(&key);
        let claims = self.policies.claims(&proxy);
        for claim in &claims {
            self.claimed
                .entry(claim.policy().clone())
                .or_default()
                .insert(key.clone());
        }
        let rendered = won(&self.configs, &self.unmatched, &claims);
        let connected = Connected {
            proxy,
            claims,
            rendered: rendered.clone(),
        };
        self.proxies.insert(key, connected);
        rendered
    }

    /// Forgets a proxy.
    pub fn disconnect(&mut self, key: &K) {
        let Some(connected) = self.proxies.remove(key) else {
            return;
        };
        for claim in &connected.claims {
            self.unclaim(claim.policy(), key);
        }
    }

    /// Puts `policy` in force, in the place of the one with its name.
    pub fn put(&mut self, policy: Policy) -> Changes<K> {
        let touched = self.exchange(Arc::new(policy));
        self.settle(touched)
    }

    /// Takes the policy called `name` out of force.
    pub fn remove(&mut self, name: &PolicyName) -> Changes<K> {
        let touched = self.withdraw(name);
        self.settle(touched)
    }

    /// Puts exactly `policies` in force; what is unchanged is left alone.
    pub fn replace(&mut self, policies: &Policies) -> Changes<K> {
        let names = self.policies.iter().map(|policy| policy.name());
        let gone: Vec<PolicyName> = names
            .filter(|name| policies.get(name).is_none())
            .cloned()
            .collect();
        let mut touched = BTreeSet::new();
        for name in &gone {
            touched.extend(self.withdraw(name));
        }
        for policy in policies.iter() {
            touched.extend(self.exchange(Arc::clone(policy)));
        }
        self.settle(touched)
    }

    /// Puts a policy in force; returns the proxies that it claims or claimed.
    fn exchange(&mut self, policy: Arc<Policy>) -> BTreeSet<K> {
        let name = policy.name().clone();
        if self.policies.get(&name).is_some_and(|old| *old == policy) {
            return BTreeSet::new();
        }
        let mut touched = self.withdraw(&name);
        self.rendered_total = self.rendered_total.saturating_add(1);
        self.configs.insert(name.clone(), PluginConfig::of(&policy));
        let mut claimed = BTreeSet::new();
        for (key, connected) in &mut self.proxies {
            if let Some(claim) = Claim::of(&policy, &connected.proxy) {
                let place = connected.claims.partition_point(|other| *other < claim);
                connected.claims.insert(place, claim);
                claimed.insert(key.clone());
            }
        }
        touched.extend(claimed.iter().cloned());
        if !claimed.is_empty() {
            self.claimed.insert(name, claimed);
        }
        self.policies.insert_shared(policy);
        touched
    }

    /// Takes a policy out of force; returns the proxies that it claimed.
    fn withdraw(&mut self, name: &PolicyName) -> BTreeSet<K> {
        self.policies.remove(name);
        self.configs.remove(name);
        let keys = self.claimed.remove(name).unwrap_or_default();
        for key in &keys {
            if let Some(connected) = self.proxies.get_mut(key) {
                connected.claims.retain(|claim| claim.policy() != name);
            }
        }
        keys
    }

    /// Looks again at proxies whose claims changed.
    fn settle(&mut self, touched: BTreeSet<K>) -> Changes<K> {
        let mut changes = Changes::default();
        for key in touched {
            let Some(connected) = self.proxies.get_mut(&key) else {
                continue;
            };
            let rendered = won(&self.configs, &self.unmatched, &connected.claims);
            let before = std::mem::replace(&mut connected.rendered, rendered);
            if before.version != connected.rendered.version {
                changes.pushed.insert(key);
            } else if before != connected.rendered {
                changes.relabelled.insert(key);
            }
        }
        changes
    }

    fn unclaim(&mut self, name: &PolicyName, key: &K) {
        if let Some(keys) = self.claimed.get_mut(name) {
            keys.remove(key);
            if keys.is_empty() {
                self.claimed.remove(name);
            }
        }
    }
}

/// What the first of `claims` gives.
fn won(
    configs: &BTreeMap<PolicyName, PluginConfig>,
    unmatched: &PluginConfig,
    claims: &[Claim],
) -> Rendered {
    let winner = claims.first();
    let config = winner.and_then(|claim| configs.get(claim.policy()));
    config.unwrap_or(unmatched).clone().won(claims)
}

impl<K> Default for Changes<K> {
    fn default() -> Self {
        Self {
            pushed: BTreeSet::new(),
            relabelled: BTreeSet::new(),
        }
    }
}

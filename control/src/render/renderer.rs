//! Incremental rendering: the cost of a change depends on what it affects.
//!
//! A configuration depends on its policy alone, so it is rendered once per
//! policy and shared by all proxies that run it. Every proxy keeps the sorted
//! claims to it, and an index maps a policy to the proxies it claims. When a
//! policy changes, its old claims are dropped, its new ones are found, and only
//! proxies with an old or a new claim are examined.
//!
//! Edge cases: replacing a policy by an equal one costs only a comparison; a change
//! that does not change the bytes (only precedence) changes no version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plugin_config::{PluginConfig, Rendered};
use crate::policy::{CheckedPolicy, Policies, PolicyClaim, PolicyName, ProxyNode};

/// Which proxies a change affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderChanges<K> {
    /// Proxies that get another configuration.
    pub pushed: BTreeSet<K>,
    /// Proxies that keep their configuration, but under another policy or with
    /// other overruled policies.
    pub relabeled: BTreeSet<K>,
}

/// What every connected proxy should run; `K` identifies a proxy.
#[derive(Clone, Debug)]
pub struct Renderer<K> {
    policies: Policies,
    configs: BTreeMap<PolicyName, PluginConfig>,
    unmatched: PluginConfig,
    proxies: BTreeMap<K, Connected>,
    /// The proxies that a policy claims, whether it wins them or not.
    claimed: BTreeMap<PolicyName, BTreeSet<K>>,
    rendered_total: u64,
    /// Whether all policies are off.
    is_off: bool,
}

#[derive(Clone, Debug)]
struct Connected {
    proxy: ProxyNode,
    /// Sorted: the first wins.
    claims: Vec<PolicyClaim>,
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
            is_off: false,
        }
    }
}

impl<K: Ord + Clone> Renderer<K> {
    /// The policies in force.
    #[must_use]
    pub const fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Number of configurations rendered so far.
    #[must_use]
    pub const fn rendered_total(&self) -> u64 {
        self.rendered_total
    }

    /// The configuration of the policy called `name`.
    #[must_use]
    pub fn config(&self, name: &PolicyName) -> Option<&PluginConfig> {
        self.configs.get(name)
    }

    /// What the proxy should run; `None` if it is not connected.
    #[must_use]
    pub fn rendered(&self, key: &K) -> Option<&Rendered> {
        self.proxies.get(key).map(|connected| &connected.rendered)
    }

    /// The proxies that the policy matches, including those where another policy wins.
    pub fn claimed_by(&self, name: &PolicyName) -> impl Iterator<Item = &K> {
        self.claimed.get(name).into_iter().flatten()
    }

    /// What a proxy that is not connected would get.
    #[must_use]
    pub fn once(&self, proxy: &ProxyNode) -> Rendered {
        won(&self.configs, &self.unmatched, &self.policies.claims(proxy))
    }

    /// Adds or updates a proxy, and returns what it should run.
    pub fn connect(&mut self, key: K, proxy: ProxyNode) -> Rendered {
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

    /// Puts `policy` in force; it replaces the policy with the same name.
    pub fn put(&mut self, policy: CheckedPolicy) -> RenderChanges<K> {
        let touched = self.exchange(Arc::new(policy));
        self.settle(touched)
    }

    /// Takes the policy called `name` out of force.
    pub fn remove(&mut self, name: &PolicyName) -> RenderChanges<K> {
        let touched = self.withdraw(name);
        self.settle(touched)
    }

    /// Puts exactly `policies` in force; unchanged policies are not rendered again.
    pub fn replace(&mut self, policies: &Policies) -> RenderChanges<K> {
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

    /// Turns all policies off, or on again; each is rendered again.
    pub fn turn(&mut self, is_off: bool) -> RenderChanges<K> {
        if std::mem::replace(&mut self.is_off, is_off) == is_off {
            return RenderChanges::default();
        }
        self.unmatched = if is_off {
            PluginConfig::unmatched_and_off()
        } else {
            PluginConfig::unmatched()
        };
        for policy in self.policies.iter() {
            self.rendered_total = self.rendered_total.saturating_add(1);
            let config = PluginConfig::under(policy, is_off);
            self.configs.insert(policy.name().clone(), config);
        }
        let all = self.proxies.keys().cloned().collect();
        self.settle(all)
    }

    /// Puts a policy in force; returns the proxies that it claims now or claimed before.
    fn exchange(&mut self, policy: Arc<CheckedPolicy>) -> BTreeSet<K> {
        let name = policy.name().clone();
        if self.policies.get(&name).is_some_and(|old| *old == policy) {
            return BTreeSet::new();
        }
        let mut touched = self.withdraw(&name);
        self.rendered_total = self.rendered_total.saturating_add(1);
        self.configs
            .insert(name.clone(), PluginConfig::under(&policy, self.is_off));
        let mut claimed = BTreeSet::new();
        for (key, connected) in &mut self.proxies {
            if let Some(claim) = PolicyClaim::of(&policy, &connected.proxy) {
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

    /// Updates proxies whose claims changed.
    fn settle(&mut self, touched: BTreeSet<K>) -> RenderChanges<K> {
        let mut changes = RenderChanges::default();
        for key in touched {
            let Some(connected) = self.proxies.get_mut(&key) else {
                continue;
            };
            let rendered = won(&self.configs, &self.unmatched, &connected.claims);
            let before = std::mem::replace(&mut connected.rendered, rendered);
            if before.version != connected.rendered.version {
                changes.pushed.insert(key);
            } else if before != connected.rendered {
                changes.relabeled.insert(key);
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

/// The configuration of the first of `claims`.
fn won(
    configs: &BTreeMap<PolicyName, PluginConfig>,
    unmatched: &PluginConfig,
    claims: &[PolicyClaim],
) -> Rendered {
    let winner = claims.first();
    let config = winner.and_then(|claim| configs.get(claim.policy()));
    config.unwrap_or(unmatched).clone().won(claims)
}

impl<K> Default for RenderChanges<K> {
    fn default() -> Self {
        Self {
            pushed: BTreeSet::new(),
            relabeled: BTreeSet::new(),
        }
    }
}

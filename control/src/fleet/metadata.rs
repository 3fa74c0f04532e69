//! Keeps only the node metadata that policies name.
//!
//! A proxy may send much metadata, and sends it once per stream. Top-level keys
//! that no policy names are dropped, and remembered as hashes: once a policy
//! names one of them, the proxy has to send it again, on a new stream. A hash
//! collision only costs a needless new stream.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::policy::{Policies, PolicyTargets, ProxyNode};

/// The top-level metadata keys that policies name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedKeys(BTreeSet<String>);

/// The dropped keys of a proxy's metadata, as hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DroppedKeys(Box<[u64]>);

impl NamedKeys {
    pub(super) fn of(policies: &Policies) -> Self {
        let matches = policies.iter().flat_map(|policy| match policy.targets() {
            PolicyTargets::Proxies(matches) => matches.as_slice(),
            PolicyTargets::Selector(_) | PolicyTargets::Refs(_) => &[],
        });
        Self(
            matches
                .flat_map(|one| one.metadata.keys().cloned())
                .collect(),
        )
    }

    /// Hashes of the keys that were not named before.
    pub(super) fn added_since(&self, before: &Self) -> BTreeSet<u64> {
        self.0.difference(&before.0).map(|key| hash(key)).collect()
    }

    /// Removes from the metadata what no policy names.
    pub(super) fn trim(&self, proxy: &mut ProxyNode) -> DroppedKeys {
        let mut dropped = Vec::new();
        proxy.metadata.retain(|key, _| {
            let is_named = self.0.contains(key);
            if !is_named {
                dropped.push(hash(key));
            }
            is_named
        });
        DroppedKeys(dropped.into())
    }
}

impl DroppedKeys {
    pub(super) fn has_any_of(&self, keys: &BTreeSet<u64>) -> bool {
        self.0.iter().any(|key| keys.contains(key))
    }
}

fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::gather;

    fn named(metadata: &str) -> NamedKeys {
        let text = format!(
            "apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {{name: a}}
spec:
  proxies: [{{metadata: {metadata}}}]
  slo: {{latency: {{quantile: 0.99, target: 300ms}}}}
"
        );
        let gathered = gather([("a", text.as_bytes())]);
        assert_eq!(gathered.problems, []);
        NamedKeys::of(&gathered.policies)
    }

    #[test]
    fn a_key_that_no_policy_names_is_dropped_and_missing_once_one_does() {
        let before = named("{zone: a}");
        let mut proxy = ProxyNode {
            metadata: json!({"zone": "a", "labels": {"app": "x"}, "huge": "x"})
                .as_object()
                .unwrap()
                .clone(),
            ..ProxyNode::default()
        };

        let dropped = before.trim(&mut proxy);

        assert_eq!(json!(proxy.metadata), json!({"zone": "a"}));
        let missed = |metadata: &str| dropped.has_any_of(&named(metadata).added_since(&before));
        assert!(missed("{labels: {app: x}}"));
        assert!(!missed("{zone: b}"), "it was kept");
        assert!(!missed("{other: b}"), "the proxy did not send it");
    }
}

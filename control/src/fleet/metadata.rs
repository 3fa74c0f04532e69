//! Of a node's metadata only what policies name is kept.
//!
//! A proxy may say much of itself, and says it once a stream. What no policy asks for is left out, by the keys at
//! the top, and its keys are remembered as hashes: once a policy names one of them, the proxy has to say it again,
//! on a new stream. A hash that is another key's costs a new stream and nothing else.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::policy::{Policies, Targets};
use crate::render::Proxy;

/// The keys at the top of metadata that policies name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named(BTreeSet<String>);

/// What was left out of a proxy's metadata, as hashes of its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeftOut(Box<[u64]>);

impl Named {
    pub(super) fn by(policies: &Policies) -> Self {
        let matches = policies.iter().flat_map(|policy| match policy.targets() {
            Targets::Proxies(matches) => matches.as_slice(),
            Targets::Selector(_) | Targets::Refs(_) => &[],
        });
        Self(
            matches
                .flat_map(|one| one.metadata.keys().cloned())
                .collect(),
        )
    }

    /// The keys that were not named before.
    pub(super) fn beyond(&self, before: &Self) -> BTreeSet<u64> {
        self.0.difference(&before.0).map(|key| hash(key)).collect()
    }

    /// Takes out of the metadata what is not named.
    pub(super) fn trim(&self, proxy: &mut Proxy) -> LeftOut {
        let mut left_out = Vec::new();
        proxy.metadata.retain(|key, _| {
            let is_named = self.0.contains(key);
            if !is_named {
                left_out.push(hash(key));
            }
            is_named
        });
        LeftOut(left_out.into())
    }
}

impl LeftOut {
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

    fn named(metadata: &str) -> Named {
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
        Named::by(&gathered.policies)
    }

    #[test]
    fn what_no_policy_names_is_left_out_and_missed_once_one_does() {
        let before = named("{zone: a}");
        let mut proxy = Proxy {
            metadata: json!({"zone": "a", "labels": {"app": "x"}, "huge": "x"})
                .as_object()
                .unwrap()
                .clone(),
            ..Proxy::default()
        };

        let left_out = before.trim(&mut proxy);

        assert_eq!(json!(proxy.metadata), json!({"zone": "a"}));
        let missed = |metadata: &str| left_out.has_any_of(&named(metadata).beyond(&before));
        assert!(missed("{labels: {app: x}}"));
        assert!(!missed("{zone: b}"), "it is there");
        assert!(!missed("{other: b}"), "the proxy does not have it");
    }
}

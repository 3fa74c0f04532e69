//! The differences between two sets of policies.
//!
//! Two documents may look different and mean the same. They are compared value
//! by value, each named by its path, so that a reviewer sees what changes in a
//! proxy, and what does not.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::plugin_config::PluginConfig;
use crate::policy::{CheckedPolicy, Policies, PolicyName};

/// What changes for one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "change"
)]
pub enum PolicyDifference {
    /// The policy is new.
    Added {
        /// The policy.
        policy: String,
        /// Its targets.
        targets: String,
        /// Version of its configuration.
        version: String,
    },
    /// The policy was removed.
    Removed {
        /// The policy.
        policy: String,
        /// Its former targets.
        targets: String,
        /// Version of its configuration.
        version: String,
    },
    /// The policy's content differs. If the versions are equal, only proxies that begin or
    /// cease to match get a push.
    Changed {
        /// The policy.
        policy: String,
        /// Its targets now.
        targets: String,
        /// The version before.
        old_version: String,
        /// The version after.
        new_version: String,
        /// Every value that differs, by path.
        values: Vec<ChangedValue>,
    },
}

/// One value that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedValue {
    /// Its path below `spec`; `targets` for all targets together, and `age` for the
    /// time of creation, which decides among equal matches.
    pub path: String,
    /// The old value; `None`: not set.
    pub old: Option<Value>,
    /// The new value; `None`: not set.
    pub new: Option<Value>,
}

impl PolicyDifference {
    /// The policy's name.
    #[must_use]
    pub fn policy(&self) -> &str {
        match self {
            Self::Added { policy, .. }
            | Self::Removed { policy, .. }
            | Self::Changed { policy, .. } => policy,
        }
    }
}

/// The differences between `old` and `new`, by name.
#[must_use]
pub fn differences(old: &Policies, new: &Policies) -> Vec<PolicyDifference> {
    let names: BTreeSet<&PolicyName> = old
        .iter()
        .chain(new.iter())
        .map(|policy| policy.name())
        .collect();
    names
        .into_iter()
        .filter_map(|name| match (old.get(name), new.get(name)) {
            (None, Some(new)) => Some(PolicyDifference::Added {
                policy: name.to_string(),
                targets: new.targets().to_string(),
                version: version(new),
            }),
            (Some(old), None) => Some(PolicyDifference::Removed {
                policy: name.to_string(),
                targets: old.targets().to_string(),
                version: version(old),
            }),
            (Some(old), Some(new)) => changed(old, new),
            (None, None) => None,
        })
        .collect()
}

fn version(policy: &CheckedPolicy) -> String {
    PluginConfig::of(policy).version.to_string()
}

fn changed(old: &CheckedPolicy, new: &CheckedPolicy) -> Option<PolicyDifference> {
    let (before, after) = (values(old), values(new));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let values: Vec<ChangedValue> = paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| ChangedValue {
            path: path.clone(),
            old: before.get(path).cloned(),
            new: after.get(path).cloned(),
        })
        .collect();
    (!values.is_empty()).then(|| PolicyDifference::Changed {
        policy: new.name().to_string(),
        targets: new.targets().to_string(),
        old_version: version(old),
        new_version: version(new),
        values,
    })
}

/// Every value of a policy by its path.
fn values(policy: &CheckedPolicy) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (key, value) in policy.document() {
        flatten(&mut found, key.clone(), value);
    }
    found.insert(
        "targets".to_owned(),
        Value::from(policy.targets().to_string()),
    );
    if let Some(created) = policy.created() {
        found.insert("age".to_owned(), Value::from(created.to_string()));
    }
    found
}

fn flatten(found: &mut BTreeMap<String, Value>, path: String, value: &Value) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                flatten(found, format!("{path}.{key}"), value);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                flatten(found, format!("{path}[{index}]"), value);
            }
        }
        _ => {
            found.insert(path, value.clone());
        }
    }
}

//! What a change of policies changes.
//!
//! Two documents may look different and say the same. They are compared value
//! by value, each named by its path, so that a reviewer reads what will be
//! different in a proxy, and where nothing will be.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{Policies, Policy, PolicyName};
use crate::render::PluginConfig;

/// What changes for one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "change"
)]
pub enum Difference {
    /// It is new.
    Added {
        /// The policy.
        policy: String,
        /// What it is for.
        targets: String,
        /// Version of its configuration.
        version: String,
    },
    /// It is gone.
    Removed {
        /// The policy.
        policy: String,
        /// What it was for.
        targets: String,
        /// Version of its configuration.
        version: String,
    },
    /// It says something else. With equal versions no proxy is pushed
    /// anything but those that begin or cease to match.
    Changed {
        /// The policy.
        policy: String,
        /// What it is for now.
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
    /// Where, below `spec`; `targets` for the targets as a whole and `age` for
    /// the time of creation, which decides among equals.
    pub path: String,
    /// What was there; `None`: nothing.
    pub old: Option<Value>,
    /// What is there; `None`: nothing.
    pub new: Option<Value>,
}

impl Difference {
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

/// What `new` changes against `old`, by name.
#[must_use]
pub fn differences(old: &Policies, new: &Policies) -> Vec<Difference> {
    let names: BTreeSet<&PolicyName> = old
        .iter()
        .chain(new.iter())
        .map(|policy| policy.name())
        .collect();
    names
        .into_iter()
        .filter_map(|name| match (old.get(name), new.get(name)) {
            (None, Some(new)) => Some(Difference::Added {
                policy: name.to_string(),
                targets: new.targets().to_string(),
                version: version(new),
            }),
            (Some(old), None) => Some(Difference::Removed {
                policy: name.to_string(),
                targets: old.targets().to_string(),
                version: version(old),
            }),
            (Some(old), Some(new)) => changed(old, new),
            (None, None) => None,
        })
        .collect()
}

fn version(policy: &Policy) -> String {
    PluginConfig::of(policy).version.to_string()
}

fn changed(old: &Policy, new: &Policy) -> Option<Difference> {
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
    (!values.is_empty()).then(|| Difference::Changed {
        policy: new.name().to_string(),
        targets: new.targets().to_string(),
        old_version: version(old),
        new_version: version(new),
        values,
    })
}

/// Every value of a policy by its path.
fn values(policy: &Policy) -> BTreeMap<String, Value> {
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

//! A policy as the API server has it.
//!
//! If a policy becomes invalid, its last valid version remains in force. That
//! version is not remembered beyond this process.

use std::sync::Arc;

use kube::core::DynamicObject;
use serde_json::Value;
use tidegate_core::config::{ConfigError, ConfigErrors};

use crate::document::{TextPosition, node_of};
use crate::kube::istio::Owner;
use crate::kube::settings::ProxyNamespaces;
use crate::policy::{API_VERSION, CheckedPolicy, KIND, PolicyName, Problem};
use crate::resource::BreakerPolicyStatus;

/// The source of problems of policies in Kubernetes.
const SOURCE: &str = "kubernetes";

/// A policy as the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedPolicy {
    /// Its namespace and name.
    pub name: PolicyName,
    /// Distinguishes it from other objects of the same name.
    pub uid: String,
    /// Changes with every change of the object.
    pub resource_version: String,
    /// Number of changes of its spec.
    pub generation: i64,
    /// Its last seen status.
    pub status: BreakerPolicyStatus,
    /// The errors of its current version.
    pub errors: Option<ConfigErrors>,
    /// Its current version, or the last valid one.
    pub valid: Option<Arc<CheckedPolicy>>,
}

impl ObservedPolicy {
    /// The policy as the owner of objects.
    #[must_use]
    pub fn owner(&self) -> Owner<'_> {
        Owner {
            namespace: self.name.namespace().unwrap_or_default(),
            name: self.name.name(),
            uid: &self.uid,
        }
    }

    /// All errors of its current version.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let problem = |error: &ConfigError| Problem {
            source: SOURCE.to_owned(),
            place: TextPosition { line: 1, column: 1 },
            policy: Some(self.name.to_string()),
            path: error.path().to_owned(),
            found: error.found().to_owned(),
            expected: error.expected().to_owned(),
        };
        let errors = self.errors.iter().flat_map(ConfigErrors::iter);
        errors.map(problem).collect()
    }

    /// The problem to report if it names standalone proxies from a namespace where that is not allowed.
    pub(in crate::kube) fn barred(&self, proxies: &ProxyNamespaces) -> Problem {
        Problem {
            source: SOURCE.to_owned(),
            place: TextPosition { line: 1, column: 1 },
            policy: Some(self.name.to_string()),
            path: "spec.proxies".to_owned(),
            found: format!(
                "standalone proxies in a policy of the namespace {}",
                self.name.namespace().unwrap_or_default()
            ),
            expected: format!("them in policies of {proxies} only"),
        }
    }

    /// The name of a policy; `None` if it has none, which the API server does not allow.
    pub(super) fn name_of(object: &DynamicObject) -> Option<PolicyName> {
        let name = object.metadata.name.clone()?;
        Some(PolicyName::new(object.metadata.namespace.clone(), name))
    }

    /// The policy in `object`, and whether its content is new.
    pub(super) fn of(
        object: &DynamicObject,
        name: PolicyName,
        before: Option<Self>,
    ) -> (Self, bool) {
        let metadata = &object.metadata;
        let uid = metadata.uid.clone().unwrap_or_default();
        let resource_version = metadata.resource_version.clone().unwrap_or_default();
        let generation = metadata.generation.unwrap_or_default();
        let status = object.data.get("status").cloned().unwrap_or_default();
        // A status that cannot be parsed counts as empty.
        let status = serde_json::from_value(status).unwrap_or_default();
        let before = before.filter(|before| before.uid == uid);
        if let Some(before) = before.as_ref().filter(|b| b.generation == generation) {
            let policy = Self {
                status,
                resource_version,
                ..before.clone()
            };
            return (policy, false);
        }
        let (errors, valid) = match read(object) {
            Ok(policy) => (None, Some(Arc::new(policy))),
            Err(errors) => (Some(errors), before.and_then(|before| before.valid)),
        };
        let policy = Self {
            name,
            uid,
            resource_version,
            generation,
            status,
            errors,
            valid,
        };
        (policy, true)
    }
}

fn read(object: &DynamicObject) -> Result<CheckedPolicy, ConfigErrors> {
    // An object that was received as JSON can be written as JSON; null would be rejected with an error.
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(entries) = &mut value {
        // Items of a list do not have these fields.
        entries.insert("apiVersion".to_owned(), API_VERSION.into());
        entries.insert("kind".to_owned(), KIND.into());
    }
    CheckedPolicy::read(&node_of(&value))
}

//! A policy as the API server has it.
//!
//! One that turns unsound keeps what was sound of it before, so that a mistake
//! takes nothing out of force. That is not remembered beyond this process.

use std::sync::Arc;

use kube::core::DynamicObject;
use serde_json::Value;
use tidegate_core::config::{ConfigError, ConfigErrors};

use super::extension::Owner;
use super::settings::ProxyNamespaces;
use crate::document::{Place, node_of};
use crate::policy::{API_VERSION, KIND, Policy, PolicyName, Problem};
use crate::resource::BreakerPolicyStatus;

/// What problems of policies in Kubernetes name as their source.
const SOURCE: &str = "kubernetes";

/// A policy as the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its name, with its namespace.
    pub name: PolicyName,
    /// Tells it from another of the same name.
    pub uid: String,
    /// Changes with every change of it.
    pub resource_version: String,
    /// Counts the changes of its spec.
    pub generation: i64,
    /// Its status as it was seen.
    pub status: BreakerPolicyStatus,
    /// What is wrong with it.
    pub errors: Option<ConfigErrors>,
    /// It, or what was last sound of it.
    pub sound: Option<Arc<Policy>>,
}

impl Held {
    /// It, as the owner of objects.
    #[must_use]
    pub fn owner(&self) -> Owner<'_> {
        Owner {
            namespace: self.name.namespace().unwrap_or_default(),
            name: self.name.name(),
            uid: &self.uid,
        }
    }

    /// All that is wrong with it.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let problem = |error: &ConfigError| Problem {
            source: SOURCE.to_owned(),
            place: Place { line: 1, column: 1 },
            policy: Some(self.name.to_string()),
            path: error.path().to_owned(),
            found: error.found().to_owned(),
            expected: error.expected().to_owned(),
        };
        let errors = self.errors.iter().flat_map(ConfigErrors::iter);
        errors.map(problem).collect()
    }

    /// That it names standalone proxies from a namespace that may not.
    pub(super) fn barred(&self, proxies: &ProxyNamespaces) -> Problem {
        Problem {
            source: SOURCE.to_owned(),
            place: Place { line: 1, column: 1 },
            policy: Some(self.name.to_string()),
            path: "spec.proxies".to_owned(),
            found: format!(
                "standalone proxies in a policy of the namespace {}",
                self.name.namespace().unwrap_or_default()
            ),
            expected: format!("them in policies of {proxies} only"),
        }
    }

    /// What a policy is called; `None` for one without a name, of which there are none.
    pub(super) fn name_of(object: &DynamicObject) -> Option<PolicyName> {
        let name = object.metadata.name.clone()?;
        Some(PolicyName::new(object.metadata.namespace.clone(), name))
    }

    /// What `object` says, and whether that is something new.
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
        // One that is not as we write it is as good as none.
        let status = serde_json::from_value(status).unwrap_or_default();
        let before = before.filter(|before| before.uid == uid);
        if let Some(before) = before.as_ref().filter(|b| b.generation == generation) {
            let held = Self {
                status,
                resource_version,
                ..before.clone()
            };
            return (held, false);
        }
        let (errors, sound) = match read(object) {
            Ok(policy) => (None, Some(Arc::new(policy))),
            Err(errors) => (Some(errors), before.and_then(|before| before.sound)),
        };
        let held = Self {
            name,
            uid,
            resource_version,
            generation,
            status,
            errors,
            sound,
        };
        (held, true)
    }
}

fn read(object: &DynamicObject) -> Result<Policy, ConfigErrors> {
    // An object that came as JSON can be written as JSON; null would be refused in words.
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(entries) = &mut value {
        // In a list they stand once, for all items.
        entries.insert("apiVersion".to_owned(), API_VERSION.into());
        entries.insert("kind".to_owned(), KIND.into());
    }
    Policy::read(&node_of(&value))
}

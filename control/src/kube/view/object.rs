//! An object of Istio as the API server has it.
//!
//! Only the metadata of other owners' objects is kept. An object of this service
//! is compared with the fields that the service states: others may add fields,
//! labels and annotations, but not to the plugin's configuration, which the
//! filter would reject or, worse, follow.

use kube::core::DynamicObject;
use serde_json::{Map, Value};

use crate::kube::istio::{DesiredObject, HASH_ANNOTATION, IstioApi, MANAGED_BY, ObjectKey};
use crate::policy::{API_VERSION, KIND};

/// An object as it was last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedObject {
    /// Distinguishes it from other objects of the same name.
    pub uid: String,
    /// Changes with every change of the object.
    pub resource_version: String,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// Whether it has the label of this service.
    pub is_labelled: bool,
    /// The uids of the policies that own it; empty: it belongs to someone else.
    pub owners: Vec<String>,
    /// The hash in its annotation.
    pub hash: Option<String>,
    /// Its `spec`; null if it belongs to someone else.
    pub spec: Value,
}

/// How an object compares with its desired state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectComparison {
    /// It contains everything that is desired.
    Same,
    /// Something is missing or different.
    Differs,
    /// Someone else added a value at this path, in the plugin's configuration or the selector.
    Added(String),
}

impl ObservedObject {
    /// The parts of an object that are kept.
    #[must_use]
    pub fn of(object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let owners: Vec<String> = metadata
            .owner_references
            .iter()
            .flatten()
            .filter(|owner| owner.kind == KIND && owner.api_version == API_VERSION)
            .map(|owner| owner.uid.clone())
            .collect();
        let label = metadata.labels.as_ref().and_then(|l| l.get(MANAGED_BY.0));
        let annotations = metadata.annotations.as_ref();
        let is_ours = !owners.is_empty();
        let spec = object.data.get("spec").filter(|_| is_ours).cloned();
        Self {
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            is_leaving: metadata.deletion_timestamp.is_some(),
            is_labelled: label.is_some_and(|label| label == MANAGED_BY.1),
            owners,
            hash: annotations.and_then(|a| a.get(HASH_ANNOTATION)).cloned(),
            spec: spec.unwrap_or_default(),
        }
    }

    /// Whether the policy with this uid owns it.
    #[must_use]
    pub fn belongs_to(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner == uid)
    }

    /// Compares it with `desired`.
    #[must_use]
    pub fn compare(&self, desired: &DesiredObject) -> ObjectComparison {
        let is_part = is_part(desired.spec(), &self.spec);
        if !is_part || !self.is_labelled || self.hash.as_deref() != Some(desired.hash.as_str()) {
            return ObjectComparison::Differs;
        }
        let config = match desired.key.api {
            IstioApi::TrafficExtension => "/wasm/pluginConfig",
            IstioApi::WasmPlugin => "/pluginConfig",
        };
        // Labels that others add would narrow the policy's targets.
        let added = [config, "/selector"].into_iter().find_map(|pointer| {
            let path = format!("spec{}", pointer.replace('/', "."));
            match (desired.spec().pointer(pointer), self.spec.pointer(pointer)) {
                (Some(ours), Some(theirs)) => added(&path, ours, theirs),
                (None, Some(_)) => Some(path),
                (_, None) => None,
            }
        });
        added.map_or(ObjectComparison::Same, ObjectComparison::Added)
    }
}

/// The key of an object; `None` if it has no name, which the API server does not allow.
#[must_use]
pub fn key_of(object: &DynamicObject, api: IstioApi) -> Option<ObjectKey> {
    Some(ObjectKey {
        namespace: object.metadata.namespace.clone()?,
        name: object.metadata.name.clone()?,
        api,
    })
}

/// Whether `theirs` contains all of `ours`.
fn is_part(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => ours
            .iter()
            .all(|(key, ours)| theirs.get(key).is_some_and(|value| is_part(ours, value))),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, value)| is_part(ours, value))
        }
        // Some clients write 20 as 20.0.
        (Value::Number(ours), Value::Number(value)) => ours.as_f64() == value.as_f64(),
        _ => ours == theirs,
    }
}

/// The first path at which `theirs`, which contains all of `ours`, contains more.
fn added(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => added_key(path, ours, theirs),
        (Value::Array(ours), Value::Array(theirs)) => {
            let pairs = ours.iter().zip(theirs).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (ours, value))| added(&format!("{path}[{index}]"), ours, value))
        }
        _ => None,
    }
}

fn added_key(path: &str, ours: &Map<String, Value>, theirs: &Map<String, Value>) -> Option<String> {
    theirs.iter().find_map(|(key, value)| {
        let path = format!("{path}.{key}");
        match ours.get(key) {
            Some(ours) => added(&path, ours, value),
            None => Some(path),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn added_fields_of_others_do_not_matter() {
        let ours = json!({"a": {"b": [1, {"c": 2}]}});
        assert!(is_part(
            &ours,
            &json!({"a": {"b": [1.0, {"c": 2, "d": 0}]}, "x": 1})
        ));
        assert!(!is_part(&ours, &json!({"a": {"b": [1, {"c": 2}, 3]}})));
        assert!(!is_part(&ours, &json!({"a": {}})));
    }

    #[test]
    fn the_path_of_an_addition_is_reported() {
        let ours = json!({"a": {"b": [{"c": 2}]}});
        let theirs = json!({"a": {"b": [{"c": 2, "d": 0}]}});
        assert_eq!(
            added("config", &ours, &theirs).as_deref(),
            Some("config.a.b[0].d")
        );
        assert_eq!(added("config", &ours, &ours), None);
    }
}

//! An object of Istio as the API server has it.
//!
//! Of somebody else's object only what tells that it is somebody else's is
//! kept. Whether one of ours is as it ought to be is judged by what we state:
//! others may add fields, labels and annotations, but not to the plugin's
//! configuration, which the filter would refuse or, worse, follow.

use kube::core::DynamicObject;
use serde_json::{Map, Value};

use super::extension::{HASH_ANNOTATION, MANAGED_BY, ObjectKey, Wanted};
use super::flavour::Flavour;
use crate::policy::{API_VERSION, KIND};

/// An object as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Tells it from another of the same name.
    pub uid: String,
    /// Changes with every change of it.
    pub resource_version: String,
    /// Whether it is on its way out.
    pub is_leaving: bool,
    /// Whether it bears our label.
    pub is_labelled: bool,
    /// The policies that own it, by their uid; none: somebody else's object.
    pub owners: Vec<String>,
    /// The hash that we have put there.
    pub hash: Option<String>,
    /// Its `spec`; null in somebody else's.
    pub spec: Value,
}

/// How an object compares with what it ought to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It holds all that we state.
    Same,
    /// It does not.
    Differs,
    /// Somebody else put something at this path, into the plugin's configuration or the selector.
    Added(String),
}

impl Seen {
    /// What is kept of an object.
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

    /// Whether it is what `wanted` says.
    #[must_use]
    pub fn likeness(&self, wanted: &Wanted) -> Likeness {
        let is_part = is_part(wanted.spec(), &self.spec);
        if !is_part || !self.is_labelled || self.hash.as_deref() != Some(wanted.hash.as_str()) {
            return Likeness::Differs;
        }
        let config = match wanted.key.flavour {
            Flavour::TrafficExtension => "/wasm/pluginConfig",
            Flavour::WasmPlugin => "/pluginConfig",
        };
        // Labels that others add would narrow what the policy says.
        let added = [config, "/selector"].into_iter().find_map(|pointer| {
            let path = format!("spec{}", pointer.replace('/', "."));
            match (wanted.spec().pointer(pointer), self.spec.pointer(pointer)) {
                (Some(ours), Some(theirs)) => added(&path, ours, theirs),
                (None, Some(_)) => Some(path),
                (_, None) => None,
            }
        });
        added.map_or(Likeness::Same, Likeness::Added)
    }
}

/// The key of an object; `None` for one without a name, of which there are none.
#[must_use]
pub fn key_of(object: &DynamicObject, flavour: Flavour) -> Option<ObjectKey> {
    Some(ObjectKey {
        namespace: object.metadata.namespace.clone()?,
        name: object.metadata.name.clone()?,
        flavour,
    })
}

/// Whether all of `ours` stands in `theirs`.
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
        // Some writers turn 20 into 20.0.
        (Value::Number(ours), Value::Number(value)) => ours.as_f64() == value.as_f64(),
        _ => ours == theirs,
    }
}

/// The first place at which `theirs`, which holds all of `ours`, holds more.
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
    fn what_others_add_beside_ours_does_not_matter() {
        let ours = json!({"a": {"b": [1, {"c": 2}]}});
        assert!(is_part(
            &ours,
            &json!({"a": {"b": [1.0, {"c": 2, "d": 0}]}, "x": 1})
        ));
        assert!(!is_part(&ours, &json!({"a": {"b": [1, {"c": 2}, 3]}})));
        assert!(!is_part(&ours, &json!({"a": {}})));
    }

    #[test]
    fn the_place_of_an_addition_is_told() {
        let ours = json!({"a": {"b": [{"c": 2}]}});
        let theirs = json!({"a": {"b": [{"c": 2, "d": 0}]}});
        assert_eq!(
            added("config", &ours, &theirs).as_deref(),
            Some("config.a.b[0].d")
        );
        assert_eq!(added("config", &ours, &ours), None);
    }
}

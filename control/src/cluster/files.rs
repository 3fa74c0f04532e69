//! Objects of Kubernetes in files, as `kubectl get -o json` or `-o yaml` prints them.
//!
//! JSON is read by a parser without positions, because it has tens of megabytes for a large cluster; YAML has the same
//! bounds as policies.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::facts::{ClusterObject, FactsReader};
use crate::document::{documents, value_of};

/// What is expected of a document.
const EXPECTED: &str =
    "a Deployment, StatefulSet, DaemonSet, Pod, EndpointSlice, Node, or a list of them";

/// The result of reading texts.
#[derive(Clone, Debug, Default)]
pub struct ObjectTexts {
    /// The objects.
    pub objects: FactsReader,
    /// How many objects were taken.
    pub count: usize,
    /// Ignored kinds.
    pub notes: Vec<String>,
    /// All errors, with their places.
    pub problems: Vec<String>,
}

/// Reads texts, each with its name.
pub fn read_objects<'a>(texts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> ObjectTexts {
    let mut done = ObjectTexts::default();
    for (source, bytes) in texts {
        match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => done.take(source, "", value),
            Err(_) => {
                let (found, malformed) = documents(bytes);
                for document in &found {
                    let place = format!(":{}", document.start());
                    done.take(source, &place, value_of(document.root()));
                }
                done.problems.extend(
                    malformed.map(|error| format!("{source}:{error}, expected {EXPECTED}")),
                );
            }
        }
    }
    done
}

impl ObjectTexts {
    fn take(&mut self, source: &str, place: &str, mut value: Value) {
        let kind = text(&value, "/kind").unwrap_or_default().to_owned();
        if let Some(Value::Array(items)) = value.get_mut("items").map(Value::take) {
            // Items of a typed list, such as PodList, have no kind of their own.
            let item_kind = kind.strip_suffix("List").unwrap_or_default();
            for (index, mut item) in items.into_iter().enumerate() {
                if let Some(entries) = item.as_object_mut().filter(|_| !item_kind.is_empty()) {
                    entries
                        .entry("kind")
                        .or_insert_with(|| Value::from(item_kind));
                }
                self.take(source, &format!("{place}: items[{index}]"), item);
            }
            return;
        }
        let name = text(&value, "/metadata/name").unwrap_or("without a name");
        let here = format!("{source}{place}: {kind} {name}");
        match object(&kind, value) {
            Some(Ok(object)) => {
                self.objects.take(object);
                self.count += 1;
            }
            Some(Err(reason)) => self.problems.push(format!(
                "{here}: {reason}, expected an object of Kubernetes"
            )),
            None => self
                .notes
                .push(format!("{here}: skipped, expected {EXPECTED}")),
        }
    }
}

fn object(kind: &str, value: Value) -> Option<Result<ClusterObject, String>> {
    Some(match kind {
        "Deployment" => typed::<Deployment>(value).map(|o| ClusterObject::Deployment(o.into())),
        "StatefulSet" => typed::<StatefulSet>(value).map(|o| ClusterObject::StatefulSet(o.into())),
        "DaemonSet" => typed::<DaemonSet>(value).map(|o| ClusterObject::DaemonSet(o.into())),
        "Pod" => typed::<Pod>(value).map(|o| ClusterObject::Pod(o.into())),
        "EndpointSlice" => {
            typed::<EndpointSlice>(value).map(|o| ClusterObject::EndpointSlice(o.into()))
        }
        "Node" => typed::<Node>(value).map(|o| ClusterObject::Node(o.into())),
        _ => return None,
    })
}

/// Parses an object of a known type. Kind and version are ignored, because items of a list may lack them.
fn typed<T: DeserializeOwned>(mut value: Value) -> Result<T, String> {
    if let Some(entries) = value.as_object_mut() {
        entries.remove("kind");
        entries.remove("apiVersion");
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

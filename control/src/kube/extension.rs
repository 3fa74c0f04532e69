//! The objects of Istio that carry a policy.
//!
//! A policy becomes one object; one that names its Namespace beside other
//! targets becomes two, because Istio's objects say either *all workloads* or
//! `targetRefs`. Targets that another policy takes whole are left out
//! (`docs/decisions/0007-two-policies-one-workload.md`).
//!
//! Only what is stated here is applied, so that everything else in the object
//! stays whose it was. The object's annotation holds a hash of what was
//! applied last: a field that is no longer wanted leaves no other trace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::flavour::{Flavour, GROUP, VERSION};
use super::settings::Extension;
use crate::policy::{API_VERSION, KIND, Policy, TargetKind, TargetRef, Targets};
use crate::render::{PluginConfig, Version, canonical};

/// Who made it, as a label.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tidegate");

/// Annotation with the hash of what was applied.
pub const HASH_ANNOTATION: &str = "tidegate.dev/hash";

/// The filter's root context.
const PLUGIN_NAME: &str = "tidegate";

/// Longest name of an object that Kubernetes takes, and what is kept of a longer one, before its hash.
const MAX_NAME: usize = 253;
const KEPT_NAME: usize = 230;
const HASH_DIGITS: usize = 12;

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub flavour: Flavour,
}

/// `TrafficExtension/tidegate-checkout`; the namespace is the policy's own.
impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.flavour.kind(), self.name)
    }
}

/// An object as it ought to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Which.
    pub key: ObjectKey,
    /// What is applied.
    pub body: Value,
    /// Hash of it.
    pub hash: String,
}

impl Wanted {
    /// The `spec` of it.
    #[must_use]
    pub fn spec(&self) -> &Value {
        self.body.get("spec").unwrap_or(&Value::Null)
    }
}

/// The policy's object in Kubernetes.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Tells it from another of the same name.
    pub uid: &'a str,
}

/// The objects that carry `policy`; targets in `lost` (as they are written in a contest) are another's.
#[must_use]
pub fn wanted(
    policy: &Policy,
    owner: Owner<'_>,
    lost: &BTreeSet<String>,
    settings: &Extension,
    flavour: Flavour,
) -> Vec<Wanted> {
    let config = PluginConfig::of(policy);
    // What was rendered is an object.
    let config: Value = serde_json::from_str(&config.config).unwrap_or_default();
    let share = |share: Share| share.wanted(&config, owner, settings, flavour);
    shares(policy.targets(), lost)
        .into_iter()
        .map(share)
        .collect()
}

/// What one object is for.
#[derive(Clone, Debug)]
enum Share {
    /// All workloads of the namespace.
    Namespace,
    /// Workloads with these labels.
    Labels(BTreeMap<String, String>),
    /// Objects by name.
    Objects(Vec<TargetRef>),
}

fn shares(targets: &Targets, lost: &BTreeSet<String>) -> Vec<Share> {
    match targets {
        Targets::Proxies(_) => Vec::new(),
        Targets::Selector(_) if lost.contains(&targets.to_string()) => Vec::new(),
        Targets::Selector(labels) => vec![Share::Labels(labels.clone())],
        Targets::Refs(refs) => {
            let kept = refs.iter().filter(|one| !lost.contains(&one.to_string()));
            let (whole, objects): (Vec<&TargetRef>, Vec<&TargetRef>) =
                kept.partition(|one| one.kind == TargetKind::Namespace);
            let whole = (!whole.is_empty()).then_some(Share::Namespace);
            let objects: Vec<TargetRef> = objects.into_iter().cloned().collect();
            let objects = (!objects.is_empty()).then_some(Share::Objects(objects));
            whole.into_iter().chain(objects).collect()
        }
    }
}

impl Share {
    fn wanted(
        &self,
        config: &Value,
        owner: Owner<'_>,
        settings: &Extension,
        flavour: Flavour,
    ) -> Wanted {
        let name = self.name(owner.name);
        let mut body = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": flavour.kind(),
            "metadata": {
                "name": name,
                "namespace": owner.namespace,
                "labels": {MANAGED_BY.0: MANAGED_BY.1},
                "ownerReferences": [{
                    "apiVersion": API_VERSION,
                    "kind": KIND,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": true,
                }],
            },
            "spec": self.spec(config, settings, flavour),
        });
        let hash = body.as_object().map(canonical).unwrap_or_default();
        let hash = Version::of(&hash).to_string();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("annotations".to_owned(), json!({HASH_ANNOTATION: hash}));
        }
        let key = ObjectKey {
            namespace: owner.namespace.to_owned(),
            name,
            flavour,
        };
        Wanted { key, body, hash }
    }

    /// A policy's two objects have names that differ, and that stay when the other comes or goes.
    fn name(&self, policy: &str) -> String {
        let name = match self {
            Self::Namespace => format!("tidegate-all-{policy}"),
            Self::Labels(_) | Self::Objects(_) => format!("tidegate-{policy}"),
        };
        if name.len() <= MAX_NAME {
            return name;
        }
        let hash = Version::of(&name);
        let kept = name.get(..KEPT_NAME).unwrap_or_default();
        let digits = hash.as_str().get(..HASH_DIGITS).unwrap_or_default();
        format!("{}-{digits}", kept.trim_end_matches(['-', '.']))
    }

    fn spec(&self, config: &Value, settings: &Extension, flavour: Flavour) -> Value {
        let mut wasm = Map::new();
        wasm.insert("url".to_owned(), json!(settings.url));
        if let Some(sha256) = &settings.sha256 {
            wasm.insert("sha256".to_owned(), json!(sha256));
        }
        if let Some(secret) = &settings.pull_secret {
            wasm.insert("imagePullSecret".to_owned(), json!(secret));
        }
        wasm.insert(
            "failStrategy".to_owned(),
            json!(settings.fail_strategy.name()),
        );
        wasm.insert("pluginName".to_owned(), json!(PLUGIN_NAME));
        wasm.insert("pluginConfig".to_owned(), config.clone());
        let mut spec = match flavour {
            Flavour::WasmPlugin => wasm,
            Flavour::TrafficExtension => Map::from_iter([("wasm".to_owned(), Value::from(wasm))]),
        };
        if let Some(phase) = settings.phase.name() {
            spec.insert("phase".to_owned(), json!(phase));
        }
        let priority = settings.priority.saturating_add(self.narrowness());
        spec.insert("priority".to_owned(), json!(priority));
        match self {
            Self::Namespace => {}
            Self::Labels(labels) => {
                spec.insert("selector".to_owned(), json!({"matchLabels": labels}));
            }
            Self::Objects(refs) => {
                let refs: Vec<Value> = refs.iter().map(target_ref).collect();
                spec.insert("targetRefs".to_owned(), Value::from(refs));
            }
        }
        Value::from(spec)
    }

    /// The labels that a workload must have.
    fn narrowness(&self) -> i32 {
        match self {
            Self::Labels(labels) => i32::try_from(labels.len()).unwrap_or(i32::MAX),
            Self::Namespace | Self::Objects(_) => 0,
        }
    }
}

fn target_ref(target: &TargetRef) -> Value {
    json!({
        "group": target.kind.group(),
        "kind": target.kind.name(),
        "name": target.name,
    })
}

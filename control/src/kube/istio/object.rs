//! The objects of Istio that carry a policy.
//!
//! A policy becomes one object. A policy that targets its Namespace next to other
//! targets becomes two, because an object of Istio applies either to *all
//! workloads* or to `targetRefs`. Targets that another policy takes completely
//! are left out (`docs/decisions/0007-two-policies-one-workload.md`).
//!
//! Only the fields stated here are applied, so that all other fields of the
//! object keep their owners. An annotation contains a hash of what was applied
//! last: nothing else shows that a field is no longer wanted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::api::{GROUP, IstioApi, VERSION};
use crate::document::canonical;
use crate::kube::settings::Extension;
use crate::policy::{API_VERSION, CheckedPolicy, KIND, PolicyTargets, TargetKind, TargetRef};
use crate::render::{ConfigVersion, PluginConfig};

/// The label of all objects of this service.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tidegate");

/// Annotation with the hash of the applied object.
pub const HASH_ANNOTATION: &str = "tidegate.dev/hash";

/// The filter's root context.
const PLUGIN_NAME: &str = "tidegate";

/// Longest object name that Kubernetes accepts, and the length of the prefix that stays in a shortened name.
const MAX_NAME: usize = 253;
const KEPT_NAME: usize = 230;
const HASH_DIGITS: usize = 12;

/// The identity of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub api: IstioApi,
}

/// `TrafficExtension/tidegate-checkout`; the namespace is the policy's own.
impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.api.kind(), self.name)
    }
}

/// An object as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Its identity.
    pub key: ObjectKey,
    /// The body of the server-side apply.
    pub body: Value,
    /// Hash of the body.
    pub hash: String,
}

impl DesiredObject {
    /// The `spec` in the body.
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
    /// Distinguishes it from other objects of the same name.
    pub uid: &'a str,
}

/// The objects that carry `policy` with its configuration, without the targets in `lost`, which another policy takes
/// (spelled as in a [contest](crate::policy::Contest)).
#[must_use]
pub fn desired_objects(
    (policy, config): (&CheckedPolicy, &PluginConfig),
    owner: Owner<'_>,
    lost: &BTreeSet<String>,
    settings: &Extension,
    api: IstioApi,
) -> Vec<DesiredObject> {
    // A rendered configuration is always an object.
    let config: Value = serde_json::from_str(&config.config).unwrap_or_default();
    let object = |group: TargetGroup| group.object(&config, owner, settings, api);
    target_groups(policy.targets(), lost)
        .into_iter()
        .map(object)
        .collect()
}

/// The targets of one object.
#[derive(Clone, Debug)]
enum TargetGroup {
    /// All workloads of the namespace.
    Namespace,
    /// Workloads with these labels.
    Labels(BTreeMap<String, String>),
    /// Objects by name.
    Objects(Vec<TargetRef>),
}

fn target_groups(targets: &PolicyTargets, lost: &BTreeSet<String>) -> Vec<TargetGroup> {
    match targets {
        PolicyTargets::Proxies(_) => Vec::new(),
        PolicyTargets::Selector(_) if lost.contains(&targets.to_string()) => Vec::new(),
        PolicyTargets::Selector(labels) => vec![TargetGroup::Labels(labels.clone())],
        PolicyTargets::Refs(refs) => {
            let kept = refs.iter().filter(|one| !lost.contains(&one.to_string()));
            let (whole, objects): (Vec<&TargetRef>, Vec<&TargetRef>) =
                kept.partition(|one| one.kind == TargetKind::Namespace);
            let whole = (!whole.is_empty()).then_some(TargetGroup::Namespace);
            let objects: Vec<TargetRef> = objects.into_iter().cloned().collect();
            let objects = (!objects.is_empty()).then_some(TargetGroup::Objects(objects));
            whole.into_iter().chain(objects).collect()
        }
    }
}

impl TargetGroup {
    fn object(
        &self,
        config: &Value,
        owner: Owner<'_>,
        settings: &Extension,
        api: IstioApi,
    ) -> DesiredObject {
        let name = self.name(owner.name);
        let mut body = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": api.kind(),
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
            "spec": self.spec(config, settings, api),
        });
        let hash = body.as_object().map(canonical).unwrap_or_default();
        let hash = ConfigVersion::of(&hash).to_string();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("annotations".to_owned(), json!({HASH_ANNOTATION: hash}));
        }
        let key = ObjectKey {
            namespace: owner.namespace.to_owned(),
            name,
            api,
        };
        DesiredObject { key, body, hash }
    }

    /// A policy's two objects have different names, which do not depend on whether the other object exists.
    fn name(&self, policy: &str) -> String {
        let name = match self {
            Self::Namespace => format!("tidegate-all-{policy}"),
            Self::Labels(_) | Self::Objects(_) => format!("tidegate-{policy}"),
        };
        if name.len() <= MAX_NAME {
            return name;
        }
        let hash = ConfigVersion::of(&name);
        let kept = name.get(..KEPT_NAME).unwrap_or_default();
        let digits = hash.as_str().get(..HASH_DIGITS).unwrap_or_default();
        format!("{}-{digits}", kept.trim_end_matches(['-', '.']))
    }

    fn spec(&self, config: &Value, settings: &Extension, api: IstioApi) -> Value {
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
        let mut spec = match api {
            IstioApi::WasmPlugin => wasm,
            IstioApi::TrafficExtension => Map::from_iter([("wasm".to_owned(), Value::from(wasm))]),
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

    /// Number of labels that a workload must have.
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

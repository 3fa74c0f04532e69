//! A `DestinationRule`, as far as it bounds requests in flight.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::DynamicObject;
use serde_json::{Value, json};
use tidegate_advise::chain::{SettingOrigin, StaticPool, qualified_host};

use crate::document::node_of;
use crate::migrate::pool_bounds;

/// The entry of `exportTo` that means all namespaces.
const EVERYWHERE: &str = "*";
/// The entry of `exportTo` that means the rule's own namespace.
const OWN: &str = ".";

/// A rule with bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredRule {
    /// Its namespace.
    pub namespace: String,
    /// The namespaces that may use it; empty: all.
    exported: BTreeSet<String>,
    /// The labels of the workloads that it applies to; empty: all that may use it.
    pub selector: BTreeMap<String, String>,
    /// The bounds.
    pub pools: Vec<StaticPool>,
}

impl DeclaredRule {
    /// The bounds of an object; `None` if it has none, or is invalid.
    #[must_use]
    pub fn of(object: &DynamicObject) -> Option<Self> {
        let namespace = object.metadata.namespace.clone()?;
        let spec = object.data.get("spec")?;
        // Items of a list have neither `kind` nor `apiVersion`.
        let document = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "DestinationRule",
            "metadata": {"name": object.metadata.name, "namespace": namespace}, "spec": spec,
        });
        let bounds = pool_bounds(&node_of(&document), &namespace)?.ok()?;
        let pool = |bound: crate::migrate::PoolBound| StaticPool {
            origin: SettingOrigin {
                object: bound.object,
                place: String::new(),
            },
            host: qualified_host(&bound.host, &bound.namespace),
            in_flight: bound.in_flight,
            field: bound.field,
        };
        let pools: Vec<StaticPool> = bounds.into_iter().map(pool).collect();
        (!pools.is_empty()).then(|| Self {
            exported: exported(spec, &namespace),
            selector: selector(spec),
            namespace,
            pools,
        })
    }

    /// Whether proxies of a namespace may use it.
    #[must_use]
    pub fn is_for(&self, namespace: &str) -> bool {
        self.exported.is_empty() || self.exported.contains(namespace)
    }
}

fn exported(spec: &Value, own: &str) -> BTreeSet<String> {
    let names = spec.get("exportTo").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let names: BTreeSet<&str> = names.collect();
    if names.contains(EVERYWHERE) {
        return BTreeSet::new();
    }
    let name = |name: &str| if name == OWN { own } else { name }.to_owned();
    names.into_iter().map(name).collect()
}

fn selector(spec: &Value) -> BTreeMap<String, String> {
    let labels = spec.pointer("/workloadSelector/matchLabels");
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

//! The Kubernetes resource `BreakerPolicy`.
//!
//! The definition (CRD) is generated from these types. The part of `spec` that
//! is the filter's configuration is not declared here: its schema is generated
//! from core's own table of fields ([`config_schema`]), and core checks it. The
//! schema and its CEL rules reject most mistakes when a policy is applied. What
//! they cannot express (a rule under `upstreams` that contradicts what it
//! inherits) is found by [`CheckedPolicy::read`] and reported in the status.

mod config_schema;
mod orders;
pub mod reference;
mod rules;
mod status;

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_core::config::ConfigErrors;

use crate::document::node_of;
use crate::policy::CheckedPolicy;

pub use config_schema::config_schema;
pub use status::{BreakerPolicyStatus, ConditionType, OverruledTarget};

/// What is wanted, and from which proxies.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tidegate.dev",
    version = "v1alpha1",
    kind = "BreakerPolicy",
    plural = "breakerpolicies",
    shortname = "bp",
    category = "tidegate",
    namespaced,
    status = "BreakerPolicyStatus",
    derive = "PartialEq",
    doc = "Service level objectives for requests through Envoy, and what Tidegate may do to meet them.",
    printcolumn = r#"{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}"#,
    printcolumn = r#"{"name": "Latency", "type": "string", "jsonPath": ".spec.slo.latency.target"}"#,
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name": "Programmed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Programmed\")].status"}"#,
    printcolumn = r#"{"name": "Conflicted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Conflicted\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.version", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::spec()))]
pub struct BreakerPolicySpec {
    /// Kubernetes objects in the policy's own namespace that it applies to: a gateway or waypoint, a
    /// service behind a waypoint, or the namespace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<TargetReference>", length(min = 1, max = 16), extend("x-kubernetes-validations" = rules::unique_targets()))]
    pub target_refs: Option<Vec<TargetReference>>,
    /// Workloads in the policy's own namespace that it applies to, by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "WorkloadSelector")]
    pub selector: Option<WorkloadSelector>,
    /// Standalone proxies that it applies to; one entry must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<ProxyConditions>", length(min = 1, max = 100))]
    pub proxies: Option<Vec<ProxyConditions>>,
    /// Version of the module that the workloads load, by its name in the control service's settings, such as for a canary.
    /// Absent: the version of the namespace, or of all. Not for standalone proxies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(min = 1, max = 63),
        regex(pattern = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    )]
    pub module: Option<String>,
    /// The filter's configuration, key for key.
    #[serde(flatten)]
    pub config: PluginSettings,
}

/// A Kubernetes object in the policy's own namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::group_of_kind()))]
pub struct TargetReference {
    /// API group of the object: `gateway.networking.k8s.io` for a Gateway, empty or `core` for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 253))]
    pub group: Option<String>,
    /// Kind of the object.
    #[schemars(extend("enum" = rules::kinds()))]
    pub kind: String,
    /// Name of the object; a Namespace must be the policy's own.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Workloads by their labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSelector {
    /// Labels that a workload must have, all of them.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 64))]
    pub match_labels: BTreeMap<String, String>,
}

/// Conditions on the node in Envoy's bootstrap; all that are set must hold, and at least one must be set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct ProxyConditions {
    /// The node's id, with `*` for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 512))]
    pub id: Option<String>,
    /// The node's cluster, with `*` for any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 512))]
    pub cluster: Option<String>,
    /// Part of the node's metadata: objects are compared key by key, texts may contain `*` for any
    /// text, everything else must be equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_object")]
    pub metadata: Option<Map<String, Value>>,
}

/// The filter's configuration as it was written; core defines its schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginSettings(
    /// Key by key.
    pub Map<String, Value>,
);

impl JsonSchema for PluginSettings {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PluginSettings".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::Schema::from(config_schema())
    }
}

fn free_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "minProperties": 1,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The custom resource definition, ready to be applied.
///
/// # Errors
/// When it cannot be written as JSON, which does not happen.
pub fn definition() -> Result<Value, serde_json::Error> {
    let mut definition = serde_json::to_value(BreakerPolicy::crd())?;
    join_lines(&mut definition);
    Ok(definition)
}

/// Replaces the line breaks of doc comments in descriptions.
fn join_lines(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\n') => *text = text.replace('\n', " "),
        Value::Array(items) => items.iter_mut().for_each(join_lines),
        Value::Object(entries) => entries.values_mut().for_each(join_lines),
        _ => {}
    }
}

impl CheckedPolicy {
    /// Reads a policy that the API server keeps.
    ///
    /// # Errors
    /// Every error that the schema does not catch.
    pub fn of_resource(resource: &BreakerPolicy) -> Result<Self, ConfigErrors> {
        // Types of this module can always be written as JSON; null would be rejected with an error.
        let value = serde_json::to_value(resource).unwrap_or_default();
        Self::read(&node_of(&value))
    }
}

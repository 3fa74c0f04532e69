//! The options that name a proxy, or a policy instead of one, and how a policy is chosen by them.

use clap::Args;
use serde_json::{Map, Value};
use tidegate_control::document::{documents, value_of};
use tidegate_control::policy::{CheckedPolicy, Policies, PolicyName, ProxyNode};

use super::CommandFailure;

/// The node of a proxy, as it names itself.
#[derive(Debug, Args)]
pub(super) struct NodeOptions {
    /// Node id of the proxy
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// Node cluster of the proxy
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Node metadata of the proxy: KEY=TEXT, or an object as JSON or YAML; may be repeated
    #[arg(long, value_name = "KEY=TEXT|OBJECT")]
    metadata: Vec<String>,
}

impl NodeOptions {
    /// The proxy; `None`: none is named.
    pub(super) fn proxy(&self) -> Result<Option<ProxyNode>, CommandFailure> {
        if self.node_id.is_none() && self.cluster.is_none() && self.metadata.is_empty() {
            return Ok(None);
        }
        let mut metadata = Map::new();
        for text in &self.metadata {
            metadata.extend(metadata_of(text)?);
        }
        Ok(Some(ProxyNode {
            id: self.node_id.clone().unwrap_or_default(),
            cluster: self.cluster.clone().unwrap_or_default(),
            metadata,
        }))
    }
}

/// NAME or NAMESPACE/NAME.
pub(super) fn parse_name(text: &str) -> PolicyName {
    match text.split_once('/') {
        Some((namespace, name)) => PolicyName::new(Some(namespace.to_owned()), name.to_owned()),
        None => PolicyName::new(None, text.to_owned()),
    }
}

/// The policy of this name.
pub(super) fn find<'a>(
    policies: &'a Policies,
    name: &str,
) -> Result<&'a CheckedPolicy, CommandFailure> {
    policies
        .get(&parse_name(name))
        .map(|policy| &**policy)
        .ok_or_else(|| {
            let known = names(policies);
            CommandFailure(format!("no policy {name}; known policies: {known}"))
        })
}

/// The names of all policies.
pub(super) fn names(policies: &Policies) -> String {
    let names: Vec<String> = policies.iter().map(|p| p.name().to_string()).collect();
    names.join(", ")
}

fn metadata_of(text: &str) -> Result<Map<String, Value>, CommandFailure> {
    if !text.trim_start().starts_with('{') {
        return match text.split_once('=') {
            Some((key, value)) => Ok([(key.to_owned(), Value::from(value))].into_iter().collect()),
            None => Err(CommandFailure(format!(
                "--metadata {text}: expected KEY=TEXT or an object"
            ))),
        };
    }
    let (found, malformed) = documents(text.as_bytes());
    match (
        found.first().map(|document| value_of(document.root())),
        malformed,
    ) {
        (_, Some(error)) => Err(CommandFailure(format!("--metadata: {error}"))),
        (Some(Value::Object(object)), None) => Ok(object),
        _ => Err(CommandFailure(format!("--metadata {text}: not an object"))),
    }
}

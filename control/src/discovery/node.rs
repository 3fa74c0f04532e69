//! The node that a proxy sends, within bounds: it stays in memory while the proxy is connected.

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::google::protobuf::{Struct, Value as WireValue, value::Kind};
use prost::Message as _;
use serde_json::{Map, Value};
use tonic::Status;

use crate::policy::ProxyNode;

/// Longest id of a proxy, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Longest name of a proxy's cluster, in bytes.
const MAX_CLUSTER_BYTES: usize = 256;

/// Largest metadata of a node, in bytes on the wire: about 10 KB are usual in a mesh.
const MAX_METADATA_BYTES: usize = 64 << 10;

/// Most top-level keys of a node's metadata: about 30 are usual in a mesh.
const MAX_METADATA_KEYS: usize = 256;

/// The parts of a node that policies can match.
///
/// # Errors
/// When something is too large, or the id is missing.
pub(super) fn proxy(node: Node) -> Result<ProxyNode, Status> {
    within("node.id", node.id.len(), (1, MAX_ID_BYTES))?;
    within("node.cluster", node.cluster.len(), (0, MAX_CLUSTER_BYTES))?;
    let metadata = node.metadata.unwrap_or_default();
    within(
        "node.metadata",
        metadata.encoded_len(),
        (0, MAX_METADATA_BYTES),
    )?;
    if metadata.fields.len() > MAX_METADATA_KEYS {
        let found = metadata.fields.len();
        return Err(Status::invalid_argument(format!(
            "node.metadata: found {found} keys, expected at most {MAX_METADATA_KEYS}"
        )));
    }
    Ok(ProxyNode {
        id: node.id,
        cluster: node.cluster,
        metadata: object(metadata),
    })
}

fn within(path: &str, found: usize, (least, most): (usize, usize)) -> Result<(), Status> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "{path}: found {found} bytes, expected {least} to {most}"
    )))
}

fn object(wire: Struct) -> Map<String, Value> {
    let entries = wire.fields.into_iter();
    entries.map(|(key, wire)| (key, value(wire))).collect()
}

fn value(wire: WireValue) -> Value {
    match wire.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::NumberValue(number)) => Value::from(number),
        Some(Kind::StringValue(text)) => Value::from(text),
        Some(Kind::BoolValue(flag)) => Value::from(flag),
        Some(Kind::StructValue(wire)) => Value::Object(object(wire)),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(value).collect(),
    }
}

//! A proxy as its bootstrap describes it.

use serde_json::{Map, Value};

/// A proxy as its bootstrap's `node` describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyNode {
    /// The node's id.
    pub id: String,
    /// The node's cluster; may be empty.
    pub cluster: String,
    /// The node's metadata.
    pub metadata: Map<String, Value>,
}

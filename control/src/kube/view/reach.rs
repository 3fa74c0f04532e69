//! Which objectives are out of reach, by the service graph.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of objectives out of reach; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReachFindings {
    /// The service reads no graph.
    #[default]
    Off,
    /// No graph could be read yet.
    Unknown,
    /// Policies, as `namespace/name`, with the upstreams for which their objective is out of reach.
    Known(Arc<BTreeMap<String, Vec<String>>>),
}

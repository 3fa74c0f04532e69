//! How important the requests of a caller are, depending on where its own requests come from.
//!
//! A caller that requests from an entry reach is on the path of users: `critical`. Others start requests on their own, such as batch
//! jobs and probes: `sheddable_plus`. That is a guess from the graph, not knowledge, so the reason is part of it.
//!
//! Entries are what the operator names. Otherwise they are callers that the metrics do not name, and vertices without callers
//! whose name contains `gateway` or `ingress`; if there are none, all vertices without callers.

use std::collections::BTreeSet;

use petgraph::Direction;
use petgraph::visit::Dfs;
use tidegate_core::Criticality;
use tidegate_graph::{ServiceGraph, ServiceVertex, VertexKey, VertexKind};

/// Names that an entry usually has.
const ENTRY_NAMES: [&str; 2] = ["gateway", "ingress"];

/// Where requests come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Guessed from names and the graph.
    Guessed,
    /// Vertices, as `namespace/name`.
    Named(BTreeSet<String>),
}

/// How important the requests of a caller are.
#[derive(Clone, Debug)]
pub struct CallerCriticality<'a> {
    /// The caller.
    pub caller: &'a VertexKey,
    /// How important its requests are.
    pub criticality: Criticality,
    /// Why.
    pub reason: &'static str,
}

/// The vertices that requests from an entry reach, the entries included.
pub(super) fn reached(graph: &ServiceGraph, entries: &Entries) -> BTreeSet<VertexKey> {
    let petgraph = graph.petgraph();
    let is_root = |index| {
        petgraph
            .neighbors_directed(index, Direction::Incoming)
            .next()
            .is_none()
    };
    let looks_like_one = |key: &VertexKey| {
        key.kind == VertexKind::Unknown || ENTRY_NAMES.iter().any(|name| key.name.contains(name))
    };
    let all: Vec<_> = graph.vertices().collect();
    let mut starts: Vec<_> = match entries {
        Entries::Named(names) => all
            .iter()
            .filter(|(_, vertex)| names.iter().any(|name| goes_by(vertex, name)))
            .map(|(index, _)| *index)
            .collect(),
        Entries::Guessed => all
            .iter()
            .filter(|(index, vertex)| is_root(*index) && looks_like_one(&vertex.key))
            .map(|(index, _)| *index)
            .collect(),
    };
    if starts.is_empty() && *entries == Entries::Guessed {
        starts = all
            .iter()
            .map(|(index, _)| *index)
            .filter(|index| is_root(*index))
            .collect();
    }
    let mut search = Dfs::empty(petgraph);
    let mut reached = BTreeSet::new();
    for start in starts {
        search.move_to(start);
        while let Some(index) = search.next(petgraph) {
            reached.extend(petgraph.node_weight(index).map(|vertex| vertex.key.clone()));
        }
    }
    reached
}

/// The entries that are not in the graph.
#[must_use]
pub fn unknown_entries(graph: &ServiceGraph, entries: &Entries) -> Vec<String> {
    let Entries::Named(names) = entries else {
        return Vec::new();
    };
    let is_unknown = |name: &&String| !graph.vertices().any(|(_, vertex)| goes_by(vertex, name));
    names.iter().filter(is_unknown).cloned().collect()
}

/// Whether a vertex, or a service that leads to it, has the name.
fn goes_by(vertex: &ServiceVertex, name: &str) -> bool {
    let mut services = vertex.services.iter();
    vertex.key.to_string() == name || services.any(|service| service.to_string() == name)
}

/// How important the requests of a caller are.
pub(super) fn of<'a>(
    caller: &'a VertexKey,
    reached: &BTreeSet<VertexKey>,
) -> CallerCriticality<'a> {
    let (criticality, reason) = if reached.contains(caller) {
        (Criticality::Critical, "on the path of an entry")
    } else {
        (
            Criticality::SheddablePlus,
            "no request of an entry reaches it",
        )
    };
    CallerCriticality {
        caller,
        criticality,
        reason,
    }
}

//! Nodes in a file: as kubectl prints them, or as a short list.

use tidegate_core::config::{Node, Section};
use tidegate_graph::{ClusterNode, ComputeResources};

use super::files::read_objects;
use super::quantity::{bytes, cores};
use crate::document::documents;

/// Most nodes in a short list: as many as Kubernetes supports in a cluster.
const MAX_NODES: usize = 5_000;
const NAME: &str = "the name of a node";
const CPU: &str = "CPU such as 4 or 3500m";
const MEMORY: &str = "memory such as 16Gi";

/// Reads nodes from a text: `kubectl get nodes -o yaml`, or a list under `nodes` with `name`, `cpu` and `memory`.
///
/// # Errors
///
/// All errors, one per line, with their places.
pub fn read_nodes(source: &str, text: &[u8]) -> Result<Vec<ClusterNode>, String> {
    let (found, malformed) = documents(text);
    let short = found.iter().find(|document| has_nodes(document.root()));
    let (nodes, problems) = match (short, malformed) {
        (Some(document), None) => match Section::read_document(document.root(), nodes) {
            Ok(nodes) => (nodes, Vec::new()),
            Err(errors) => {
                let line = |error: &tidegate_core::config::ConfigError| {
                    format!("{source}:{}: {error}", document.locate(error.path()))
                };
                (Vec::new(), errors.iter().map(line).collect())
            }
        },
        _ => {
            let done = read_objects([(source, text)]);
            (done.objects.finish(Vec::new()).nodes, done.problems)
        }
    };
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    if nodes.is_empty() {
        return Err(format!(
            "{source}: found no nodes, expected those of kubectl get nodes -o yaml, or a list under nodes with name, cpu and memory"
        ));
    }
    Ok(nodes)
}

fn has_nodes(root: &Node) -> bool {
    matches!(root, Node::Object(entries) if entries.iter().any(|(key, _)| key == "nodes"))
}

fn nodes(s: &mut Section<'_>) -> Vec<ClusterNode> {
    s.objects("nodes", MAX_NODES, |s| {
        let name = s.text("name", &NAME, |text| {
            (!text.is_empty()).then(|| text.to_owned())
        });
        if name.is_none() && !s.has("name") {
            s.require("name", &NAME);
        }
        ClusterNode {
            name: name.unwrap_or_default(),
            allocatable: ComputeResources {
                cpu_cores: amount(s, "cpu", CPU, cores),
                memory_bytes: amount(s, "memory", MEMORY, bytes),
            },
            is_schedulable: true,
        }
    })
}

fn amount<T>(
    s: &mut Section<'_>,
    key: &'static str,
    expected: &'static str,
    read: fn(&str) -> Option<T>,
) -> Option<T> {
    if !s.has(key) {
        s.require(key, &expected);
        return None;
    }
    s.value(key, &expected, |node| match node {
        Node::Text(text) => read(text),
        Node::Whole(number) => read(&number.to_string()),
        Node::Number(number) => read(&number.to_string()),
        _ => None,
    })
}

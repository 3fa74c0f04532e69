//! Policies as Istio's objects with the filter, for meshes without the control service.
//!
//! They are the objects that the service would write, without the marks of its own objects: a service that is installed
//! later would remove objects with these marks. The comments of each policy stay, before its object.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::yaml;
use crate::kube::istio::{IstioApi, Owner, desired_objects};
use crate::kube::settings::Extension;
use crate::policy::{ContestExtent, Gathered, Problem, contests, gather};
use crate::render::PluginConfig;

/// Objects as text, and what is missing from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionTexts {
    /// YAML; empty if there is no object.
    pub text: String,
    /// The policies without an object, and why.
    pub notes: Vec<String>,
}

/// The objects that carry the policies in a text of the form that [`policy_texts`](super::policy_texts) and
/// [`migrate`](crate::migrate::migrate()) write.
///
/// # Errors
/// Everything that is wrong with the policies.
pub fn extension_texts(
    policies: &str,
    extension: &Extension,
    api: IstioApi,
) -> Result<ExtensionTexts, Vec<Problem>> {
    let all = read_made(policies);
    if !all.problems.is_empty() {
        return Err(all.problems);
    }
    let lost = contests(&all.policies);
    let mut done = ExtensionTexts::default();
    let mut texts = Vec::new();
    for chunk in chunks(policies) {
        for policy in gather([("the policy made", chunk.as_bytes())])
            .policies
            .iter()
        {
            let name = policy.name();
            let Some(namespace) = name.namespace() else {
                done.notes.push(format!(
                    "{name}: no object: the policy is for standalone proxies, which Istio does not configure"
                ));
                continue;
            };
            let owner = Owner {
                namespace,
                name: name.name(),
                uid: "",
            };
            let whole = lost
                .iter()
                .filter(|contest| contest.loser == *name && contest.extent == ContestExtent::Whole);
            let lost: BTreeSet<String> = whole.map(|contest| contest.target.clone()).collect();
            let config = PluginConfig::of(policy);
            for object in desired_objects((policy, &config), owner, &lost, extension, api) {
                let mut body = object.body;
                if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace"));
                }
                texts.push(comments(&chunk) + &yaml(&body));
            }
        }
    }
    done.text = texts.join("---\n");
    Ok(done)
}

/// Reads policies that this program wrote, each by itself: the policies of a large mesh together exceed the accepted size
/// of a file.
#[must_use]
pub fn read_made(policies: &str) -> Gathered {
    let chunks = chunks(policies);
    gather(
        chunks
            .iter()
            .map(|chunk| ("the policies made", chunk.as_bytes())),
    )
}

/// The documents of a text.
fn chunks(text: &str) -> Vec<String> {
    let mut chunks = vec![String::new()];
    for line in text.lines() {
        if line == "---" {
            chunks.push(String::new());
        } else if let Some(chunk) = chunks.last_mut() {
            chunk.push_str(line);
            chunk.push('\n');
        }
    }
    chunks
}

/// The comments of a document. Its texts are quoted on one line each, so every line that starts with `#` is a comment.
fn comments(chunk: &str) -> String {
    let lines = chunk.lines().map(str::trim_start);
    lines
        .filter(|line| line.starts_with('#'))
        .flat_map(|line| [line, "\n"])
        .collect()
}

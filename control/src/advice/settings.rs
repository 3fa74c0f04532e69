//! Reads what is configured from texts: policies, and Istio's `VirtualService`s and `DestinationRule`s.

use std::collections::BTreeMap;

use tidegate_advise::chain::{
    PolicyOverlap, RouteTerms, SettingOrigin, StaticPool, qualified_host,
};
use tidegate_core::config::{ConfigErrors, Node};

use super::virtual_service;
use crate::document::{YamlDocument, documents};
use crate::migrate::pool_bounds;
use crate::policy::{CheckedPolicy, ContestExtent, KIND, Policies, PolicyName, Problem, contests};

/// API group of Istio's documents.
const ISTIO_GROUP: &str = "networking.istio.io";

/// What is configured.
#[derive(Clone, Debug, Default)]
pub struct MeshSettings {
    /// Timeouts and retries.
    pub routes: Vec<RouteTerms>,
    /// Static bounds.
    pub pools: Vec<StaticPool>,
    /// The policies.
    pub policies: Policies,
    /// Where each policy is.
    pub places: BTreeMap<PolicyName, String>,
    /// Skipped documents, and why.
    pub notes: Vec<String>,
    /// All errors in the other documents.
    pub problems: Vec<Problem>,
}

impl MeshSettings {
    /// Reads texts, each with its name. `namespace` is the default for documents of Istio.
    pub fn read<'a>(texts: impl IntoIterator<Item = (&'a str, &'a [u8])>, namespace: &str) -> Self {
        let mut settings = Self::default();
        for (source, bytes) in texts {
            let (found, malformed) = documents(bytes);
            for document in &found {
                if let Err(errors) = settings.take(source, document, namespace) {
                    settings
                        .problems
                        .extend(Problem::list(source, document, &errors));
                }
            }
            let expected = "a policy or a document of Istio";
            settings.problems.extend(
                malformed.map(|error| Problem::malformed(source, found.len(), error, expected)),
            );
        }
        settings
    }

    /// Policies that compete for a target.
    #[must_use]
    pub fn overlaps(&self) -> Vec<PolicyOverlap> {
        contests(&self.policies)
            .into_iter()
            .map(|contest| PolicyOverlap {
                winner: contest.winner.to_string(),
                loser: contest.loser.to_string(),
                target: contest.target,
                is_whole: contest.extent == ContestExtent::Whole,
            })
            .collect()
    }

    fn take(
        &mut self,
        source: &str,
        document: &YamlDocument,
        namespace: &str,
    ) -> Result<(), ConfigErrors> {
        let place = format!("{source}:{}", document.start());
        let root = document.root();
        let (kind, is_istio) = (text(root, "kind"), is_istio(root));
        if kind == Some(KIND) {
            let policy = CheckedPolicy::read(root)?;
            let name = policy.name().clone();
            match self.places.get(&name) {
                Some(earlier) => self.notes.push(format!(
                    "{place}: policy {name} is at {earlier} already, skipped"
                )),
                None => {
                    self.policies.insert(policy);
                    self.places.insert(name, place);
                }
            }
        } else if kind == Some(virtual_service::KIND) && is_istio {
            self.routes
                .extend(virtual_service::routes(root, namespace, &place)?);
        } else if let Some(bounds) = pool_bounds(root, namespace) {
            self.pools
                .extend(bounds?.into_iter().map(|bound| StaticPool {
                    origin: SettingOrigin {
                        object: bound.object,
                        place: place.clone(),
                    },
                    host: qualified_host(&bound.host, &bound.namespace),
                    in_flight: bound.in_flight,
                    field: bound.field,
                }));
        } else {
            self.notes.push(format!(
                "{place}: neither a {KIND} nor a VirtualService or DestinationRule of {ISTIO_GROUP}, skipped"
            ));
        }
        Ok(())
    }
}

fn is_istio(root: &Node) -> bool {
    text(root, "apiVersion")
        .and_then(|version| version.split_once('/'))
        .is_some_and(|(group, _)| group == ISTIO_GROUP)
}

fn text<'a>(root: &'a Node, key: &str) -> Option<&'a str> {
    let Node::Object(entries) = root else {
        return None;
    };
    entries.iter().find_map(|(name, node)| match node {
        Node::Text(text) if name == key => Some(text.as_str()),
        _ => None,
    })
}

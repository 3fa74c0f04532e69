//! Merges the policies of all sources, so that each name has one.

use std::sync::Arc;

use super::CatalogState;
use crate::document::TextPosition;
use crate::event::EventSink;
use crate::policy::{Gathered, Policies, PolicyName, Problem};
use crate::source::directory::Directory;
use crate::source::event::SourceEvent;
use crate::source::store::Store;

pub(super) const FILES: &str = "files";
const REST: &str = "rest";
const KUBERNETES: &str = "kubernetes";

impl CatalogState {
    pub(super) fn source(&self, name: &PolicyName) -> &'static str {
        let is_stored = |store: &Store| store.stored(name).is_some();
        let in_force = self.policies.get(name);
        let is_of = |cluster: &Gathered| match (cluster.policies.get(name), in_force) {
            (Some(held), Some(in_force)) => Arc::ptr_eq(held, in_force),
            _ => false,
        };
        if self.store.as_ref().is_some_and(is_stored) {
            REST
        } else if self.cluster.as_ref().is_some_and(is_of) {
            KUBERNETES
        } else {
            FILES
        }
    }

    pub(super) fn merged(&self, events: &EventSink<SourceEvent>) -> (Policies, Vec<Problem>) {
        let stored = self.store.as_ref().map(Store::gathered).unwrap_or_default();
        let files = self
            .directory
            .as_ref()
            .map(Directory::gathered)
            .unwrap_or_default();
        let report = |source, policies, problems| {
            events.send(SourceEvent::Counted {
                source,
                policies,
                problems,
            });
        };
        let (mut policies, mut problems) = (stored.policies, stored.problems);
        report(REST, policies.len(), problems.len());
        let path = self.directory.as_ref().map(Directory::path);
        let path = path.map(|path| path.display().to_string());
        let own = add(&mut policies, files, &path.unwrap_or_default());
        report(FILES, own.0, own.1.len());
        problems.extend(own.1);
        if let Some(cluster) = self.cluster.clone() {
            let own = add(&mut policies, cluster, KUBERNETES);
            report(KUBERNETES, own.0, own.1.len());
            problems.extend(own.1);
        }
        (policies, problems)
    }
}

/// Adds the policies of a source, except those whose name another source uses. Returns their number, and all errors.
fn add(policies: &mut Policies, from: Gathered, source: &str) -> (usize, Vec<Problem>) {
    let (mut count, mut problems) = (0, from.problems);
    for policy in from.policies.iter() {
        if policies.get(policy.name()).is_some() {
            problems.push(taken(policy.name(), source));
        } else {
            count += 1;
            policies.insert_shared(Arc::clone(policy));
        }
    }
    (count, problems)
}

fn taken(name: &PolicyName, source: &str) -> Problem {
    Problem {
        source: source.to_owned(),
        place: TextPosition { line: 1, column: 1 },
        policy: Some(name.to_string()),
        path: "metadata.name".to_owned(),
        found: "the name of a policy that another source holds".to_owned(),
        expected: "each name once".to_owned(),
    }
}

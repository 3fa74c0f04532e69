//! What is shown of a connected proxy.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Arrival;
use crate::render::{Proxy, Rendered};
use crate::xds::{Desired, Name, Refusal, Version};

/// One stream of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyRecord {
    /// The node's id.
    pub id: String,
    /// The node's cluster.
    pub cluster: String,
    /// `ecds` or `ads`.
    pub api: &'static str,
    /// `sotw` or `delta`.
    pub dialect: &'static str,
    /// Where it comes from.
    pub peer: String,
    /// When it connected.
    pub connected_at: String,
    /// The policy that it is to run; `None`: no policy matches.
    pub policy: Option<String>,
    /// Policies that match and lost, the next in line first.
    pub overruled: Vec<String>,
    /// What it has asked for, by name.
    pub resources: BTreeMap<String, ResourceRecord>,
}

/// One resource of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRecord {
    /// The version that it is to run.
    pub wanted: Option<String>,
    /// The version that it says it runs.
    pub running: Option<String>,
    /// Whether a push of it is not answered yet.
    pub is_under_way: bool,
    /// What it refused last.
    pub last_refused: Option<Refused>,
}

impl ResourceRecord {
    fn is_current(&self) -> bool {
        self.wanted == self.running
    }

    fn has_refused(&self) -> bool {
        let refused = self.last_refused.as_ref().map(|last| &last.version);
        !self.is_current() && refused.is_some() && refused == self.wanted.as_ref()
    }
}

/// A refusal, with its circumstances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refused {
    /// The version that was refused.
    pub version: String,
    /// gRPC status code that the proxy gave.
    pub code: i32,
    /// Its message.
    pub message: String,
    /// When.
    pub at: String,
}

impl ProxyRecord {
    /// How many resources of these run what they are to run, do not yet, or refused it.
    #[must_use]
    pub fn states(proxies: &[Self]) -> [(&'static str, usize); 3] {
        let resources = || proxies.iter().flat_map(|proxy| proxy.resources.values());
        let all = resources().count();
        let current = resources().filter(|one| one.is_current()).count();
        let refused = resources().filter(|one| one.has_refused()).count();
        let behind = all.saturating_sub(current).saturating_sub(refused);
        [
            ("current", current),
            ("behind", behind),
            ("refused", refused),
        ]
    }

    pub(super) fn new(proxy: &Proxy, arrival: &Arrival) -> Self {
        Self {
            id: proxy.id.clone(),
            cluster: proxy.cluster.clone(),
            api: arrival.api.name(),
            dialect: arrival.dialect,
            peer: arrival.peer.clone(),
            connected_at: now(),
            policy: None,
            overruled: Vec::new(),
            resources: BTreeMap::new(),
        }
    }

    pub(super) fn label(&mut self, rendered: &Rendered) {
        self.policy = rendered.policy.as_ref().map(ToString::to_string);
        self.overruled = rendered.overruled.iter().map(ToString::to_string).collect();
    }

    /// Something else is to run there from now on.
    pub(super) fn want(&mut self, desired: &Desired) {
        for (name, resource) in &mut self.resources {
            resource.wanted = desired.resource(name).map(|r| r.version.to_string());
        }
    }

    /// What the stream's conversation has come to.
    pub(super) fn note<'a>(
        &mut self,
        desired: &Desired,
        is_wanted: impl Fn(&str) -> bool,
        running: impl Fn(&str) -> Option<&'a Version>,
    ) {
        for resource in desired.iter() {
            let name = &*resource.name;
            if !is_wanted(name) {
                self.resources.remove(name);
                continue;
            }
            let entry = self.resources.entry(name.to_owned()).or_default();
            entry.wanted = Some(resource.version.to_string());
            entry.running = running(name).map(ToString::to_string);
        }
    }

    pub(super) fn under_way(&mut self, names: impl Iterator<Item = Name>, is_under_way: bool) {
        for name in names {
            if let Some(resource) = self.resources.get_mut(&*name) {
                resource.is_under_way = is_under_way;
            }
        }
    }

    pub(super) fn refuse(&mut self, versions: &[(Name, Option<Version>)], refusal: &Refusal) {
        for (name, version) in versions {
            if let Some(resource) = self.resources.get_mut(&**name) {
                resource.last_refused = Some(Refused {
                    version: version
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    code: refusal.code,
                    message: refusal.message.clone(),
                    at: now(),
                });
            }
        }
    }

    /// Takes over what an earlier stream of the proxy refused.
    pub(super) fn remember(&mut self, refusals: &BTreeMap<Name, Refused>) {
        for (name, refused) in refusals {
            let resource = self.resources.entry(name.to_string()).or_default();
            resource.last_refused = Some(refused.clone());
        }
    }

    pub(super) fn into_refusals(self) -> (String, BTreeMap<Name, Refused>) {
        let resources = self.resources.into_iter();
        let refusals = resources
            .filter_map(|(name, resource)| Some((Name::from(name), resource.last_refused?)))
            .collect();
        (self.id, refusals)
    }
}

/// Whole seconds: people read it.
fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

//! What status pages and metrics show of a connected proxy.

use std::collections::BTreeMap;

use serde::Serialize;

use super::origin::StreamOrigin;
use crate::policy::ProxyNode;
use crate::render::Rendered;
use crate::xds::{Desired, Name, Rejection, ResourceVersion};

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
    /// The peer at the other end.
    pub peer: String,
    /// When it connected.
    pub connected_at: String,
    /// The policy that it should run; `None`: no policy matches.
    pub policy: Option<String>,
    /// Policies that match as well but lost, best match first.
    pub overruled: Vec<String>,
    /// The resources it has requested, by name.
    pub resources: BTreeMap<String, ResourceRecord>,
}

/// One resource of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRecord {
    /// The version that it should run.
    pub wanted: Option<String>,
    /// The version that it reports.
    pub running: Option<String>,
    /// Whether a push of it has not been answered yet.
    pub is_under_way: bool,
    /// What it rejected last.
    pub last_rejected: Option<LastRejection>,
}

impl ResourceRecord {
    fn is_current(&self) -> bool {
        self.wanted == self.running
    }

    fn is_rejected(&self) -> bool {
        let rejected = self.last_rejected.as_ref().map(|last| &last.version);
        !self.is_current() && rejected.is_some() && rejected == self.wanted.as_ref()
    }
}

/// A rejection by a proxy (NACK).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRejection {
    /// The rejected version.
    pub version: String,
    /// The proxy's gRPC status code.
    pub code: i32,
    /// The proxy's message.
    pub message: String,
    /// When it was received.
    pub at: String,
}

impl ProxyRecord {
    /// How many resources run the wanted version, do not run it yet, or have rejected it.
    #[must_use]
    pub fn states(proxies: &[Self]) -> [(&'static str, usize); 3] {
        let resources = || proxies.iter().flat_map(|proxy| proxy.resources.values());
        let all = resources().count();
        let current = resources().filter(|one| one.is_current()).count();
        let rejected = resources().filter(|one| one.is_rejected()).count();
        let behind = all.saturating_sub(current).saturating_sub(rejected);
        [
            ("current", current),
            ("behind", behind),
            ("rejected", rejected),
        ]
    }

    /// Whether the proxy has acknowledged the wanted version of all its resources.
    pub(super) fn is_current(&self) -> bool {
        !self.resources.is_empty() && self.resources.values().all(ResourceRecord::is_current)
    }

    /// Whether the proxy has acknowledged the wanted version of a resource.
    pub(super) fn runs_wanted(&self) -> bool {
        let mut resources = self.resources.values();
        resources.any(|resource| resource.wanted.is_some() && resource.is_current())
    }

    /// What the proxy says of the wanted version that it rejects; `None`: it rejects none.
    pub(super) fn rejection(&self) -> Option<&str> {
        let mut resources = self.resources.values();
        let rejected = resources.find(|resource| resource.is_rejected())?;
        Some(rejected.last_rejected.as_ref()?.message.as_str())
    }

    pub(super) fn new(proxy: &ProxyNode, origin: &StreamOrigin) -> Self {
        Self {
            id: proxy.id.clone(),
            cluster: proxy.cluster.clone(),
            api: origin.api.name(),
            dialect: origin.dialect,
            peer: origin.peer.clone(),
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

    /// Sets what the proxy should run from now on.
    pub(super) fn want(&mut self, desired: &Desired) {
        for (name, resource) in &mut self.resources {
            resource.wanted = desired.resource(name).map(|r| r.version.to_string());
        }
    }

    /// Updates the record from the subscription.
    pub(super) fn note<'a>(
        &mut self,
        desired: &Desired,
        is_wanted: impl Fn(&str) -> bool,
        running: impl Fn(&str) -> Option<&'a ResourceVersion>,
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

    pub(super) fn set_under_way(&mut self, names: impl Iterator<Item = Name>, is_under_way: bool) {
        for name in names {
            if let Some(resource) = self.resources.get_mut(&*name) {
                resource.is_under_way = is_under_way;
            }
        }
    }

    pub(super) fn reject(
        &mut self,
        versions: &[(Name, Option<ResourceVersion>)],
        rejection: &Rejection,
    ) {
        for (name, version) in versions {
            if let Some(resource) = self.resources.get_mut(&**name) {
                resource.last_rejected = Some(LastRejection {
                    version: version
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    code: rejection.code,
                    message: rejection.message.clone(),
                    at: now(),
                });
            }
        }
    }

    /// Takes over what an earlier stream of the proxy rejected.
    pub(super) fn remember(&mut self, rejections: &BTreeMap<Name, LastRejection>) {
        for (name, rejection) in rejections {
            let resource = self.resources.entry(name.to_string()).or_default();
            resource.last_rejected = Some(rejection.clone());
        }
    }

    pub(super) fn into_rejections(self) -> (String, BTreeMap<Name, LastRejection>) {
        let resources = self.resources.into_iter();
        let rejections = resources
            .filter_map(|(name, resource)| Some((Name::from(name), resource.last_rejected?)))
            .collect();
        (self.id, rejections)
    }
}

/// The time in whole seconds, which are easier to read.
fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

//! Watches Istio's `DestinationRule`s while the API server has them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, pending};
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::Event;
use kube::{Client, Error};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{DeclaredRule, constrained};
use crate::event::EventSink;
use crate::kube::client::error::describe;
use crate::kube::event::{DISCOVERY, KubeEvent};
use crate::kube::settings::Scope;
use crate::kube::shared::SharedState;
use crate::kube::view::{PoolComparison, PoolFindings};
use crate::kube::watch::{DISCOVERY_BOUND, NOT_FOUND, WatchEvents, events_of, watch_failed};
use crate::source::Catalog;

/// The plural name in the API's path.
pub const RESOURCE: &str = "destinationrules";
const GROUP: &str = "networking.istio.io";
/// The versions that Istio serves, the newest first.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha3"];

/// The task; see the module.
pub(in crate::kube) struct PoolWatch {
    pub(in crate::kube) client: Client,
    pub(in crate::kube) scope: Scope,
    pub(in crate::kube) catalog: Catalog,
    pub(in crate::kube) shared: SharedState,
    pub(in crate::kube) events: EventSink<KubeEvent>,
    pub(in crate::kube) closing: CancellationToken,
}

/// The rules that the watch has reported.
#[derive(Debug, Default)]
struct KnownRules {
    /// Those with bounds, by namespace and name.
    rules: Arc<BTreeMap<(String, String), DeclaredRule>>,
    /// Whether the list is complete.
    is_listed: bool,
    /// Entries of a list that is not complete.
    gathering: Vec<DynamicObject>,
}

impl PoolWatch {
    /// Watches until told to stop. Checks at intervals of `every` whether the API server has the rules.
    pub(in crate::kube) async fn run(self, every: Duration) {
        let mut checks = tokio::time::interval(every);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut policies = self.shared.revisions();
        let mut served = None;
        let mut events: BoxStream<'static, WatchEvents> = pending().boxed();
        let mut known = KnownRules::default();
        let (mut compared, mut is_broken) = (None, false);
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return,
                _ = checks.tick() => {
                    let found = self.discover().await;
                    if let Some(found) = found.filter(|found| served != Some(*found)) {
                        served = Some(found);
                        (known, compared) = (KnownRules::default(), None);
                        events = self.follow(found);
                        self.take(if found.is_some() { PoolFindings::Unknown } else { PoolFindings::Off });
                    }
                }
                batch = events.next() => match batch {
                    Some(batch) => {
                        if self.hear(batch, &mut known, &mut is_broken) {
                            compared = None;
                        }
                    }
                    None => events = pending().boxed(),
                },
                _ = policies.changed() => {}
            }
            policies.mark_unchanged();
            let revision = self.catalog.revision();
            if known.is_listed && compared != Some(revision) {
                compared = Some(revision);
                self.compare(Arc::clone(&known.rules)).await;
            }
        }
    }

    /// The version that the API server has. Inner `None`: it has none; outer `None`: it did not answer.
    async fn discover(&self) -> Option<Option<&'static str>> {
        for version in VERSIONS {
            let name = format!("{GROUP}/{version}");
            let asked = self.client.list_api_group_resources(&name);
            match tokio::time::timeout(DISCOVERY_BOUND, asked).await {
                Ok(Ok(list)) if list.resources.iter().any(|one| one.name == RESOURCE) => {
                    return Some(Some(version));
                }
                Ok(Ok(_)) => {}
                Ok(Err(Error::Api(status))) if status.code == NOT_FOUND => {}
                Ok(Err(error)) => {
                    self.events.send(KubeEvent::WatchFailed(DISCOVERY));
                    debug!(error = describe(&error), "cannot look for {RESOURCE}");
                    return None;
                }
                Err(_) => {
                    self.events.send(KubeEvent::WatchFailed(DISCOVERY));
                    return None;
                }
            }
        }
        Some(None)
    }

    fn follow(&self, version: Option<&str>) -> BoxStream<'static, WatchEvents> {
        let Some(version) = version else {
            return pending().boxed();
        };
        let kind = GroupVersionKind::gvk(GROUP, version, "DestinationRule");
        let resource = ApiResource::from_gvk_with_plural(&kind, RESOURCE);
        let client = self.client.clone();
        let api: Api<DynamicObject> = match &self.scope {
            Scope::Cluster => Api::all_with(client, &resource),
            Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, &resource),
        };
        events_of(api).boxed()
    }

    /// Applies a batch of watch events. Returns whether a bound has changed.
    fn hear(&self, batch: WatchEvents, known: &mut KnownRules, is_broken: &mut bool) -> bool {
        let mut has_news = false;
        for event in batch {
            match event {
                Ok(event) => {
                    *is_broken = false;
                    has_news |= known.take(event);
                }
                Err(error) => {
                    known.gathering.clear();
                    self.events.send(KubeEvent::WatchFailed(RESOURCE));
                    watch_failed(RESOURCE, &error, is_broken);
                }
            }
        }
        has_news
    }

    async fn compare(&self, rules: Arc<BTreeMap<(String, String), DeclaredRule>>) {
        let policies = self.catalog.policies();
        // With thousands of policies and rules this may take seconds.
        let compared = tokio::task::spawn_blocking(move || {
            let compared = policies.iter().map(|policy| {
                let comparison = PoolComparison {
                    policy: Arc::clone(policy),
                    found: constrained(policy, rules.values()),
                };
                (policy.name().clone(), comparison)
            });
            compared.collect()
        });
        if let Ok(compared) = compared.await {
            self.take(PoolFindings::Known(Arc::new(compared)));
        }
    }

    fn take(&self, found: PoolFindings) {
        let mut view = self.shared.lock();
        if view.pools != found {
            view.pools = found;
            drop(view);
            self.shared.touch();
        }
    }
}

impl KnownRules {
    /// Applies an event. Returns whether a bound has changed, or the list is complete for the first time.
    fn take(&mut self, event: Event<DynamicObject>) -> bool {
        match event {
            Event::Init => false,
            Event::InitApply(object) => {
                self.gathering.push(object);
                false
            }
            Event::InitDone => {
                let all = std::mem::take(&mut self.gathering);
                let all = all
                    .iter()
                    .filter_map(|object| Some((key_of(object)?, DeclaredRule::of(object)?)));
                let rules = Arc::new(all.collect());
                let is_first = !std::mem::replace(&mut self.is_listed, true);
                std::mem::replace(&mut self.rules, rules) != self.rules || is_first
            }
            Event::Apply(object) => {
                let rule = DeclaredRule::of(&object);
                key_of(&object).is_some_and(|key| self.set(key, rule))
            }
            Event::Delete(object) => key_of(&object).is_some_and(|key| self.set(key, None)),
        }
    }

    /// Replaces or removes a rule. Returns whether this changes a bound.
    fn set(&mut self, key: (String, String), rule: Option<DeclaredRule>) -> bool {
        if self.rules.get(&key) == rule.as_ref() {
            return false;
        }
        let rules = Arc::make_mut(&mut self.rules);
        match rule {
            Some(rule) => rules.insert(key, rule),
            None => rules.remove(&key),
        };
        true
    }
}

fn key_of(object: &DynamicObject) -> Option<(String, String)> {
    let metadata = &object.metadata;
    Some((metadata.namespace.clone()?, metadata.name.clone()?))
}

//! Watches the API server and keeps the view of the cluster up to date.
//!
//! kube does the watching itself, with lists and resumptions; only the waits
//! after errors are [ours](super::client::backoff). A failed watch changes
//! nothing: what was known stays. The service checks regularly which of Istio's
//! APIs the server has, because an upgrade of Istio may add or remove one while
//! the service runs.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::iter;
use futures_util::{Stream, StreamExt as _};
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Error};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::client::backoff::backoff;
use super::client::error::{describe, is_unanswered, is_watch_unanswered};
use super::event::{DISCOVERY, KubeEvent};
use super::istio::{GROUP, IstioApi, ServedApis, VERSION};
use super::settings::{ProxyNamespaces, Scope};
use super::shared::SharedState;
use super::view::Listing;
use crate::event::EventSink;
use crate::resource::BreakerPolicy;
use crate::source::Catalog;

/// Most changes that are processed together.
const MAX_BATCH: usize = 512;

/// Longest time that the server may keep a watch open, in seconds. It bounds how long a lost connection goes unnoticed.
const WATCH_SECONDS: u32 = 120;

/// Longest time that discovery may take.
pub(super) const DISCOVERY_BOUND: Duration = Duration::from_secs(10);

/// Status of a server that does not have the API group.
pub(super) const NOT_FOUND: u16 = 404;

/// Status of a server that no longer has the version to resume from, as after each of its restarts: everything is
/// listed again.
const GONE: u16 = 410;

/// The watches; cheap to clone.
#[derive(Clone)]
pub(super) struct ClusterWatch {
    pub(super) client: Client,
    pub(super) scope: Scope,
    pub(super) proxies: ProxyNamespaces,
    pub(super) shared: SharedState,
    pub(super) catalog: Catalog,
    pub(super) events: EventSink<KubeEvent>,
    pub(super) closing: CancellationToken,
}

impl ClusterWatch {
    /// Watches the policies until told to stop, and puts them in force for this service's own proxies.
    pub(super) async fn policies(self) {
        let resource = ApiResource::erase::<BreakerPolicy>(&());
        let closing = self.closing.clone();
        self.follow(Listing::Policies, &resource, closing).await;
    }

    /// Watches Istio's objects of all APIs that the server has, until told to stop. Checks which APIs those are at
    /// intervals of `every`, and earlier after a failed check.
    pub(super) async fn objects(self, every: Duration) {
        let mut checks = tokio::time::interval(every);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waits = backoff();
        let mut is_broken = false;
        let mut known = None;
        let mut watches: BTreeMap<IstioApi, CancellationToken> = BTreeMap::new();
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return,
                _ = checks.tick() => {}
            }
            let Some(served) = self.discover(&mut is_broken).await else {
                checks.reset_after(waits.next().unwrap_or(every).min(every));
                continue;
            };
            waits.reset();
            if known.replace(served) == Some(served) {
                continue;
            }
            let (new, old) = (served.traffic_extension, served.wasm_plugin);
            info!(traffic_extension = new, wasm_plugin = old, "Istio's APIs");
            watches.retain(|api, watch| {
                if !served.has(*api) {
                    watch.cancel();
                }
                served.has(*api)
            });
            self.shared.lock().discover(served);
            self.shared.touch();
            for api in IstioApi::ALL.into_iter().filter(|f| served.has(*f)) {
                watches.entry(api).or_insert_with(|| self.start(api));
            }
        }
    }

    /// Starts a watch; canceling the returned token ends it.
    fn start(&self, api: IstioApi) -> CancellationToken {
        let (watch, end) = (self.clone(), self.closing.child_token());
        let ended = end.clone();
        tokio::spawn(async move {
            let listing = Listing::Objects(api);
            watch.follow(listing, &api.resource(), ended).await;
        });
        end
    }

    async fn discover(&self, is_broken: &mut bool) -> Option<ServedApis> {
        let version = format!("{GROUP}/{VERSION}");
        let asked = self.client.list_api_group_resources(&version);
        let found = match tokio::time::timeout(DISCOVERY_BOUND, asked).await {
            Ok(Ok(list)) => {
                let names = list.resources.iter().map(|resource| resource.name.as_str());
                Ok(ServedApis::among(names))
            }
            Ok(Err(Error::Api(status))) if status.code == NOT_FOUND => Ok(ServedApis::default()),
            Ok(Err(error)) if is_unanswered(&error) => Err(None),
            Ok(Err(error)) => Err(Some(describe(&error))),
            Err(late) => Err(Some(late.to_string())),
        };
        let trouble = match found {
            Ok(served) => {
                *is_broken = false;
                return Some(served);
            }
            Err(trouble) => trouble,
        };
        self.events.send(KubeEvent::WatchFailed(DISCOVERY));
        if let Some(error) = trouble
            && !std::mem::replace(is_broken, true)
        {
            warn!(
                error,
                "cannot determine which of Istio's APIs the server has"
            );
        }
        None
    }

    async fn follow(&self, listing: Listing, resource: &ApiResource, end: CancellationToken) {
        let client = self.client.clone();
        let api: Api<DynamicObject> = match &self.scope {
            Scope::Cluster => Api::all_with(client, resource),
            Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, resource),
        };
        let mut events = pin!(events_of(api));
        let mut gathering = Vec::new();
        let mut is_broken = false;
        loop {
            let batch = tokio::select! {
                () = end.cancelled() => return,
                batch = events.next() => batch,
            };
            let Some(batch) = batch else { return };
            let mut has_news = false;
            for event in batch {
                match event {
                    Ok(event) => {
                        is_broken = false;
                        has_news |= self.take(listing, event, &mut gathering);
                    }
                    Err(error) => {
                        gathering.clear();
                        self.failed(listing, &error, &mut is_broken);
                    }
                }
            }
            if has_news {
                let gathered = self.shared.lock().gathered(&self.proxies);
                self.catalog.set_cluster(gathered);
            }
            self.shared.touch();
        }
    }

    /// Reports a failed watch. Logs it once until the watch works again, and not at all if the server does not answer.
    fn failed(&self, listing: Listing, error: &watcher::Error, is_broken: &mut bool) {
        self.events.send(KubeEvent::WatchFailed(listing.name()));
        watch_failed(listing.name(), error, is_broken);
    }

    /// Processes an event. Returns whether it changes the policies in force.
    fn take(
        &self,
        listing: Listing,
        event: Event<DynamicObject>,
        gathering: &mut Vec<DynamicObject>,
    ) -> bool {
        let mut view = self.shared.lock();
        match (event, listing) {
            (Event::Init, _) => false,
            (Event::InitApply(object), _) => {
                gathering.push(object);
                false
            }
            (Event::InitDone, Listing::Policies) => {
                let is_first = !view.listed.contains(&listing);
                view.see_all_policies(&std::mem::take(gathering)) || is_first
            }
            (Event::Apply(object), Listing::Policies) => view.see_policy(&object),
            (Event::Delete(object), Listing::Policies) => view.forget_policy(&object),
            (Event::InitDone, Listing::Objects(api)) => {
                view.see_all_objects(&std::mem::take(gathering), api);
                false
            }
            (Event::Apply(object), Listing::Objects(api)) => {
                view.see_object(&object, api);
                false
            }
            (Event::Delete(object), Listing::Objects(api)) => {
                view.forget_object(&object, api);
                false
            }
        }
    }
}

/// The events that a watch reports together.
pub(super) type WatchEvents = Vec<watcher::Result<Event<DynamicObject>>>;

/// The events of a watch, with waits after errors.
pub(super) fn events_of(api: Api<DynamicObject>) -> impl Stream<Item = WatchEvents> + Send + use<> {
    let config = watcher::Config::default().timeout(WATCH_SECONDS);
    // The start of a list does not show that the server answers; it would reset the backoff too early.
    let events = watcher(api, config).filter(|event| {
        let begins = matches!(event, Ok(Event::Init));
        std::future::ready(!begins)
    });
    // A server that no longer has the version to resume from does answer: reset the backoff.
    let events = events.flat_map(|event| {
        let is_sign = event.as_ref().is_err_and(is_gone);
        let sign = is_sign.then_some(Ok(Event::Init));
        iter(sign.into_iter().chain([event]))
    });
    events.backoff(backoff()).ready_chunks(MAX_BATCH)
}

/// Logs a failed watch once until the watch works again, and not at all if the server does not answer.
pub(super) fn watch_failed(resource: &str, error: &watcher::Error, is_broken: &mut bool) {
    let text = describe(error);
    let is_usual = is_watch_unanswered(error) || is_gone(error);
    if is_usual || std::mem::replace(is_broken, true) {
        debug!(resource, error = text, "a watch failed");
    } else {
        warn!(
            resource,
            error = text,
            "a watch failed; the known objects remain in force"
        );
    }
}

fn is_gone(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == GONE)
}

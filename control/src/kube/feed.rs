//! Watches the API server and keeps the world up to date.
//!
//! The watching itself, with its lists and resumptions, is kube's; how long is
//! waited after errors is [ours](super::pauses). A watch that fails changes nothing here: what was known stays. Which
//! of Istio's APIs there are is asked again and again, because an upgrade of
//! Istio adds one or takes one away while this service runs.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Error};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::cause::{is_unanswered, is_watch_unanswered, words};
use super::counts::{Counts, DISCOVERY};
use super::flavour::{Flavour, GROUP, Served, VERSION};
use super::pauses::pauses;
use super::settings::{ProxyNamespaces, Scope};
use super::shared::Shared;
use super::world::Listing;
use crate::resource::BreakerPolicy;
use crate::source::Catalogue;

/// Changes that are taken together if they are there together.
const MAX_BATCH: usize = 512;

/// Longest time that the server may hold a watch open, in seconds; one that has gone without a word is noticed by then.
const WATCH_SECONDS: u32 = 120;

/// Longest time that discovery may take.
const DISCOVERY_BOUND: Duration = Duration::from_secs(10);

/// Answer of a server that has no such group of APIs.
const NOT_FOUND: u16 = 404;

/// Answer of a server that no longer knows what has happened since: everything is listed anew. So it is after each of its
/// own restarts.
const GONE: u16 = 410;

/// Watches.
#[derive(Clone)]
pub(super) struct Feed {
    pub(super) client: Client,
    pub(super) scope: Scope,
    pub(super) proxies: ProxyNamespaces,
    pub(super) shared: Shared,
    pub(super) catalogue: Catalogue,
    pub(super) counts: Counts,
    pub(super) closing: CancellationToken,
}

impl Feed {
    /// Follows the policies until told to stop, and puts them in force for this service's own proxies.
    pub(super) async fn policies(self) {
        let resource = ApiResource::erase::<BreakerPolicy>(&());
        let closing = self.closing.clone();
        self.follow(Listing::Policies, &resource, closing).await;
    }

    /// Follows Istio's objects of whichever APIs there are until told to stop; these are asked for `every` so often, and
    /// sooner after an attempt that failed.
    pub(super) async fn objects(self, every: Duration) {
        let mut looks = tokio::time::interval(every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pauses = pauses();
        let mut is_broken = false;
        let mut known = None;
        let mut watches: BTreeMap<Flavour, CancellationToken> = BTreeMap::new();
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return,
                _ = looks.tick() => {}
            }
            let Some(served) = self.discover(&mut is_broken).await else {
                looks.reset_after(pauses.next().unwrap_or(every).min(every));
                continue;
            };
            pauses.reset();
            if known.replace(served) == Some(served) {
                continue;
            }
            let (new, old) = (served.traffic_extension, served.wasm_plugin);
            info!(traffic_extension = new, wasm_plugin = old, "Istio's APIs");
            watches.retain(|flavour, watch| {
                if !served.has(*flavour) {
                    watch.cancel();
                }
                served.has(*flavour)
            });
            self.shared.lock().discover(served);
            self.shared.touch();
            for flavour in Flavour::ALL.into_iter().filter(|f| served.has(*f)) {
                watches
                    .entry(flavour)
                    .or_insert_with(|| self.start(flavour));
            }
        }
    }

    /// Starts a watch that the returned token ends.
    fn start(&self, flavour: Flavour) -> CancellationToken {
        let (feed, end) = (self.clone(), self.closing.child_token());
        let ended = end.clone();
        tokio::spawn(async move {
            let listing = Listing::Objects(flavour);
            feed.follow(listing, &flavour.resource(), ended).await;
        });
        end
    }

    async fn discover(&self, is_broken: &mut bool) -> Option<Served> {
        let version = format!("{GROUP}/{VERSION}");
        let asked = self.client.list_api_group_resources(&version);
        let found = match tokio::time::timeout(DISCOVERY_BOUND, asked).await {
            Ok(Ok(list)) => {
                let names = list.resources.iter().map(|resource| resource.name.as_str());
                Ok(Served::among(names))
            }
            Ok(Err(Error::Api(status))) if status.code == NOT_FOUND => Ok(Served::default()),
            Ok(Err(error)) if is_unanswered(&error) => Err(None),
            Ok(Err(error)) => Err(Some(words(&error))),
            Err(late) => Err(Some(late.to_string())),
        };
        let trouble = match found {
            Ok(served) => {
                *is_broken = false;
                return Some(served);
            }
            Err(trouble) => trouble,
        };
        self.counts.watch_error(DISCOVERY);
        if let Some(error) = trouble
            && !std::mem::replace(is_broken, true)
        {
            warn!(error, "cannot tell which of Istio's APIs the server has");
        }
        None
    }

    async fn follow(&self, listing: Listing, resource: &ApiResource, end: CancellationToken) {
        let client = self.client.clone();
        let api: Api<DynamicObject> = match &self.scope {
            Scope::Cluster => Api::all_with(client, resource),
            Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, resource),
        };
        let config = watcher::Config::default().timeout(WATCH_SECONDS);
        // That a list begins is no sign that the server is there; it would end the wait after an error.
        let events = watcher(api, config).filter(|event| {
            let begins = matches!(event, Ok(Event::Init));
            std::future::ready(!begins)
        });
        // A server that has come back and forgotten where the watch was is there: what it had grown to wait is over.
        let events = events.flat_map(|event| {
            let is_sign = event.as_ref().is_err_and(is_gone);
            let sign = is_sign.then_some(Ok(Event::Init));
            iter(sign.into_iter().chain([event]))
        });
        let events = events.backoff(pauses());
        let mut events = pin!(events.ready_chunks(MAX_BATCH));
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
                self.catalogue.set_cluster(gathered);
            }
            self.shared.touch();
        }
    }

    /// Counts a watch that failed, and tells of it once until it works, and unless nobody answers anybody.
    fn failed(&self, listing: Listing, error: &watcher::Error, is_broken: &mut bool) {
        self.counts.watch_error(listing.name());
        let (resource, said) = (listing.name(), words(error));
        let is_usual = is_watch_unanswered(error) || is_gone(error);
        if is_usual || std::mem::replace(is_broken, true) {
            debug!(resource, error = said, "a watch failed");
        } else {
            warn!(
                resource,
                error = said,
                "a watch failed; what is known stays"
            );
        }
    }

    /// Takes an event in. Returns whether it changes what is in force.
    fn take(
        &self,
        listing: Listing,
        event: Event<DynamicObject>,
        gathering: &mut Vec<DynamicObject>,
    ) -> bool {
        let mut world = self.shared.lock();
        match (event, listing) {
            (Event::Init, _) => false,
            (Event::InitApply(object), _) => {
                gathering.push(object);
                false
            }
            (Event::InitDone, Listing::Policies) => {
                let is_first = !world.listed.contains(&listing);
                world.see_all_policies(&std::mem::take(gathering)) || is_first
            }
            (Event::Apply(object), Listing::Policies) => world.see_policy(&object),
            (Event::Delete(object), Listing::Policies) => world.forget_policy(&object),
            (Event::InitDone, Listing::Objects(flavour)) => {
                world.see_all_objects(&std::mem::take(gathering), flavour);
                false
            }
            (Event::Apply(object), Listing::Objects(flavour)) => {
                world.see_object(&object, flavour);
                false
            }
            (Event::Delete(object), Listing::Objects(flavour)) => {
                world.forget_object(&object, flavour);
                false
            }
        }
    }
}

fn is_gone(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == GONE)
}

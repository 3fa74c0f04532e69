//! Watches the API server and keeps the world up to date.
//!
//! The watching itself, with its lists, resumptions and waits after errors, is
//! kube's. A watch that fails changes nothing here: what was known stays. Which
//! of Istio's APIs there are is asked again and again, because an upgrade of
//! Istio adds one or takes one away while this service runs.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::Api;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Error};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::cause::words;
use super::counts::{Counts, DISCOVERY};
use super::flavour::{Flavour, GROUP, Served, VERSION};
use super::settings::Scope;
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

/// Watches.
#[derive(Clone)]
pub(super) struct Feed {
    pub(super) client: Client,
    pub(super) scope: Scope,
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

    /// Follows Istio's objects of whichever APIs there are until told to stop; these are asked for `every` so often.
    pub(super) async fn objects(self, every: Duration) {
        let mut looks = tokio::time::interval(every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = None;
        let mut watches: BTreeMap<Flavour, CancellationToken> = BTreeMap::new();
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return,
                _ = looks.tick() => {}
            }
            let Some(served) = self.discover().await.filter(|s| known != Some(*s)) else {
                continue;
            };
            known = Some(served);
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

    async fn discover(&self) -> Option<Served> {
        let version = format!("{GROUP}/{VERSION}");
        let asked = self.client.list_api_group_resources(&version);
        let error = match tokio::time::timeout(DISCOVERY_BOUND, asked).await {
            Ok(Ok(list)) => {
                let names = list.resources.iter().map(|resource| resource.name.as_str());
                return Some(Served::among(names));
            }
            Ok(Err(Error::Api(status))) if status.code == NOT_FOUND => {
                return Some(Served::default());
            }
            Ok(Err(error)) => words(&error),
            Err(late) => late.to_string(),
        };
        self.counts.watch_error(DISCOVERY);
        warn!(error, "cannot tell which of Istio's APIs the server has");
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
        let events = events.default_backoff();
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
                        self.counts.watch_error(listing.name());
                        if !std::mem::replace(&mut is_broken, true) {
                            let resource = listing.name();
                            let error = words(&error);
                            warn!(resource, error, "a watch failed; what is known stays");
                        }
                    }
                }
            }
            if has_news {
                let gathered = self.shared.lock().gathered();
                self.catalogue.set_cluster(gathered);
            }
            self.shared.touch();
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

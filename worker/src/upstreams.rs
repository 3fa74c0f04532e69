//! The upstreams of one VM, and what the filter keeps for each in the proxy.
//!
//! The engine gives every upstream a handle, and at the cap passes the handle on to another upstream. An entry is for one
//! upstream. When a handle is first used for another upstream, a new entry replaces the old one, with its metrics' handles
//! and the time of the last read. Nothing else is kept by handle.
//!
//! An entry is made only when it is decided whether the upstream may have names of its own ([`NamedUpstreams`], which
//! outlive an upstream as Envoy's metrics do).

use std::sync::Arc;

use core::time::Duration;

use tidegate_core::{BreakerPhase, Engine, Instant, UpstreamId, UpstreamKey};

use crate::api::Host;
use crate::gauges::Gauges;
use crate::metrics::series::Series;
use crate::names::{NamedUpstreams, Permission};
use crate::proxy::Proxy;

/// How often the number of an upstream's endpoints is read: it changes with deployments, and reading it is expensive.
const ENDPOINTS_EVERY: Duration = Duration::from_secs(1);

/// All upstreams, by handle.
#[derive(Debug)]
pub struct Upstreams {
    entries: Vec<EntryPlace>,
    names: NamedUpstreams,
    kind: StateKind,
}

/// The place of an upstream.
#[derive(Debug, Default)]
struct EntryPlace {
    /// Whether its gauge of grants can hold anything: grants have been made at some time, or the gauge is defined. Beside the
    /// entry, because a leader asks in each round.
    counts_grants: bool,
    entry: Option<Box<UpstreamEntry>>,
}

/// Which kind of state it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StateKind {
    /// That of an upstream, which all workers share.
    #[default]
    Upstream,
    /// That of a [destination](crate::destinations), which this worker keeps for itself.
    Destination,
}

/// One upstream.
#[derive(Debug)]
pub struct UpstreamEntry {
    /// Its name, the same copy as the engine's: that of another upstream or destination is another one.
    pub(crate) key: Arc<UpstreamKey>,
    /// Whose names its metrics have.
    pub(crate) names: Permission,
    pub(crate) gauges: Gauges,
    series: Series,
    endpoints_read: Option<Instant>,
}

impl Upstreams {
    /// No upstreams yet; `names` decides which of them may have names.
    #[must_use]
    pub const fn new(names: NamedUpstreams) -> Self {
        Self {
            entries: Vec::new(),
            names,
            kind: StateKind::Upstream,
        }
    }

    /// No destinations yet, which have the names of their clusters.
    pub(crate) fn for_destinations(&self) -> Self {
        Self {
            entries: Vec::new(),
            names: self.names.clone(),
            kind: StateKind::Destination,
        }
    }

    /// Another configuration is in force, which may allow more upstreams.
    pub const fn reconsider(&mut self) {
        self.names.reconsider();
    }

    /// The entry of an upstream, made if the upstream is new; `None` while it is not decided whether it may have names.
    #[inline]
    pub fn introduce<H: Host>(
        &mut self,
        engine: &Engine,
        id: UpstreamId,
        proxy: &Proxy<H>,
    ) -> Option<&mut UpstreamEntry> {
        if !self.knows(id, engine.key(id)) {
            self.make(engine, id, proxy)?;
        }
        self.entry(id)
    }

    /// Makes the entry of a new upstream; `None` as in [`Upstreams::introduce`].
    #[cold]
    fn make<H: Host>(&mut self, engine: &Engine, id: UpstreamId, proxy: &Proxy<H>) -> Option<()> {
        let cap = usize::try_from(engine.config().max_upstreams()).unwrap_or(usize::MAX);
        // One more, because the shared state of all upstreams beyond the cap has a name too.
        let cap = cap.saturating_add(1);
        let (key, hash) = (engine.key(id), engine.hash(id));
        let name = match self.kind {
            StateKind::Upstream => hash,
            StateKind::Destination => UpstreamKey::hash(&key.cluster, key.route.as_deref()),
        };
        let names = self.names.permit(&proxy.host, &proxy.faults, name, cap);
        if names == Permission::Undecided {
            return None;
        }
        let gauges = match self.kind {
            StateKind::Upstream => names,
            // A gauge that several destinations shared would be that of none.
            StateKind::Destination => Permission::Shared,
        };
        let entry = UpstreamEntry {
            key: Arc::clone(key),
            names,
            gauges: Gauges::of(gauges),
            series: Series::default(),
            endpoints_read: None,
        };
        self.insert(id, entry, engine.has_grants(id));
        Some(())
    }

    /// The entry of a handle.
    #[inline]
    pub(crate) fn entry(&mut self, id: UpstreamId) -> Option<&mut UpstreamEntry> {
        self.entries.get_mut(id.index())?.entry.as_deref_mut()
    }

    /// Whether the gauge of probes of an upstream can hold anything; `None` without an entry.
    pub(crate) fn counts_grants(&self, id: UpstreamId) -> Option<bool> {
        let place = self.entries.get(id.index())?;
        place.entry.is_some().then_some(place.counts_grants)
    }

    /// The breaker of an upstream has opened at some time, so that its probes count.
    pub fn expect_grants(&mut self, id: UpstreamId) {
        if let Some(place) = self.entries.get_mut(id.index()) {
            place.counts_grants = true;
        }
    }

    /// Publishes the growth of the counts of every upstream in use.
    pub fn publish_counts<H: Host>(&mut self, engine: &Engine, proxy: &Proxy<H>, now: Instant) {
        for view in engine.views_in_use(now) {
            if let Some(entry) = self.introduce_used(engine, view.id, proxy) {
                entry.series.add(&view, entry.names, proxy);
            }
        }
    }

    /// Leads: publishes the state of every upstream, where it changed.
    pub fn publish_state<H: Host>(&mut self, engine: &Engine, proxy: &Proxy<H>, now: Instant) {
        for (view, under_way) in engine.views_to_show(now) {
            let Some(entry) = self.introduce_used(engine, view.id, proxy) else {
                continue;
            };
            let open = under_way.unwrap_or_default().open;
            // Upstreams that share names would overwrite each other's gauges.
            if entry.names == Permission::Own {
                entry.series.record(&view, open, proxy);
            }
            if open == 0 && view.breaker == BreakerPhase::Closed {
                engine.mark_shown(view.id);
            }
        }
    }

    /// Like [`Upstreams::introduce`], but skips the shared state of all upstreams beyond the cap until it is used.
    fn introduce_used<H: Host>(
        &mut self,
        engine: &Engine,
        id: UpstreamId,
        proxy: &Proxy<H>,
    ) -> Option<&mut UpstreamEntry> {
        let is_used = id != UpstreamId::OVERFLOW || engine.overflowed() > 0;
        if is_used {
            self.introduce(engine, id, proxy)
        } else {
            self.entry(id)
        }
    }

    /// This worker leads from now on: another leader may have overwritten the gauges that it recorded before.
    pub fn take_over(&mut self) {
        let entries = self.entries.iter_mut();
        for entry in entries.filter_map(|place| place.entry.as_mut()) {
            entry.series.take_over();
        }
    }

    fn knows(&self, id: UpstreamId, key: &Arc<UpstreamKey>) -> bool {
        let entry = self.entries.get(id.index());
        let entry = entry.and_then(|place| place.entry.as_deref());
        entry.is_some_and(|entry| Arc::ptr_eq(&entry.key, key))
    }

    fn insert(&mut self, id: UpstreamId, entry: UpstreamEntry, counts_grants: bool) {
        if self.entries.len() <= id.index() {
            self.entries
                .resize_with(id.index() + 1, EntryPlace::default);
        }
        if let Some(place) = self.entries.get_mut(id.index()) {
            *place = EntryPlace {
                counts_grants,
                entry: Some(Box::new(entry)),
            };
        }
    }
}

impl UpstreamEntry {
    /// Whether it is time to read the number of the upstream's endpoints; if so, it counts as read now.
    pub(crate) fn take_endpoints_due(&mut self, now: Instant) -> bool {
        let is_fresh = |at| now.saturating_since(at) < ENDPOINTS_EVERY;
        if self.endpoints_read.is_some_and(is_fresh) {
            return false;
        }
        self.endpoints_read = Some(now);
        true
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::counters::HostCounters;
    use crate::exchange::keys::Keys;
    use crate::fake::FakeHost;
    use tidegate_core::config::Config;
    use tidegate_core::{Counter, Counters as _};

    /// A VM with an engine for two upstreams at most.
    pub(crate) struct SmallVm {
        pub(crate) proxy: Proxy<FakeHost>,
        pub(crate) engine: Engine,
        pub(crate) upstreams: Upstreams,
    }

    impl SmallVm {
        pub(crate) fn new(host: &FakeHost) -> Self {
            let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"maxUpstreams":2}"#;
            let config = Config::from_json(text.as_bytes()).unwrap();
            Self {
                proxy: Proxy::new(host.clone(), "tidegate"),
                engine: Engine::of_many(config, Instant::ZERO, 1),
                upstreams: Upstreams::new(NamedUpstreams::new(&Keys::new("tidegate"))),
            }
        }

        pub(crate) fn upstream(&mut self, cluster: &str, seconds: u64) -> UpstreamId {
            let now = Instant::from_nanos(seconds * 1_000_000_000);
            let id = self.engine.upstream(cluster, None, now);
            let entry = self.upstreams.introduce(&self.engine, id, &self.proxy);
            assert!(entry.is_some());
            id
        }

        fn take_endpoints_due(&mut self, id: UpstreamId, at: Instant) -> bool {
            self.upstreams.entry(id).unwrap().take_endpoints_due(at)
        }

        pub(crate) fn counters(&mut self) -> HostCounters<'_, FakeHost> {
            HostCounters::new(&mut self.upstreams, &self.proxy)
        }
    }

    #[test]
    fn a_handle_that_passes_to_another_upstream_takes_nothing_along() {
        let mut vm = SmallVm::new(&FakeHost::default());
        let web = vm.upstream("web", 0);
        vm.upstream("other", 500);
        assert_eq!(vm.counters().raise(web, Counter::InFlight), Some(1));
        let at = Instant::from_nanos(499_000_000_000);
        assert!(vm.take_endpoints_due(web, at));
        assert!(!vm.take_endpoints_due(web, at));
        vm.upstreams.expect_grants(web);

        assert_eq!(vm.upstream("shop", 500), web, "the same handle");
        assert_eq!(vm.counters().raise(web, Counter::InFlight), Some(1));
        assert!(vm.take_endpoints_due(web, at));
        assert_eq!(vm.counters().value(web, Counter::Grants), Some(0));
        let gauge = |name: &str| {
            vm.proxy
                .host
                .metric_value(&format!("tidegate_upstream=.={name};.;tidegate_in_flight"))
        };
        assert_eq!((gauge("web"), gauge("shop")), (Some(1), Some(1)));
        assert_eq!(
            vm.proxy
                .host
                .metric_value("tidegate_upstream=.=shop;.;tidegate_grants_claimed"),
            None
        );
    }

    #[test]
    fn a_handle_without_an_entry_has_nothing() {
        let mut vm = SmallVm::new(&FakeHost::default());
        let id = vm.engine.upstream("web", None, Instant::ZERO);
        assert_eq!(vm.counters().raise(id, Counter::InFlight), None);
        vm.upstreams.expect_grants(id);
    }
}

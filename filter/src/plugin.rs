//! The state of one plugin in one VM.
//!
//! A configuration push makes a new root context in the same VM, and Envoy may run several plugins in it; the
//! state belongs to neither context, but to the plugin by its name. So it survives pushes, with requests under way
//! on the old context. A fresh VM (a crash, new code) starts from what shared data remembers.

use core::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{Engine, Event, Instant, Slice, UpstreamId, UpstreamKey};

use crate::api::{Host, LogLevel, attribute};
use crate::exchange::keys::Keys;
use crate::exchange::{Exchange, Role};
use crate::faults::{Fault, Faults};
use crate::gauges::Gauges;
use crate::identity;
use crate::metrics::exporter::{Exporter, Outlet};
use crate::metrics::name::{Naming, upstream_labels};
use crate::names::{Names, Permission};
use crate::reconcile::Reconciler;
use crate::request::{Curiosity, RequestRules};
use crate::upkeep;

/// How often windows roll and workers exchange.
pub const TICK: Duration = Duration::from_millis(100);
/// When the root context that should tick has not for so long, any may.
const SILENCE: Duration = Duration::from_millis(250);
/// How often the number of an upstream's endpoints is read: it changes with deployments, and the read is dear.
const ENDPOINTS_EVERY: Duration = Duration::from_secs(1);

/// One plugin in one VM; see the module.
#[derive(Debug)]
pub struct Plugin<H> {
    pub(crate) host: H,
    pub(crate) engine: Engine,
    pub(crate) rules: RequestRules,
    pub(crate) gauges: Gauges,
    pub(crate) naming: Naming,
    pub(crate) faults: Faults,
    pub(crate) exchange: Exchange,
    pub(crate) exporter: Exporter,
    pub(crate) reconciler: Reconciler,
    pub(crate) role: Role,
    pub(crate) curiosity: Curiosity,
    keys: Keys,
    names: Names,
    /// The root context whose ticks count: that of the newest configuration.
    root: u32,
    ticked_at: Instant,
    last_now: Instant,
    endpoints_read: Vec<Instant>,
}

impl<H: Host> Plugin<H> {
    /// The plugin that the proxy's configuration calls `name`, in a VM that does not know it yet. It starts from
    /// what other VMs have learned.
    #[must_use]
    pub fn new(host: H, name: &str, config: Config, root: u32) -> Self {
        let faults = Faults::default();
        let keys = Keys::new(name);
        let read = host.now();
        let now = faults
            .check(&host, Fault::Clock, read)
            .unwrap_or(Instant::ZERO);
        let (worker, result) = identity::worker_number(&host, &keys.serial(), now);
        faults.check(&host, Fault::SharedData, result);
        let mut plugin = Self {
            engine: Engine::of_many(config.clone(), now, worker),
            rules: RequestRules::of(&config),
            gauges: Gauges::default(),
            naming: Naming::of_plugin(name),
            faults,
            exchange: Exchange::new(keys.clone(), worker),
            exporter: Exporter::default(),
            reconciler: Reconciler::new(now),
            role: Role::Follower,
            curiosity: Curiosity::Little,
            keys,
            names: Names::default(),
            root,
            ticked_at: now,
            last_now: now,
            endpoints_read: Vec::new(),
            host,
        };
        for directives in plugin.exchange.restore(&plugin.host, &plugin.faults) {
            plugin.adopt(&directives, now);
        }
        plugin
    }

    /// Another configuration, in force from now on; what was learned stays.
    pub fn reconfigure(&mut self, config: Config, root: u32) {
        let now = self.now();
        self.rules = RequestRules::of(&config);
        self.engine.reconfigure(config, now);
        self.names.reconsider();
        self.root = root;
    }

    /// A configuration was refused.
    pub fn note_refusal(&self) {
        self.faults.note(
            &self.host,
            Fault::Configuration,
            &"a configuration was refused, the one before stays in force",
        );
    }

    /// The upkeep of every tick. A root context that has been replaced still ticks until Envoy drops it: it is not
    /// listened to, unless the newest has fallen silent (it was dropped, and an older one lives on).
    pub fn tick(&mut self, root: u32) {
        let now = self.now();
        if root != self.root && now.saturating_since(self.ticked_at) < SILENCE {
            return;
        }
        self.ticked_at = now;
        let mut counters = self.gauges.counters(&self.host, &self.naming, &self.faults);
        self.engine.tick(&mut counters, now);
        let slice = self.engine.slice(now);
        self.exchange.publish(&self.host, &self.faults, &slice);
        let before = self.role;
        self.role = self.exchange.lead(&self.host, &self.faults, now);
        if before == Role::Follower && self.role != Role::Follower {
            self.exporter.take_over();
            self.reconciler = Reconciler::new(now);
        } else if before != Role::Follower && self.role == Role::Follower {
            self.engine.resign();
        }
        let streams = match self.role {
            Role::Leader | Role::Alone => upkeep::lead(self, slice, now),
            Role::Follower => {
                if let Some(directives) = self.exchange.news(&self.host, &self.faults) {
                    self.adopt(&directives, now);
                }
                None
            }
        };
        upkeep::publish_metrics(self, streams, now);
    }

    /// The monotonic clock. When it cannot be read, time stands still.
    pub(crate) fn now(&mut self) -> Instant {
        let read = self.host.now();
        if let Some(now) = self.faults.check(&self.host, Fault::Clock, read) {
            self.last_now = now;
        }
        self.last_now
    }

    /// Follows what was decided, or learned.
    pub(crate) fn adopt(&mut self, directives: &tidegate_core::Directives, now: Instant) {
        for directive in directives.entries.iter().filter(|entry| entry.epoch != 0) {
            self.gauges.expect_probes(directive.upstream);
        }
        self.engine.adopt(directives, now);
    }

    /// The upstream of a request, with its counts ready to be used.
    pub(crate) fn upstream(
        &mut self,
        cluster: &str,
        route: Option<&str>,
        now: Instant,
    ) -> UpstreamId {
        let id = self.engine.upstream(cluster, route, now);
        let hash = self.engine.hash(id);
        if !self.gauges.knows(id, hash) {
            self.introduce(id, hash, cluster, route);
        }
        id
    }

    /// The name of the route that the request under way takes, where the configuration asks for it.
    pub(crate) fn read_route(&self) -> Option<String> {
        if !self.engine.config().needs_route() {
            return None;
        }
        let read = self.host.attribute(attribute::ROUTE);
        let route = self.faults.check(&self.host, Fault::Read, read)?;
        Some(String::from_utf8_lossy(&route.unwrap_or_default()).into_owned())
    }

    /// Reads how many endpoints stand behind the upstream of the request under way, now and then.
    pub(crate) fn read_endpoints(&mut self, id: UpstreamId, now: Instant) {
        if self.endpoints_read.len() <= id.index() {
            self.endpoints_read.resize(id.index() + 1, Instant::ZERO);
        }
        let Some(read_at) = self.endpoints_read.get_mut(id.index()) else {
            return;
        };
        if *read_at != Instant::ZERO && now.saturating_since(*read_at) < ENDPOINTS_EVERY {
            return;
        }
        *read_at = now;
        let read = self.host.attribute(attribute::ENDPOINTS);
        let endpoints = self
            .faults
            .check(&self.host, Fault::Read, read)
            .flatten()
            .and_then(|bytes| bytes.first_chunk::<8>().copied())
            .map(u64::from_le_bytes);
        if let Some(endpoints) = endpoints {
            let endpoints = u32::try_from(endpoints).unwrap_or(u32::MAX);
            self.engine.set_endpoints(id, endpoints);
        }
    }

    /// The labels under which an upstream's metrics stand, and whether they are its own.
    pub(crate) fn labels(&mut self, key: &UpstreamKey, hash: u64) -> (Permission, Box<str>) {
        let cap = usize::try_from(self.engine.config().max_upstreams()).unwrap_or(usize::MAX);
        // One more: the state that all beyond the cap share has a name too.
        let permission = self.names.permit(
            &self.host,
            &self.faults,
            &self.keys,
            hash,
            cap.saturating_add(1),
        );
        let labels = match permission {
            Permission::Own => upstream_labels(key),
            Permission::Shared | Permission::Undecided => upstream_labels(&overflow()),
        };
        (permission, labels.into())
    }

    pub(crate) fn outlet(&mut self) -> (&mut Exporter, Outlet<'_, H>) {
        let outlet = Outlet {
            host: &self.host,
            naming: &self.naming,
            faults: &self.faults,
        };
        (&mut self.exporter, outlet)
    }

    pub(crate) fn log(&mut self, level: LogLevel, line: &str) {
        // Nothing is left to do about a log that fails.
        let _ = self.host.log(level, line);
    }

    /// A handle stands for this upstream from now on.
    fn introduce(&mut self, id: UpstreamId, hash: u64, cluster: &str, route: Option<&str>) {
        let key = if id == UpstreamId::OVERFLOW {
            overflow()
        } else {
            UpstreamKey {
                cluster: cluster.to_owned(),
                route: route.map(str::to_owned),
            }
        };
        let (permission, labels) = self.labels(&key, hash);
        match permission {
            Permission::Own => self.gauges.assign(id, hash, Some(&labels)),
            Permission::Shared => self.gauges.assign(id, hash, None),
            Permission::Undecided => {}
        }
    }

    /// The slices' upstreams, with their counts ready to be used.
    pub(crate) fn introduce_all(&mut self, slices: &[Slice], now: Instant) {
        for report in slices.iter().flat_map(|slice| &slice.reports) {
            let key = &report.upstream;
            if key.cluster == tidegate_core::OVERFLOW
                && report.tally.get(tidegate_core::Count::Arrivals) == 0
            {
                // Nothing has ever been beyond the cap.
                continue;
            }
            self.upstream(&key.cluster, key.route.as_deref(), now);
            if report.trip.is_some() {
                self.gauges
                    .expect_probes(UpstreamKey::hash(&key.cluster, key.route.as_deref()));
            }
        }
    }

    pub(crate) fn key_of(&self, upstream: UpstreamId, now: Instant) -> Option<UpstreamKey> {
        self.engine
            .views(now)
            .find(|view| view.id == upstream)
            .map(|view| view.key.clone())
    }

    pub(crate) fn upstream_of(event: &Event) -> UpstreamId {
        match *event {
            Event::Tripped { upstream, .. }
            | Event::Ramping { upstream }
            | Event::Reset { upstream } => upstream,
        }
    }
}

/// What stands for all upstreams beyond the cap.
fn overflow() -> UpstreamKey {
    UpstreamKey {
        cluster: tidegate_core::OVERFLOW.to_owned(),
        route: None,
    }
}

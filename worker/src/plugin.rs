//! The state of one plugin in one VM.
//!
//! A configuration push makes a new root context in the same VM, and Envoy may run several plugins in one VM. So the state
//! belongs to the plugin, by its name, and not to a context. It survives pushes, and requests under way on the old context
//! keep using it. A fresh VM (after a crash, or with new code) starts from learned state in shared data.

mod lookup;
mod tick;

use core::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{Engine, Instant, Outcome, Permit, UpstreamId};

use crate::api::Host;
use crate::cohorts::Cohorts;
use crate::coordination::{Coordination, Seat};
use crate::counters::HostCounters;
use crate::destinations::Destinations;
use crate::exchange::keys::Keys;
use crate::faults::Fault;
use crate::identity;
use crate::metrics::exporter::Exporter;
use crate::metrics::info::Info;
use crate::names::NamedUpstreams;
use crate::proxy::Proxy;
use crate::recent::RecentClusters;
use crate::request::Requests;
use crate::ticks::Ticks;
use crate::upstreams::{StateKind, Upstreams};

/// How often windows roll and workers exchange.
pub const TICK: Duration = Duration::from_millis(100);

/// One plugin in one VM; see the module.
#[derive(Debug)]
pub struct PluginObject<H> {
    pub(crate) proxy: Proxy<H>,
    pub(crate) engine: Engine,
    pub(crate) upstreams: Upstreams,
    recent: RecentClusters,
    /// Once made, it is never dropped: requests under way hold its handles.
    destinations: Option<Box<Destinations>>,
    pub(crate) requests: Requests,
    pub(crate) coordination: Coordination,
    exporter: Exporter,
    info: Info,
    ticks: Ticks,
}

/// A request that has ended, and how.
#[derive(Debug)]
pub struct EndedRequest {
    pub(crate) permit: Permit,
    pub(crate) kind: StateKind,
    pub(crate) outcome: Outcome,
}

impl EndedRequest {
    /// Its upstream; `None` if its state is that of a destination.
    #[must_use]
    pub fn upstream(&self) -> Option<UpstreamId> {
        (self.kind == StateKind::Upstream).then(|| self.permit.upstream())
    }

    /// How it ended.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// What it was admitted with.
    pub const fn permit(&self) -> &Permit {
        &self.permit
    }
}

/// The parts of the state that a request needs.
pub(crate) struct Parts<'a, H> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) counters: HostCounters<'a, H>,
    pub(crate) requests: &'a mut Requests,
    pub(crate) proxy: &'a Proxy<H>,
}

impl<H: Host> PluginObject<H> {
    /// The plugin that the proxy's configuration calls `name`, in a VM that does not know it yet. It starts from the learned
    /// state of other VMs.
    #[must_use]
    pub fn new(host: H, name: &str, config: Config, root: u32) -> Self {
        let proxy = Proxy::new(host, name);
        let keys = Keys::new(name);
        let now = proxy.now().unwrap_or(Instant::ZERO);
        let (worker, result) = identity::worker_number(&proxy.host, &keys.serial(), now);
        proxy.check(Fault::SharedData, result);
        let mut cohorts = Cohorts::new(&keys, worker);
        cohorts.follow(&config, &proxy);
        let mut engine = Engine::of_many(config, now, worker);
        if let Some(keys) = proxy.host.keys() {
            engine.share_keys(keys);
        }
        let mut plugin = Self {
            upstreams: Upstreams::new(NamedUpstreams::new(&keys)),
            recent: RecentClusters::new(),
            destinations: None,
            requests: Requests::of(engine.config(), cohorts),
            info: Info::new(keys.info()),
            coordination: Coordination::new(keys, worker, now),
            engine,
            exporter: Exporter::default(),
            ticks: Ticks::new(root, now),
            proxy,
        };
        let Proxy { host, faults, .. } = &plugin.proxy;
        for directives in plugin.coordination.exchange.restore(host, faults) {
            // There are no upstreams yet, so no probes to expect.
            plugin.engine.adopt(&directives, now);
        }
        // Before the first request counts, so that leaders of other versions know of this worker.
        plugin
            .coordination
            .exchange
            .is_accompanied(host, faults, now);
        plugin
    }

    /// Sets how the leader is found, where the host knows it. Such a leader reads what all workers reported in each tick, and shares
    /// its memory with them alone.
    pub fn assign(&mut self, seat: Seat) {
        self.coordination.assign(seat);
        if seat != Seat::Elected {
            self.engine.expect_every_slice_read();
            self.engine.trust_directives();
        }
    }

    /// The host, to tell it which request is under way.
    #[must_use]
    pub const fn host(&self) -> &H {
        &self.proxy.host
    }

    /// Replaces the configuration. Learned state stays.
    pub fn reconfigure(&mut self, config: Config, root: u32) {
        let now = self.now();
        self.engine.reconfigure(config, now);
        self.upstreams.reconsider();
        self.recent.forget();
        if let Some(destinations) = &mut self.destinations {
            destinations.engine.reconfigure_like(&self.engine, now);
            destinations.upstreams.reconsider();
        }
        self.requests.follow(self.engine.config(), &self.proxy);
        self.ticks.listen_to(root);
    }

    /// The configuration in force has this digest, as metrics name it.
    pub const fn name_config(&mut self, digest: u64) {
        self.info.name_config(digest);
    }

    /// Completes a request.
    pub fn complete(&mut self, ended: EndedRequest) {
        let EndedRequest {
            permit,
            kind,
            outcome,
        } = ended;
        // If the latency is measured already, the time of the last callback, at most a tick ago, is good enough.
        let is_measured = outcome == Outcome::Success && permit.latency().is_some();
        let now = if is_measured {
            self.latest()
        } else {
            self.now()
        };
        let mut parts = self.parts(kind);
        let counters = &mut parts.counters;
        parts.engine.complete(permit, outcome, counters, now);
    }

    /// The engine, to look at.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The monotonic clock. While it cannot be read, time stands still.
    pub(crate) fn now(&mut self) -> Instant {
        self.ticks.now(self.proxy.now())
    }

    /// The time of the last read.
    pub(crate) const fn latest(&self) -> Instant {
        self.ticks.latest()
    }

    /// The parts of the state that a request of this kind needs.
    pub(crate) fn parts(&mut self, kind: StateKind) -> Parts<'_, H> {
        let (engine, upstreams) = match (kind, &mut self.destinations) {
            (StateKind::Destination, Some(destinations)) => {
                (&mut destinations.engine, &mut destinations.upstreams)
            }
            _ => (&mut self.engine, &mut self.upstreams),
        };
        Parts {
            engine,
            counters: HostCounters::new(upstreams, &self.proxy),
            requests: &mut self.requests,
            proxy: &self.proxy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::attribute;
    use crate::api::{Headers, MetricKind};
    use crate::exchange::Role;
    use crate::exchange::versions::Versions;
    use crate::fake::FakeHost;
    use crate::stream::Stream;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tidegate_core::classify::Length;
    use tidegate_core::{BreakerState, Directives, UpstreamKey, WIRE_VERSION};

    type SharedPlugin = Rc<RefCell<PluginObject<FakeHost>>>;

    fn config(more: &str) -> Config {
        let text = format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}}{more}}}"#);
        Config::from_json(text.as_bytes()).unwrap()
    }

    fn process() -> FakeHost {
        let host = FakeHost::default();
        host.advance(Duration::from_secs(1));
        host.set_attribute(attribute::CLUSTER, b"web");
        host
    }

    fn vm(host: &FakeHost) -> SharedPlugin {
        let plugin = PluginObject::new(host.clone(), "tidegate", config(""), 1);
        Rc::new(RefCell::new(plugin))
    }

    fn tick(host: &FakeHost, vms: &[&SharedPlugin]) {
        host.advance(TICK);
        for vm in vms {
            vm.borrow_mut().tick(1);
        }
    }

    fn fail(host: &FakeHost, vm: &SharedPlugin, times: u32) {
        host.set_header(Headers::Response, ":status", "500");
        host.set_attribute(attribute::CODE_DETAILS, b"via_upstream");
        for _ in 0..times {
            let mut stream = Stream::new(Rc::clone(vm));
            stream.on_request_headers(Length::HeadersOnly);
            stream.on_response_headers(Length::HeadersOnly);
        }
    }

    /// Failures through one VM until the breaker opens, although no success has ever come.
    fn fail_until_open(host: &FakeHost, through: &SharedPlugin, vms: &[&SharedPlugin]) {
        for _ in 0..30 {
            fail(host, through, 10);
            tick(host, vms);
            if is_open(through, host) {
                return;
            }
        }
        panic!("it is closed after three seconds of failures");
    }

    fn web(vm: &SharedPlugin) -> Option<tidegate_core::Directive> {
        let vm = vm.borrow();
        let learned = vm.engine.learned(vm.proxy.host.now().unwrap());
        let hash = UpstreamKey::hash("web", None);
        learned.entries().find(|entry| entry.upstream == hash)
    }

    fn is_open(vm: &SharedPlugin, host: &FakeHost) -> bool {
        let before = host.replies().len();
        let mut stream = Stream::new(Rc::clone(vm));
        stream.on_request_headers(Length::HeadersOnly);
        drop(stream);
        host.replies()
            .get(before)
            .is_some_and(|(_, details)| details == "tidegate_shed_breaker_open")
    }

    #[test]
    fn one_worker_leads_and_all_follow() {
        let host = process();
        let (main, one, other) = (vm(&host), vm(&host), vm(&host));
        tick(&host, &[&main, &one, &other]);
        let role = |vm: &SharedPlugin| vm.borrow().coordination.role();
        assert_eq!(
            [role(&main), role(&one), role(&other)],
            [Role::Leader, Role::Follower, Role::Follower]
        );
        fail_until_open(&host, &one, &[&main, &one, &other]);
        // A worker that sees the failures does not wait for the leader.
        for _ in 0..2 {
            tick(&host, &[&main, &one, &other]);
        }
        assert!(matches!(
            web(&main).map(|directive| directive.breaker),
            Some(BreakerState::Open { .. })
        ));
        assert!(
            is_open(&other, &host),
            "a worker that saw no failure follows"
        );
        assert_eq!(
            host.metric_value("tidegate_upstream=.=web;.;tidegate_breaker_state"),
            Some(2)
        );
        let failures = host.metric_value(
            "tidegate_upstream=.=web;.;tidegate_outcome=.=failure;.;tidegate_outcomes_total",
        );
        assert!(failures > Some(5));
    }

    #[test]
    fn a_serving_leader_hands_over_to_an_idle_worker() {
        let host = process();
        let (one, main) = (vm(&host), vm(&host));
        tick(&host, &[&one, &main]);
        assert_eq!(one.borrow().coordination.role(), Role::Leader);
        fail(&host, &one, 1);
        for _ in 0..2 {
            tick(&host, &[&one, &main]);
        }
        assert_eq!(one.borrow().coordination.role(), Role::Follower);
        assert_eq!(main.borrow().coordination.role(), Role::Leader);
    }

    #[test]
    fn another_worker_takes_over_when_the_leader_is_gone() {
        let host = process();
        let (one, other) = (vm(&host), vm(&host));
        tick(&host, &[&one, &other]);
        for _ in 0..6 {
            tick(&host, &[&other]);
        }
        assert_eq!(other.borrow().coordination.role(), Role::Leader);
        tick(&host, &[&one]);
        assert_eq!(one.borrow().coordination.role(), Role::Follower);
    }

    #[test]
    fn a_fresh_vm_starts_from_learned_state() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        fail_until_open(&host, &one, &[&one]);
        assert!(is_open(&one, &host));
        let fresh = vm(&host);
        assert!(is_open(&fresh, &host));
        assert!(fresh.borrow().engine.views(Instant::ZERO).count() > 1);
    }

    #[test]
    fn a_push_keeps_learned_state_and_ignores_ticks_of_the_old_root() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        fail_until_open(&host, &one, &[&one]);
        assert!(is_open(&one, &host));
        one.borrow_mut()
            .reconfigure(config(r#","stance":"throughput""#), 2);
        assert!(is_open(&one, &host));
        let key = Keys::new("tidegate").slice(0);
        let published = || host.shared(&key).unwrap().unwrap().version;
        let before = published();
        host.advance(TICK);
        one.borrow_mut().tick(1);
        assert_eq!(published(), before);
        one.borrow_mut().tick(2);
        assert_ne!(published(), before);
    }

    #[test]
    fn requests_of_a_crashed_vm_leave_the_gauge() {
        let host = process();
        let (one, crashed) = (vm(&host), vm(&host));
        tick(&host, &[&one, &crashed]);
        for _ in 0..5 {
            let mut stream = Stream::new(Rc::clone(&crashed));
            stream.on_request_headers(Length::HeadersOnly);
            // A trapped VM runs no destructors.
            std::mem::forget(stream);
        }
        tick(&host, &[&one, &crashed]);
        let gauge = || host.metric_value("tidegate_upstream=.=web;.;tidegate_in_flight");
        assert_eq!(gauge(), Some(5));
        for _ in 0..60 {
            tick(&host, &[&one]);
        }
        assert_eq!(gauge(), Some(0));
        assert_eq!(
            host.metric_value("tidegate_upstream=.=web;.;tidegate_in_flight_reconciled_total"),
            Some(5)
        );
    }

    #[test]
    fn requests_of_another_version_are_no_leak() {
        // Each version's leader once took the other's requests off the gauge that they share.
        let host = process();
        let one = vm(&host);
        let other = Versions::new(Keys::new("tidegate").versions(), WIRE_VERSION + 1);
        let name = "tidegate_upstream=.=web;.;tidegate_in_flight";
        let gauge = host.define_metric(MetricKind::Gauge, name).unwrap();
        host.increment_metric(gauge, 3).unwrap();
        for _ in 0..60 {
            assert!(other.tell(&host, host.now().unwrap()).is_ok());
            let mut stream = Stream::new(Rc::clone(&one));
            stream.on_request_headers(Length::HeadersOnly);
            drop(stream);
            tick(&host, &[&one]);
            assert_eq!(host.metric_value(name), Some(3));
        }
        for _ in 0..60 {
            tick(&host, &[&one]);
        }
        assert_eq!(
            host.metric_value(name),
            Some(0),
            "it is gone, and left them"
        );
    }

    /// Requests that a pacemaker sends ten times a second: no report has them, and every reading of the gauge has them.
    #[test]
    fn requests_in_step_with_the_ticks_stay_counted() {
        let host = process();
        let (leader, other) = (vm(&host), vm(&host));
        tick(&host, &[&leader, &other]);
        let gauge = || host.metric_value("tidegate_upstream=.=web;.;tidegate_in_flight");
        for _ in 0..250 {
            let mut stream = Stream::new(Rc::clone(&other));
            stream.on_request_headers(Length::HeadersOnly);
            tick(&host, &[&leader]);
            assert_eq!(gauge(), Some(1));
            drop(stream);
            assert_eq!(gauge(), Some(0));
            other.borrow_mut().tick(1);
        }
    }

    #[test]
    fn without_shared_data_every_vm_decides_for_itself() {
        let host = process();
        host.break_shared_data();
        let one = vm(&host);
        tick(&host, &[&one]);
        assert_eq!(one.borrow().coordination.role(), Role::Alone);
        fail_until_open(&host, &one, &[&one]);
        assert!(is_open(&one, &host));
    }

    #[test]
    fn foreign_payloads_are_ignored_and_counted() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        let keys = Keys::new("tidegate");
        for key in [keys.learned(), keys.directives()] {
            host.set_shared(key, b"\xffnonsense", crate::api::Expect::Anything)
                .unwrap();
        }
        let fresh = vm(&host);
        assert_eq!(fresh.borrow().proxy.faults.count(Fault::Payload), 2);
        tick(&host, &[&one, &fresh]);
    }

    #[test]
    fn a_record_with_nan_is_rejected_and_counted() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        fail(&host, &one, 3);
        tick(&host, &[&one]);
        tick(&host, &[&one]);
        let mut learned = web(&one).unwrap();
        learned.margin.share = f32::NAN;
        let bytes = Directives::new(9, Instant::ZERO, [learned]).encode();
        let keys = Keys::new("tidegate");
        let key = keys.learned();
        host.set_shared(key, &bytes, crate::api::Expect::Anything)
            .unwrap();
        let fresh = vm(&host);
        assert_eq!(fresh.borrow().proxy.faults.count(Fault::Payload), 1);
    }

    #[test]
    fn five_thousand_names_stay_within_the_cap() {
        let host = process();
        let one = vm(&host);
        for name in 0..5_000 {
            host.set_attribute(attribute::CLUSTER, format!("c{name}").as_bytes());
            drop({
                let mut stream = Stream::new(Rc::clone(&one));
                stream.on_request_headers(Length::HeadersOnly);
                stream
            });
            if name % 100 == 0 {
                tick(&host, &[&one]);
            }
        }
        for _ in 0..3 {
            tick(&host, &[&one]);
        }
        let upstreams: std::collections::BTreeSet<String> = host
            .metric_names()
            .iter()
            .filter_map(|name| {
                name.split(';')
                    .find(|part| part.starts_with("tidegate_upstream="))
            })
            .map(str::to_owned)
            .collect();
        assert!(upstreams.len() <= 1_001, "{}", upstreams.len());
        assert!(host.metric_value("tidegate_upstreams_overflow_total") >= Some(4_000));
    }
}

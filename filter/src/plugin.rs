//! The state of one plugin in one VM.
//!
//! A configuration push makes a new root context in the same VM, and Envoy may run several plugins in it; the
//! state belongs to neither context, but to the plugin by its name. So it survives pushes, with requests under way
//! on the old context. A fresh VM (a crash, new code) starts from what shared data remembers.

use core::time::Duration;

use tidegate_core::config::Config;
use tidegate_core::{Directives, Engine, Event, Instant, Slice, UpstreamId, UpstreamKey};

use crate::api::{Host, LogLevel, attribute};
use crate::exchange::keys::Keys;
use crate::exchange::lease::Duty;
use crate::exchange::{Exchange, Role};
use crate::faults::{Fault, Faults};
use crate::gauges::Gauges;
use crate::identity;
use crate::metrics::exporter::{Exporter, Outlet};
use crate::metrics::name::Naming;
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
    pub(crate) duty: Duty,
    pub(crate) curiosity: Curiosity,
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
            duty: Duty::Idle,
            curiosity: Curiosity::Little,
            names: Names::new(&keys),
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
        let slice = self.engine.slice(now).encode();
        self.exchange.publish(&self.host, &self.faults, &slice);
        let before = self.role;
        self.role = self.exchange.lead(&self.host, &self.faults, self.duty, now);
        if before == Role::Follower && self.role != Role::Follower {
            self.exporter.take_over();
            self.reconciler = Reconciler::new(now);
        } else if before != Role::Follower && self.role == Role::Follower {
            self.engine.resign();
        }
        let decided = match self.role {
            Role::Leader | Role::Alone => upkeep::lead(self, &slice, now),
            Role::Follower => {
                // Its room is what the directives will need: a VM's memory never shrinks.
                drop(slice);
                if let Some(directives) = self.exchange.news(&self.host, &self.faults) {
                    self.follow(directives, now);
                }
                false
            }
        };
        upkeep::publish_metrics(self, decided, now);
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
    pub(crate) fn adopt(&mut self, directives: &Directives<'_>, now: Instant) {
        for upstream in self.engine.adopt(directives, now) {
            self.gauges.expect_probes(upstream);
        }
    }

    /// The same, as it was published.
    fn follow(&mut self, directives: Vec<u8>, now: Instant) {
        match self.engine.follow(directives, now) {
            Ok(tripped) => {
                for upstream in tripped {
                    self.gauges.expect_probes(upstream);
                }
            }
            Err(error) => self.faults.note(&self.host, Fault::Payload, &error),
        }
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
            self.introduce(id, hash);
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

    /// Whether an upstream may have metrics of its own.
    pub(crate) fn permit(&mut self, hash: u64) -> Permission {
        let cap = usize::try_from(self.engine.config().max_upstreams()).unwrap_or(usize::MAX);
        // One more: the state that all beyond the cap share has a name too.
        self.names
            .permit(&self.host, &self.faults, hash, cap.saturating_add(1))
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
    fn introduce(&mut self, id: UpstreamId, hash: u64) {
        let permission = self.permit(hash);
        self.gauges
            .assign(id, hash, self.engine.key(id), permission);
    }

    /// The upstreams whose names stand in the slices, with their counts ready to be used.
    pub(crate) fn introduce_all(&mut self, slices: &[Slice<'_>], now: Instant) {
        for name in slices.iter().flat_map(Slice::introductions) {
            self.upstream(name.cluster, name.route, now);
            if name.tripped {
                self.gauges
                    .expect_probes(UpstreamKey::hash(name.cluster, name.route));
            }
        }
    }

    pub(crate) fn upstream_of(event: &Event) -> UpstreamId {
        match *event {
            Event::Tripped { upstream, .. }
            | Event::LimitReason { upstream, .. }
            | Event::Ramping { upstream }
            | Event::Reset { upstream } => upstream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Headers;
    use crate::fake::FakeHost;
    use crate::stream::Stream;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tidegate_core::BreakerState;
    use tidegate_core::classify::Length;

    type SharedPlugin = Rc<RefCell<Plugin<FakeHost>>>;

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
        let plugin = Plugin::new(host.clone(), "tidegate", config(""), 1);
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
            stream.on_request_headers();
            stream.on_response_headers(Length::HeadersOnly);
        }
    }

    fn web(vm: &SharedPlugin) -> Option<tidegate_core::Directive> {
        let vm = vm.borrow();
        let now = vm.last_now;
        let learned = vm.engine.learned(now);
        let hash = UpstreamKey::hash("web", None);
        learned.entries().find(|entry| entry.upstream == hash)
    }

    fn is_open(vm: &SharedPlugin, host: &FakeHost) -> bool {
        let before = host.replies().len();
        let mut stream = Stream::new(Rc::clone(vm));
        stream.on_request_headers();
        drop(stream);
        host.replies()
            .get(before)
            .is_some_and(|(_, details)| details == "tidegate_shed_breaker_open")
    }

    #[test]
    fn one_leads_and_all_follow() {
        let host = process();
        let (main, one, other) = (vm(&host), vm(&host), vm(&host));
        tick(&host, &[&main, &one, &other]);
        let role = |vm: &SharedPlugin| vm.borrow().role;
        assert_eq!(
            [role(&main), role(&one), role(&other)],
            [Role::Leader, Role::Follower, Role::Follower]
        );
        fail(&host, &one, 30);
        for _ in 0..3 {
            tick(&host, &[&main, &one, &other]);
        }
        assert!(matches!(
            web(&main).map(|directive| directive.breaker),
            Some(BreakerState::Open { .. })
        ));
        assert!(is_open(&other, &host), "who saw no failure follows");
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
    fn who_serves_hands_the_lead_over_to_who_does_not() {
        let host = process();
        let (one, main) = (vm(&host), vm(&host));
        tick(&host, &[&one, &main]);
        assert_eq!(one.borrow().role, Role::Leader);
        fail(&host, &one, 1);
        for _ in 0..2 {
            tick(&host, &[&one, &main]);
        }
        assert_eq!(one.borrow().role, Role::Follower);
        assert_eq!(main.borrow().role, Role::Leader);
    }

    #[test]
    fn another_takes_over_when_the_leader_is_gone() {
        let host = process();
        let (one, other) = (vm(&host), vm(&host));
        tick(&host, &[&one, &other]);
        for _ in 0..6 {
            tick(&host, &[&other]);
        }
        assert_eq!(other.borrow().role, Role::Leader);
        tick(&host, &[&one]);
        assert_eq!(one.borrow().role, Role::Follower);
    }

    #[test]
    fn a_fresh_vm_starts_from_what_was_learned() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        fail(&host, &one, 30);
        for _ in 0..12 {
            tick(&host, &[&one]);
        }
        let opened = is_open(&one, &host);
        let fresh = vm(&host);
        assert_eq!(is_open(&fresh, &host), opened);
        assert!(fresh.borrow().engine.views(Instant::ZERO).count() > 1);
    }

    #[test]
    fn a_push_keeps_what_was_learned_and_the_old_root_is_not_listened_to() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        fail(&host, &one, 30);
        tick(&host, &[&one]);
        assert!(is_open(&one, &host));
        one.borrow_mut()
            .reconfigure(config(r#","stance":"throughput""#), 2);
        assert!(is_open(&one, &host));
        let ticked_at = one.borrow().ticked_at;
        host.advance(TICK);
        one.borrow_mut().tick(1);
        assert_eq!(one.borrow().ticked_at, ticked_at);
        one.borrow_mut().tick(2);
        assert!(one.borrow().ticked_at > ticked_at);
    }

    #[test]
    fn what_a_crashed_vm_had_in_flight_is_taken_off() {
        let host = process();
        let (one, crashed) = (vm(&host), vm(&host));
        tick(&host, &[&one, &crashed]);
        for _ in 0..5 {
            let mut stream = Stream::new(Rc::clone(&crashed));
            stream.on_request_headers();
            // A trapped VM drops nothing.
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

    /// What a pacemaker sends ten times a second: no report tells of it, and every look at the gauge finds it.
    #[test]
    fn requests_in_step_with_the_ticks_stay_counted() {
        let host = process();
        let (leader, other) = (vm(&host), vm(&host));
        tick(&host, &[&leader, &other]);
        let gauge = || host.metric_value("tidegate_upstream=.=web;.;tidegate_in_flight");
        for _ in 0..250 {
            let mut stream = Stream::new(Rc::clone(&other));
            stream.on_request_headers();
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
        assert_eq!(one.borrow().role, Role::Alone);
        fail(&host, &one, 30);
        tick(&host, &[&one]);
        assert!(is_open(&one, &host));
    }

    #[test]
    fn payloads_of_others_are_ignored_and_counted() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        let keys = Keys::new("tidegate");
        for key in [keys.learned(), keys.directives()] {
            host.set_shared(&key, b"\xffnonsense", crate::api::Expect::Anything)
                .unwrap();
        }
        let fresh = vm(&host);
        assert_eq!(fresh.borrow().faults.count(Fault::Payload), 2);
        tick(&host, &[&one, &fresh]);
    }

    #[test]
    fn a_record_with_a_float_that_is_no_number_is_refused_and_counted() {
        let host = process();
        let one = vm(&host);
        tick(&host, &[&one]);
        fail(&host, &one, 3);
        tick(&host, &[&one]);
        tick(&host, &[&one]);
        let mut learned = web(&one).unwrap();
        learned.learned.baseline_mean = f32::NAN;
        let bytes = Directives::new(9, Instant::ZERO, [learned]).encode();
        let key = Keys::new("tidegate").learned();
        host.set_shared(&key, &bytes, crate::api::Expect::Anything)
            .unwrap();
        let fresh = vm(&host);
        assert_eq!(fresh.borrow().faults.count(Fault::Payload), 1);
    }

    #[test]
    fn five_thousand_names_stay_within_the_cap() {
        let host = process();
        let one = vm(&host);
        for name in 0..5_000 {
            host.set_attribute(attribute::CLUSTER, format!("c{name}").as_bytes());
            drop({
                let mut stream = Stream::new(Rc::clone(&one));
                stream.on_request_headers();
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

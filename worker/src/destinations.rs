//! The destinations of clusters that lead to several: dynamic forward proxies, and other clusters that the configuration
//! keys by authority.
//!
//! The caller chooses the authority. So its names must not reach what upstreams share: neither the exchange and its leader,
//! nor the names of metrics, which Envoy never forgets. Each worker keeps the destinations of its own requests and decides
//! about them alone, up to a cap; beyond it requests pass by. Their counts are those of the cluster.
//!
//! All of this is made with the first such request. Without one, it costs nothing.

use tidegate_core::{Engine, Instant, UpstreamId};

use crate::api::{Headers, Host};
use crate::counters::HostCounters;
use crate::faults::Fault;
use crate::leader::count_event;
use crate::metrics::exporter::Exporter;
use crate::proxy::Proxy;
use crate::upstreams::Upstreams;

/// The header that names a destination.
const AUTHORITY: &str = ":authority";

/// The destinations of one worker.
#[derive(Debug)]
pub(crate) struct Destinations {
    pub(crate) engine: Engine,
    pub(crate) upstreams: Upstreams,
}

impl Destinations {
    /// No destinations yet; `engine` and `upstreams` are those of the same worker.
    pub(crate) fn beside(engine: &Engine, upstreams: &Upstreams, now: Instant) -> Self {
        Self {
            engine: engine.for_destinations(now),
            upstreams: upstreams.for_destinations(),
        }
    }

    /// The destination of the request under way; `None`: the request passes by.
    pub(crate) fn find<H: Host>(
        &mut self,
        (cluster, route): (&str, Option<&str>),
        proxy: &Proxy<H>,
        now: Instant,
    ) -> Option<UpstreamId> {
        let read = proxy.host.header(Headers::Request, AUTHORITY);
        let authority = proxy.check(Fault::Read, read).flatten()?;
        let authority = String::from_utf8_lossy(&authority);
        self.engine.destination(cluster, route, &authority, now)
    }

    /// The upkeep of every tick.
    pub(crate) fn tick<H: Host>(
        &mut self,
        proxy: &Proxy<H>,
        exporter: &mut Exporter,
        now: Instant,
    ) {
        let mut counters = HostCounters::new(&mut self.upstreams, proxy);
        for event in &self.engine.tick(&mut counters, now) {
            count_event(event, &self.engine, &mut self.upstreams, proxy, exporter);
        }
        self.upstreams.publish_counts(&self.engine, proxy, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    use tidegate_core::classify::Length;
    use tidegate_core::config::Config;

    use crate::api::attribute;
    use crate::fake::FakeHost;
    use crate::plugin::{PluginObject, TICK};
    use crate::stream::{Next, Stream};

    const KEYED: &str = r#","upstreams":[{"match":{"cluster":"forward"},"keyBy":"authority"}]"#;
    const DEAD: &str = "dead.example:80";
    const ALIVE: &str = "alive.example:80";

    fn config(more: &str) -> Config {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},"maxDestinations":3{more}}}"#
        );
        Config::from_json(text.as_bytes()).unwrap()
    }

    /// A VM whose proxy gets requests for the cluster `forward`.
    struct Vm {
        host: FakeHost,
        plugin: Rc<RefCell<PluginObject<FakeHost>>>,
    }

    impl Vm {
        fn new(more: &str) -> Self {
            let host = FakeHost::default();
            host.advance(TICK);
            host.set_attribute(attribute::CLUSTER, b"forward");
            let plugin = PluginObject::new(host.clone(), "tidegate", config(more), 1);
            let plugin = Rc::new(RefCell::new(plugin));
            Self { host, plugin }
        }

        fn begin(&self, authority: &str) -> (Stream<Rc<RefCell<PluginObject<FakeHost>>>>, Next) {
            self.host.set_header(Headers::Request, AUTHORITY, authority);
            let mut stream = Stream::new(Rc::clone(&self.plugin));
            let next = stream.on_request_headers(Length::HeadersOnly);
            (stream, next)
        }

        /// Whether a request is admitted; it is then answered with this status.
        fn is_served(&self, authority: &str, status: &str) -> bool {
            let (mut stream, next) = self.begin(authority);
            if next == Next::Continue {
                self.host.set_header(Headers::Response, ":status", status);
                let details = b"via_upstream";
                self.host.set_attribute(attribute::CODE_DETAILS, details);
                stream.on_response_headers(Length::HeadersOnly);
            }
            next == Next::Continue
        }

        /// Plays requests for `seconds`: one destination fails them, the other serves them. Returns how many of each were shed.
        fn play(&self, seconds: u64) -> (u64, u64) {
            let mut shed = (0, 0);
            for _ in 0..10 * seconds {
                for _ in 0..10 {
                    shed.0 += u64::from(!self.is_served(DEAD, "500"));
                    shed.1 += u64::from(!self.is_served(ALIVE, "200"));
                }
                self.turn();
            }
            shed
        }

        /// Lets time pass until the next tick.
        fn turn(&self) {
            self.host.advance(TICK);
            self.plugin.borrow_mut().tick(1);
        }

        fn metric(&self, name: &str) -> Option<u64> {
            self.host.metric_value(name)
        }
    }

    #[test]
    fn a_dead_destination_is_shed_and_no_other() {
        let (dead, alive) = Vm::new(KEYED).play(3);
        assert!(dead > 150, "{dead} of 300 shed");
        assert_eq!(alive, 0);
    }

    #[test]
    fn without_a_rule_the_cluster_is_one_upstream_and_with_none_it_passes_by() {
        // Other successes would keep the breaker closed, so only the dead destination gets requests.
        let vm = Vm::new("");
        for _ in 0..15 {
            for _ in 0..10 {
                vm.is_served(DEAD, "500");
            }
            vm.turn();
        }
        assert!(!vm.is_served(ALIVE, "200"));

        let vm = Vm::new(r#","keyBy":"none""#);
        assert_eq!(vm.play(3), (0, 0));
        assert_eq!(
            vm.host.metric_names(),
            ["tidegate_upstreams", "tidegate_workers"]
        );
    }

    #[test]
    fn counts_of_destinations_are_those_of_their_cluster() {
        let vm = Vm::new(KEYED);
        let (shed, _) = vm.play(3);
        let labels = "tidegate_upstream=.=forward;.;";
        let metric = |name: &str| vm.metric(&format!("{labels}{name}"));
        assert_eq!(metric("tidegate_requests_total"), Some(600));
        // With several probes granted, requests are refused in half-open as well until the leader has counted.
        let of = |reason: &str| {
            let name = format!("tidegate_reason=.={reason};.;tidegate_requests_shed_total");
            metric(&name).unwrap_or_default()
        };
        assert_eq!(of("breaker_open") + of("breaker_half_open"), shed);
        let opened = metric("tidegate_to=.=open;.;tidegate_breaker_transitions_total");
        assert!(opened >= Some(1), "{opened:?}");
        for name in vm.host.metric_names() {
            assert!(!name.contains("example"), "{name}");
        }
        // Gauges would be those of one destination only.
        assert_eq!(metric("tidegate_in_flight"), None);
        assert_eq!(metric("tidegate_breaker_state"), None);
    }

    #[test]
    fn beyond_the_cap_requests_pass_and_are_counted_and_names_stay_few() {
        let vm = Vm::new(KEYED);
        vm.play(3);
        let names = vm.host.metric_names().len();
        for number in 0..1_000 {
            assert!(vm.is_served(&format!("{number}.example"), "500"));
        }
        vm.play(1);
        assert_eq!(
            vm.metric("tidegate_destinations_overflow_total"),
            Some(999),
            "there was one place left"
        );
        assert!(vm.host.metric_names().len() <= names + 4);
        assert_eq!(vm.metric("tidegate_upstreams_overflow_total"), None);
        assert_eq!(vm.metric("tidegate_upstreams"), Some(0));
    }

    #[test]
    fn only_requests_to_such_a_cluster_read_their_authority() {
        let vm = Vm::new(KEYED);
        let reads = |cluster: &[u8]| {
            vm.host.set_attribute(attribute::CLUSTER, cluster);
            // The endpoints of an upstream are read with its first request.
            drop(vm.begin(ALIVE));
            vm.host.take_reads();
            let stream = vm.begin(ALIVE);
            let reads = vm.host.take_reads();
            drop(stream);
            reads
        };
        assert_eq!(reads(b"web"), 1);
        assert_eq!(reads(b"PassthroughCluster"), 1);
        assert_eq!(reads(b"forward"), 2);
    }

    #[test]
    fn a_request_without_an_authority_passes_by() {
        let vm = Vm::new(KEYED);
        let mut stream = Stream::new(Rc::clone(&vm.plugin));
        assert_eq!(
            stream.on_request_headers(Length::HeadersOnly),
            Next::Continue
        );
        drop(stream);
        vm.plugin.borrow_mut().tick(1);
        assert_eq!(vm.metric("tidegate_destinations_overflow_total"), None);
    }

    #[test]
    fn requests_under_way_end_in_their_engine_after_a_new_configuration() {
        let vm = Vm::new(&format!(
            r#"{KEYED},"limit":{{"min":1,"max":1,"initial":1}}"#
        ));
        let (held, next) = vm.begin(ALIVE);
        assert_eq!(next, Next::Continue);
        // The limit is one, plus the error that a worker alone may make.
        let mut more = Vec::new();
        while more.len() < 10 {
            let (stream, next) = vm.begin(ALIVE);
            if next == Next::Answered {
                break;
            }
            more.push(stream);
        }
        assert!(more.len() < 10, "the limit was never reached");
        vm.plugin.borrow_mut().reconfigure(config(""), 2);
        drop((held, more));
        vm.plugin.borrow_mut().reconfigure(config(KEYED), 3);
        assert_eq!(vm.begin(ALIVE).1, Next::Continue);
    }
}

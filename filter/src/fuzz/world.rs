//! A process of some VMs that anything may happen to, and what must hold of it.

use core::time::Duration;

use tidegate_core::classify::Length;
use tidegate_core::config::Config;
use tidegate_core::units::{PerSecond, Seconds};
use tidegate_core::{
    BreakerState, Count, Directive, Directives, FloorCheckpoint, Instant, Learned, LimitCheckpoint,
    Margin, ShedReason, UpstreamKey, UpstreamSnapshot,
};

use super::script::{Callback, Find, Hostile, STREAMS, Step, Stream, VMS};
use crate::vm::Vm;
use tidegate_worker::api::{Headers, Host as _, attribute};
use tidegate_worker::exchange::keys::Keys;
use tidegate_worker::fake::FakeHost;
use tidegate_worker::metrics::name::{Naming, upstream_labels};
use tidegate_worker::metrics::table::IN_FLIGHT;
use tidegate_worker::plugin::TICK;
use tidegate_worker::stream::{self, Next};

/// Stream numbers of exchanges that one step plays, and of requests that stay, which no other step uses.
const EXCHANGE: u32 = 1_000;
const FIRST_OF_PILE: u32 = 2_000;

const CLUSTERS: [&str; 6] = [
    "web",
    "outbound|80||web.shop.svc.cluster.local",
    "inbound-vip|80|http|db.shop.svc.cluster.local",
    "PassthroughCluster",
    "\u{fffd};\0\n",
    "",
];
const STATUSES: [&str; 10] = [
    "200", "204", "404", "429", "500", "503", "504", "101", "no", "",
];
const DETAILS: [&str; 6] = [
    "via_upstream",
    "",
    "upstream_reset_before_response_started{connection_failure}",
    "upstream_reset_before_response_started{overflow}",
    "response_timeout",
    "no_healthy_upstream",
];
const NUMBERS: [&str; 8] = ["0", "8", "14", "4", "1", "-1", "99999999999999999999", "x"];
const PATHS: [&str; 4] = ["/", "/healthz", "/pay/1?a=b", ""];
const CLASSES: [&str; 4] = ["critical_plus", "sheddable", "Critical", "?"];

/// Configurations that are taken, then some that are rejected.
const CONFIGS: [&str; 11] = [
    r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#,
    r#"{"slo":{"latency":{"quantile":0.5,"target":"5ms"}},"limit":{"min":1,"initial":1,"max":2,"maxOpen":4}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"50ms","until":"end"}},"stance":"throughput","limit":{"min":1,"initial":2},
        "criticality":{"header":"x-class","cohortHeader":"x-user","rules":[{"path":"/pay/*","criticality":"critical_plus"}]}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"50ms","until":"firstByte"}},"mode":"observe","limit":{"min":1,"initial":1,"max":1}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"enforcement":0.5,"breaker":{"minOpen":"100ms","maxOpen":"1s"},
        "limit":{"min":1,"initial":3,"max":3},"shed":{"maxShare":0.5,"reply":"retryElsewhere"}}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"ignore":{"paths":["/healthz"],"userAgents":["x"]},
        "upstreams":[{"match":{"route":"r*"},"limit":{"max":2,"initial":2}},{"match":{"service":"web.*"},"breaker":{"enabled":false}}]}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"enabled":false}"#,
    r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"limit":{"min":5,"max":4}}"#,
    r#"{"mode":"enforce"}"#,
    "",
    "{",
];
const PLUGIN: &str = "tidegate";

/// The process, its VMs, and what the proxy knows of them.
pub(super) struct World {
    hosts: Vec<FakeHost>,
    vms: Vec<Vm<FakeHost>>,
    /// The streams that were created and have not ended.
    open: Vec<Stream>,
    /// Of these the ones that were answered with their request headers.
    answered: Vec<Stream>,
    piled: u32,
    is_hostile: bool,
}

impl World {
    pub(super) fn new(is_hostile: bool) -> Self {
        let host = FakeHost::default();
        host.advance(Duration::from_secs(1));
        host.set_attribute(attribute::CLUSTER, CLUSTERS[0].as_bytes());
        host.set_attribute(attribute::PLUGIN_NAME, PLUGIN.as_bytes());
        host.set_header(Headers::Response, ":status", "200");
        let hosts: Vec<_> = (0..VMS).map(|_| host.another_vm()).collect();
        let mut world = Self {
            vms: (0..VMS).map(|_| Vm::default()).collect(),
            hosts,
            open: Vec::new(),
            answered: Vec::new(),
            piled: 0,
            is_hostile,
        };
        for vm in 0..VMS {
            world.configure(vm, 1, 0);
        }
        world
    }

    fn host(&self) -> &FakeHost {
        &self.hosts[0]
    }

    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Stream(stream, callback) => self.call(stream, callback),
            Step::Exchanges { vm, count } => {
                for _ in 0..count {
                    let stream = Stream { vm, id: EXCHANGE };
                    self.call(stream, Callback::Create { root: 1 });
                    self.call(stream, Callback::RequestHeaders { more: false });
                    self.host().advance(Duration::from_millis(u64::from(count)));
                    self.call(stream, Callback::ResponseHeaders { more: false });
                    self.call(stream, Callback::Log);
                }
            }
            Step::Pile { vm, count } => {
                for _ in 0..count {
                    self.piled += 1;
                    let stream = Stream {
                        vm,
                        id: FIRST_OF_PILE + self.piled,
                    };
                    self.call(stream, Callback::Create { root: 1 });
                    self.call(stream, Callback::RequestHeaders { more: false });
                }
            }
            Step::Tick { vm, root } => self.vms[vm].tick(root),
            Step::Ticks(count) => self.ticks(count),
            Step::Pass(millis) => self.host().advance(Duration::from_millis(millis)),
            Step::Configure { vm, root, which } => self.configure(vm, root, which % CONFIGS.len()),
            Step::Find(find, value) => self.find(find, value),
            Step::Hostile(hostile) => self.go_wrong(hostile),
        }
    }

    pub(super) fn ticks(&mut self, count: u32) {
        for _ in 0..count {
            self.host().advance(TICK);
            for vm in &self.vms {
                (1..=4).for_each(|root| vm.tick(root));
            }
        }
    }

    /// Callbacks as `entry.rs` passes them on.
    fn call(&mut self, stream: Stream, callback: Callback) {
        let (vm, id) = (&self.vms[stream.vm], stream.id);
        let (calls, replies) = (self.host().calls(), self.host().replies().len());
        let is_over = !self.open.contains(&stream) || self.answered.contains(&stream);
        let mut says_nothing = is_over;
        match callback {
            Callback::Create { root } => {
                // A proxy gives a number to one stream at a time.
                if self.open.contains(&stream) {
                    return;
                }
                vm.create(id, root);
                if root != 0 && vm.plugin_of(root).is_some() {
                    self.open.push(stream);
                }
                says_nothing = true;
            }
            Callback::RequestHeaders { more } => {
                let next = vm.on_stream(id, |stream| stream.on_request_headers(length(more)));
                says_nothing = next.is_none();
                let is_answered = next == Some(Next::Answered);
                let sent = self.host().replies().len() - replies;
                assert_eq!(
                    sent,
                    usize::from(is_answered),
                    "answered if and only if a reply was sent"
                );
                self.answered.retain(|other| *other != stream);
                if is_answered {
                    self.answered.push(stream);
                }
            }
            Callback::RequestBody { end: false } => {}
            Callback::RequestBody { end: true } | Callback::RequestTrailers => {
                vm.on_stream(id, stream::Stream::on_request_end);
            }
            Callback::ResponseHeaders { more } => {
                vm.on_stream(id, |stream| stream.on_response_headers(length(more)));
            }
            Callback::ResponseBody { end } => {
                vm.on_stream(id, |stream| {
                    stream.on_response_body();
                    if end {
                        stream.on_response_end();
                    }
                });
            }
            Callback::ResponseTrailers => {
                vm.on_stream(id, stream::Stream::on_response_trailers);
            }
            Callback::Log => {
                vm.end(id);
                self.open.retain(|other| *other != stream);
                self.answered.retain(|other| *other != stream);
            }
        }
        if says_nothing {
            assert_eq!(
                self.host().calls(),
                calls,
                "a stream that is over asks for nothing: {callback:?}"
            );
        }
    }

    fn configure(&mut self, vm: usize, root: u32, which: usize) {
        let text = CONFIGS[which];
        self.host().set_configuration(text.as_bytes());
        let before = self.config(vm, root);
        let lines = self.host().log_lines().len();
        let is_taken = self.vms[vm].configure(&self.hosts[vm], root);
        if self.is_hostile {
            return;
        }
        match Config::from_json(text.as_bytes()) {
            Ok(config) => {
                assert!(is_taken);
                assert_eq!(self.config(vm, root), Some(config));
            }
            Err(errors) => {
                assert!(!is_taken, "{errors}");
                assert_eq!(self.config(vm, root), before, "what was in force stays");
                let told = self.host().log_lines().len() - lines;
                assert_eq!(told, errors.iter().count(), "all that is wrong is told");
            }
        }
    }

    fn config(&self, vm: usize, root: u32) -> Option<Config> {
        let plugin = self.vms[vm].plugin_of(root)?;
        let plugin = plugin.borrow();
        Some(Config::clone(plugin.engine().config()))
    }

    fn find(&self, find: Find, value: u16) {
        let host = self.host();
        let text = |texts: &[&'static str]| texts[usize::from(value) % texts.len()];
        let number = u64::from(value);
        match find {
            Find::Cluster => host.set_attribute(attribute::CLUSTER, text(&CLUSTERS).as_bytes()),
            Find::Status => host.set_header(Headers::Response, ":status", text(&STATUSES)),
            Find::Details => host.set_attribute(attribute::CODE_DETAILS, text(&DETAILS).as_bytes()),
            // Each of the flags that are looked at, and others.
            Find::Flags => {
                host.set_attribute(attribute::FLAGS, &(1_u64 << (value % 30)).to_le_bytes())
            }
            Find::GrpcStatus => host.set_header(Headers::Response, "grpc-status", text(&NUMBERS)),
            Find::GrpcTrailer => {
                host.set_header(Headers::ResponseTrailers, "grpc-status", text(&NUMBERS))
            }
            Find::RetryAfter => host.set_header(Headers::Response, "retry-after", text(&NUMBERS)),
            Find::Path => host.set_header(Headers::Request, ":path", text(&PATHS)),
            Find::Class => host.set_header(Headers::Request, "x-class", text(&CLASSES)),
            Find::Caller => host.set_header(Headers::Request, "x-user", value.to_le_bytes()),
            Find::Attempt => {
                host.set_header(Headers::Request, "x-envoy-attempt-count", text(&NUMBERS))
            }
            Find::Endpoints => {
                host.set_attribute(attribute::ENDPOINTS, &(number % 5).to_le_bytes())
            }
            Find::Route => {
                host.set_attribute(attribute::ROUTE, text(&["r1", "other", ""]).as_bytes())
            }
        }
    }

    fn go_wrong(&mut self, hostile: Hostile) {
        match hostile {
            Hostile::Fail { calls, status } => self.host().fail(calls, status.into()),
            Hostile::Heal => self.heal(),
            Hostile::Beat(is_beaten) => self.host().beat(is_beaten),
            Hostile::RejectMetrics(true) => self.host().reject_metrics(),
            Hostile::RejectMetrics(false) => self.host().accept_metrics(),
            Hostile::Overwrite { key, at, byte } => {
                self.host().overwrite(&shared_key(key), |bytes| {
                    match bytes.get_mut(usize::from(at)) {
                        Some(place) => *place = byte,
                        None => bytes.push(byte),
                    }
                })
            }
            Hostile::Copy { from, to } => {
                let mut copied = Vec::new();
                self.host()
                    .overwrite(&shared_key(from), |bytes| copied.clone_from(bytes));
                self.host()
                    .overwrite(&shared_key(to), |bytes| *bytes = copied);
            }
            Hostile::Directive { kind, number } => self.forge(kind, number),
            Hostile::Map { cut, byte } => {
                self.host().set_raw_map(None);
                if let Ok(mut bytes) = self.host().header_map(Headers::Request) {
                    let at = usize::from(cut) % bytes.len().max(1);
                    if let Some(place) = bytes.get_mut(at) {
                        *place = byte;
                    }
                    bytes.truncate(usize::from(cut / 8).max(1));
                    self.host().set_raw_map(Some(bytes));
                }
            }
            Hostile::Trap { vm } => self.trap(vm),
            Hostile::Clock(value) => self.host().set_clock(u64::from(value) << 44),
        }
    }

    /// A directive of a leader that there never was, every number of it possible.
    fn forge(&self, kind: u8, number: u16) {
        let at = Instant::from_nanos(u64::from(number) << 20);
        let directive = Directive {
            upstream: UpstreamKey::hash(CLUSTERS[usize::from(kind) % 3], None),
            epoch: u32::from(number),
            breaker: match kind / 3 % 3 {
                0 => BreakerState::Closed,
                1 => BreakerState::Open {
                    until: at,
                    probes: number.into(),
                },
                _ => BreakerState::Ramp {
                    limit: u32::from(number).max(1),
                },
            },
            limit: u32::from(number).max(1),
            reserve: u32::MAX,
            margin: Margin::NONE,
            workers: number.max(1),
            unended: u32::MAX - u32::from(number),
            learned: Learned {
                limit: LimitCheckpoint {
                    floor: FloorCheckpoint {
                        mean: Seconds::new(number.into()),
                        ..FloorCheckpoint::default()
                    },
                    capacity: PerSecond::new(kind.into()),
                    ..LimitCheckpoint::default()
                },
                ..Learned::default()
            },
        };
        let bytes = Directives::new(number.into(), at, [directive]).encode();
        let keys = Keys::new(PLUGIN);
        let key = if kind > 127 {
            keys.learned()
        } else {
            keys.directives()
        };
        self.host().overwrite(key, |value| *value = bytes);
    }

    /// The VM is gone with all that it had under way, and a new one is in its place.
    fn trap(&mut self, vm: usize) {
        self.hosts[vm].trap();
        self.vms[vm] = Vm::default();
        self.hosts[vm] = self.hosts[vm].another_vm();
        self.open.retain(|stream| stream.vm != vm);
        self.answered.retain(|stream| stream.vm != vm);
        self.configure(vm, 1, 0);
    }

    pub(super) fn heal(&self) {
        self.host().fail(0, 0);
        self.host().beat(false);
        self.host().accept_metrics();
        self.host().set_raw_map(None);
    }

    /// All streams end.
    pub(super) fn end_all(&mut self) {
        for stream in self.open.clone() {
            self.call(stream, Callback::Log);
        }
        for vm in 0..VMS {
            for id in 0..STREAMS + 2 {
                self.call(Stream { vm, id }, Callback::Log);
            }
            assert_eq!(self.vms[vm].streams(), 0, "streams are forgotten");
        }
    }

    /// What each VM knows of each upstream.
    pub(super) fn snapshots(&self) -> Vec<UpstreamSnapshot> {
        let now = Instant::from_nanos(0);
        let plugins = self.vms.iter().filter_map(|vm| vm.plugin_of(1));
        plugins
            .flat_map(|plugin| plugin.borrow().engine().snapshot(now).upstreams)
            .collect()
    }

    /// What holds at any moment.
    pub(super) fn check(&self) {
        for vm in self.vms.iter().filter_map(|vm| vm.plugin_of(1)) {
            let vm = vm.borrow();
            let learned = vm.engine().learned(Instant::ZERO);
            assert_eq!(
                Directives::decode(learned.clone().encode()),
                Ok(learned),
                "all that is learned is plausible"
            );
        }
        let snapshots = self.snapshots();
        let (mut arrived, mut let_in, mut shed) = (0, 0, 0);
        for upstream in &snapshots {
            assert!(upstream.limit >= 1);
            let count = |count| upstream.tally.get(count);
            let sheds: u64 = ShedReason::ALL
                .iter()
                .map(|reason| upstream.tally.shed(*reason))
                .sum();
            arrived += count(Count::Arrivals);
            // Exempt health checks are among them.
            let_in += count(Count::Admitted);
            shed += sheds;
        }
        assert_eq!(
            arrived,
            let_in + shed,
            "all that arrived were let in or shed"
        );
    }

    /// What holds in addition while nothing goes wrong: the gauges say what the workers do.
    pub(super) fn check_gauges(&self) {
        let snapshots = self.snapshots();
        for upstream in &snapshots {
            let same = snapshots.iter().filter(|other| other.key == upstream.key);
            let in_flight: u64 = same
                .map(|other| u64::from(other.in_flight + other.uploading))
                .sum();
            let gauge =
                Naming::of_plugin(PLUGIN).name(&IN_FLIGHT, &upstream_labels(&upstream.key), None);
            let gauge = self.host().metric_value(&gauge).unwrap_or_default();
            assert_eq!(gauge, in_flight, "{:?}", upstream.key);
        }
    }

    /// What holds once all streams have ended.
    pub(super) fn check_ended(&self) {
        for upstream in self.snapshots() {
            assert_eq!(
                [upstream.in_flight, upstream.open, upstream.uploading],
                [0; 3],
                "{:?}",
                upstream.key
            );
        }
    }

    /// Replies and sheds: of these there are as many while no VM is lost.
    pub(super) fn check_replies(&self) {
        let sheds = |upstream: &UpstreamSnapshot| -> u64 {
            ShedReason::ALL
                .iter()
                .map(|reason| upstream.tally.shed(*reason))
                .sum()
        };
        let shed: u64 = self.snapshots().iter().map(sheds).sum();
        assert_eq!(shed, self.host().replies().len() as u64);
    }
}

const fn length(more: bool) -> Length {
    if more {
        Length::More
    } else {
        Length::HeadersOnly
    }
}

fn shared_key(number: u8) -> String {
    let keys = Keys::new(PLUGIN);
    match number % 10 {
        0 => keys.workers().to_owned(),
        1 => keys.lease(),
        2 => keys.directives().to_owned(),
        3 => keys.learned().to_owned(),
        4 => keys.names(),
        5 => keys.cohorts(),
        6 => keys.serial(),
        place => keys.slice(usize::from(place - 7)),
    }
}

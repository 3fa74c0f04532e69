//! One request's life in the filter.
//!
//! ```text
//! request headers --> admitted: a permit --> request complete --> response headers --> body, trailers --> end
//!        |                                                               |                                 ^
//!        +--> shed: a local reply                                        +--> the verdict, once -----------+
//! ```
//!
//! The permit is spent when the response ends: with the headers, the body's last byte, or the trailers. A stream that is
//! dropped with its permit ended in another way. Only then are Envoy's response flags read, to tell whether the caller left
//! or the upstream broke off. So a plain request costs two reads from the host: the cluster and the status.
//!
//! If anything fails in this file, the request passes.

use std::cell::RefCell;
use std::rc::Rc;

use tidegate_core::classify::{self, Length, ResponseFlags};
use tidegate_core::reply::LocalReply;
use tidegate_core::{Decision, Engine, Instant, Outcome, Permit};

use crate::api::{Headers, Host};
use crate::counters::HostCounters;
use crate::faults::Fault;
use crate::plugin::{EndedRequest, Parts, PluginObject};
use crate::request::HeaderFetch;
use crate::response::{By, Reader};
use crate::upstreams::StateKind;

/// What Envoy does with the request next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It continues.
    Continue,
    /// The filter has answered it.
    Answered,
}

/// One request. Dropping it completes the request, however it ended.
#[derive(Debug)]
pub struct Stream<A: PluginAccess> {
    plugin: A,
    permit: Option<Permit>,
    /// Which engine gave the permit.
    kind: StateKind,
    /// The outcome by the response headers.
    verdict: Option<Outcome>,
    /// Whether any part of the response's body has come.
    has_body: bool,
}

/// The way from a request to its plugin's state in this worker.
pub trait PluginAccess {
    /// The proxy it runs in.
    type Host: Host;

    /// Calls `step` with the state. `None` if it is not available now; then the request passes.
    fn with<T>(&self, step: impl FnOnce(&mut PluginObject<Self::Host>) -> T) -> Option<T>;

    /// Completes a request.
    fn complete(&self, ended: EndedRequest);
}

impl<H: Host> PluginAccess for Rc<RefCell<PluginObject<H>>> {
    type Host = H;

    fn with<T>(&self, step: impl FnOnce(&mut PluginObject<H>) -> T) -> Option<T> {
        // Nothing calls back into the filter while it runs. If something did, the request would pass.
        self.try_borrow_mut()
            .ok()
            .map(|mut plugin| step(&mut plugin))
    }

    fn complete(&self, ended: EndedRequest) {
        self.with(|plugin| plugin.complete(ended));
    }
}

impl<A: PluginAccess> Stream<A> {
    /// A request that goes through `plugin`.
    #[must_use]
    pub const fn new(plugin: A) -> Self {
        Self {
            plugin,
            permit: None,
            kind: StateKind::Upstream,
            verdict: None,
            has_body: false,
        }
    }

    /// Handles the request headers: admits or sheds the request. `length` tells whether a body follows.
    pub fn on_request_headers(&mut self, length: Length) -> Next {
        if self.permit.is_some() {
            // A second call is about the same request.
            return Next::Continue;
        }
        match self.plugin.with(|plugin| ask(plugin, length)) {
            Some(Some(StreamDecision::Admitted(kind, permit))) => {
                self.permit = Some(permit);
                self.kind = kind;
                Next::Continue
            }
            Some(Some(StreamDecision::Sent)) => Next::Answered,
            // If the state is not available, the request passes.
            Some(None) | None => Next::Continue,
        }
    }

    /// The way to the plugin's state.
    pub const fn access(&self) -> &A {
        &self.plugin
    }

    /// Looks at the state of this worker. `look` gets the hash of the request's upstream ([`Engine::hash`]); `None` if the request
    /// has no permit, or its state is that of a destination.
    pub fn look<T>(
        &self,
        look: impl FnOnce(&PluginObject<A::Host>, Option<u64>) -> T,
    ) -> Option<T> {
        self.plugin.with(|plugin| {
            let permit = self.permit.as_ref();
            let permit = permit.filter(|_| self.kind == StateKind::Upstream);
            let upstream = permit.map(|permit| plugin.engine.hash(permit.upstream()));
            look(plugin, upstream)
        })
    }

    /// The last part of the request's body, or its trailers.
    pub fn on_request_end(&mut self) {
        self.with_permit(|engine, permit, counters, now| engine.start(permit, counters, now));
    }

    /// The response headers, the upstream's or the proxy's own.
    pub fn on_response_headers(&mut self, length: Length) {
        let Some(permit) = self.permit.as_mut() else {
            return;
        };
        let kind = self.kind;
        let answer = self.plugin.with(|plugin| {
            let now = plugin.now();
            let Parts {
                engine,
                mut counters,
                proxy,
                ..
            } = plugin.parts(kind);
            let answer = Reader::new(proxy, engine, permit.upstream()).judge(length);
            if answer.is_upgrade {
                engine.upgrade(permit, &mut counters, now);
            } else if answer.by == By::Upstream {
                engine.respond(permit, answer.outcome, &mut counters, now);
            }
            answer
        });
        let Some(answer) = answer else {
            return;
        };
        self.verdict = Some(answer.outcome);
        if answer.is_over {
            self.complete(answer.outcome);
        }
    }

    /// Handles a part of the response's body. Only the first part can matter, and only if the latency is not measured yet. In
    /// all other cases the clock is not read.
    pub fn on_response_body(&mut self) {
        let is_measured = |permit: &Permit| permit.latency().is_some();
        if self.has_body || self.permit.as_ref().is_none_or(is_measured) {
            return;
        }
        self.has_body = true;
        self.with_permit(|engine, permit, counters, now| engine.first_byte(permit, counters, now));
    }

    /// Handles the last part of the response's body, without trailers after it.
    pub fn on_response_end(&mut self) {
        if let (Some(_), Some(verdict)) = (&self.permit, self.verdict) {
            self.complete(verdict);
        }
    }

    /// Handles the response's trailers: the end of the response, with the gRPC status.
    pub fn on_response_trailers(&mut self) {
        let (Some(permit), Some(verdict)) = (&self.permit, self.verdict) else {
            return;
        };
        let (upstream, kind) = (permit.upstream(), self.kind);
        let outcome = match verdict {
            Outcome::Success => self
                .plugin
                .with(|plugin| {
                    let Parts { engine, proxy, .. } = plugin.parts(kind);
                    let reader = Reader::new(proxy, engine, upstream);
                    reader.grpc_outcome(Headers::ResponseTrailers)
                })
                .flatten()
                .unwrap_or(Outcome::Success),
            verdict => verdict,
        };
        self.complete(outcome);
    }

    /// The stream is over, however it ended. Later calls do nothing.
    pub fn on_end(&mut self) {
        if self.permit.is_none() {
            return;
        }
        let flags = self.plugin.with(|plugin| {
            let read = plugin.proxy.host.response_flags();
            plugin.proxy.check(Fault::Read, read)?.map(ResponseFlags)
        });
        self.complete(classify::cut_short(self.verdict, flags.flatten()));
    }

    /// Tells the engine about a step of the request, if it has a permit.
    fn with_permit(
        &mut self,
        step: impl FnOnce(&mut Engine, &mut Permit, &mut HostCounters<'_, A::Host>, Instant),
    ) {
        let Some(permit) = self.permit.as_mut() else {
            return;
        };
        let kind = self.kind;
        self.plugin.with(|plugin| {
            let now = plugin.now();
            let mut parts = plugin.parts(kind);
            step(parts.engine, permit, &mut parts.counters, now);
        });
    }

    fn complete(&mut self, outcome: Outcome) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let ended = EndedRequest {
            permit,
            kind: self.kind,
            outcome,
        };
        self.plugin.complete(ended);
    }
}

impl<A: PluginAccess> Drop for Stream<A> {
    fn drop(&mut self) {
        self.on_end();
    }
}

/// What was decided about a request.
enum StreamDecision {
    Admitted(StateKind, Permit),
    /// It was shed, and the local reply is sent.
    Sent,
}

/// Asks for admission; `None`: the request passes by.
fn ask<H: Host>(plugin: &mut PluginObject<H>, length: Length) -> Option<StreamDecision> {
    if !plugin.engine.config().enabled() {
        return None;
    }
    let (kind, id, now) = plugin.find()?;
    let Parts {
        engine,
        mut counters,
        requests,
        proxy,
    } = plugin.parts(kind);
    let mut request = requests.current(proxy, length);
    if request.is_passed_by() {
        return None;
    }
    let decision = engine.admit(id, &mut request, &mut counters, now);
    let protocol = request.protocol();
    match decision {
        Decision::Admit(permit) => {
            requests.expect(HeaderFetch::Single);
            Some(StreamDecision::Admitted(kind, permit))
        }
        Decision::Shed(shed) => {
            requests.expect(HeaderFetch::All);
            let reply = LocalReply::new(engine.policy(id).shed(), &shed, protocol);
            let sent = proxy.host.shed(engine.hash(id), &reply);
            proxy
                .check(Fault::LocalReply, sent)
                .map(|()| StreamDecision::Sent)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::attribute;
    use crate::fake::FakeHost;
    use core::time::Duration;
    use tidegate_core::Count;
    use tidegate_core::config::{Config, Until};

    const WEB: &str = "outbound|80||web.shop.svc.cluster.local";

    struct Vm {
        host: FakeHost,
        plugin: SharedFake,
    }

    type SharedFake = Rc<RefCell<PluginObject<FakeHost>>>;

    impl Vm {
        fn new(more: &str) -> Self {
            Self::measuring(Until::Headers, more)
        }

        fn measuring(until: Until, more: &str) -> Self {
            let text = format!(
                r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms","until":"{until}"}}}}{more}}}"#
            );
            let config = Config::from_json(text.as_bytes()).unwrap();
            let host = FakeHost::default();
            host.advance(Duration::from_secs(1));
            host.set_attribute(attribute::CLUSTER, WEB.as_bytes());
            let plugin = PluginObject::new(host.clone(), "tidegate", config, 1);
            let vm = Self {
                host,
                plugin: Rc::new(RefCell::new(plugin)),
            };
            // The number of endpoints is read with the first request of a second.
            drop(vm.admitted());
            vm
        }

        fn stream(&self) -> (Stream<SharedFake>, Next) {
            let mut stream = Stream::new(Rc::clone(&self.plugin));
            let next = stream.on_request_headers(Length::HeadersOnly);
            (stream, next)
        }

        fn admitted(&self) -> Stream<SharedFake> {
            let (stream, next) = self.stream();
            assert_eq!(next, Next::Continue);
            stream
        }

        /// A request with a body that is under way.
        fn uploading(&self) -> Stream<SharedFake> {
            let (stream, next) = self.with_body();
            assert_eq!(next, Next::Continue);
            stream
        }

        fn with_body(&self) -> (Stream<SharedFake>, Next) {
            let mut stream = Stream::new(Rc::clone(&self.plugin));
            let next = stream.on_request_headers(Length::More);
            (stream, next)
        }

        fn pass(&self, millis: u64) {
            self.host.advance(Duration::from_millis(millis));
        }

        /// A tick this many milliseconds later.
        fn tick_after(&self, millis: u64) {
            self.pass(millis);
            self.plugin.borrow_mut().tick(1);
        }

        /// Answers measured, and the sum of their latencies in milliseconds.
        fn measured(&self) -> (u64, u64) {
            let micros = self.count(Count::LatencyMicros);
            (self.count(Count::Answers), micros / 1_000)
        }

        fn respond(&self, status: &str, details: &str) {
            self.host.set_header(Headers::Response, ":status", status);
            self.host
                .set_attribute(attribute::CODE_DETAILS, details.as_bytes());
        }

        fn count(&self, count: Count) -> u64 {
            let plugin = self.plugin.borrow();
            let views = plugin.engine.views(Instant::ZERO);
            views.map(|view| view.tally.get(count)).sum()
        }

        fn in_flight(&self) -> Option<u64> {
            let name = format!("tidegate_upstream=.={WEB};.;tidegate_in_flight");
            self.host.metric_value(&name)
        }
    }

    #[test]
    fn a_plain_request_costs_two_reads() {
        let vm = Vm::new("");
        vm.host.take_reads();
        vm.respond("200", "via_upstream");
        let mut stream = vm.admitted();
        assert_eq!(vm.in_flight(), Some(1));
        stream.on_response_headers(Length::More);
        stream.on_response_end();
        drop(stream);
        assert_eq!(vm.host.take_reads(), 2);
        assert_eq!(vm.count(Count::Successes), 1);
        assert_eq!(vm.in_flight(), Some(0));
    }

    #[test]
    fn each_kind_of_response_has_its_outcome() {
        let vm = Vm::new("");
        let table = [
            ("204", "via_upstream", Count::Successes),
            ("404", "via_upstream", Count::Ignored),
            ("429", "via_upstream", Count::Overloads),
            ("500", "via_upstream", Count::Failures),
            ("503", "no_healthy_upstream", Count::Ignored),
            (
                "503",
                "upstream_reset_before_response_started{overflow}",
                Count::Ignored,
            ),
            (
                "503",
                "upstream_reset_before_response_started{connection_termination}",
                Count::Failures,
            ),
            ("504", "response_timeout", Count::Failures),
        ];
        for (status, details, count) in table {
            let before = vm.count(count);
            vm.respond(status, details);
            vm.admitted().on_response_headers(Length::HeadersOnly);
            assert_eq!(vm.count(count), before + 1, "{status} {details}");
            assert_eq!(vm.in_flight(), Some(0), "{status} {details}");
        }
    }

    #[test]
    fn a_503_with_retry_after_is_an_overload_signal() {
        let vm = Vm::new("");
        vm.host.set_header(Headers::Response, "retry-after", "3");
        vm.respond("503", "via_upstream");
        vm.admitted().on_response_headers(Length::HeadersOnly);
        assert_eq!(vm.count(Count::Overloads), 1);
    }

    #[test]
    fn the_grpc_status_is_read_from_headers_or_trailers() {
        let vm = Vm::new("");
        vm.respond("200", "via_upstream");
        for map in [Headers::Response, Headers::ResponseTrailers] {
            let before = (vm.count(Count::Failures), vm.count(Count::Overloads));
            for status in ["14", "8"] {
                vm.host.set_header(map, "grpc-status", status);
                let mut stream = vm.admitted();
                if map == Headers::Response {
                    stream.on_response_headers(Length::HeadersOnly);
                } else {
                    stream.on_response_headers(Length::More);
                    stream.on_response_trailers();
                }
            }
            assert_eq!(vm.count(Count::Failures), before.0 + 1);
            assert_eq!(vm.count(Count::Overloads), before.1 + 1);
            vm.host.set_header(map, "grpc-status", "0");
        }
    }

    #[test]
    fn a_truncated_answer_is_a_failure_and_a_departed_caller_is_not() {
        let vm = Vm::new("");
        vm.respond("200", "via_upstream");
        let break_off = |flags: u64, count| {
            let before = vm.count(count);
            vm.host
                .set_attribute(attribute::FLAGS, &flags.to_le_bytes());
            vm.admitted().on_response_headers(Length::More);
            assert_eq!(vm.count(count), before + 1);
            assert_eq!(vm.in_flight(), Some(0));
        };
        break_off(8_388_608, Count::Failures);
        break_off(16_384, Count::Cancelled);
    }

    #[test]
    fn a_websocket_stops_counting_when_it_begins() {
        for until in Until::ALL {
            let vm = Vm::measuring(until, "");
            vm.respond("101", "via_upstream");
            let mut stream = vm.uploading();
            vm.pass(20);
            stream.on_response_headers(Length::More);
            assert_eq!(vm.in_flight(), Some(0), "{until}");
            assert_eq!(vm.count(Count::Successes), 1, "{until}");
            // Its data are no response body, and its end says nothing, whichever side ends it.
            stream.on_response_body();
            vm.pass(60_000);
            stream.on_request_end();
            let reset = 8_388_608_u64.to_le_bytes();
            vm.host.set_attribute(attribute::FLAGS, &reset);
            drop(stream);
            assert_eq!(vm.in_flight(), Some(0), "{until}");
            assert_eq!(vm.count(Count::Successes), 1, "{until}");
            assert_eq!(vm.count(Count::Ignored), 0, "{until}");
            assert_eq!(vm.count(Count::Failures), 0, "{until}");
            assert_eq!(vm.count(Count::Cancelled), 1, "the one of the set-up only");
        }
    }

    #[test]
    fn handshakes_after_the_first_are_measured_to_their_headers() {
        for until in Until::ALL {
            let vm = Vm::measuring(until, "");
            vm.respond("101", "via_upstream");
            vm.host.set_header(Headers::Request, "upgrade", "websocket");
            for (number, measured) in [(0, 0), (1, 20), (2, 40)] {
                let mut stream = vm.uploading();
                vm.pass(20);
                stream.on_response_headers(Length::More);
                stream.on_response_body();
                vm.pass(6_000);
                stream.on_request_end();
                stream.on_response_end();
                assert_eq!(vm.measured(), (number, measured), "{until}");
                assert_eq!(vm.count(Count::Successes), number + 1, "{until}");
            }
            // One that is not answered is no stalled upload.
            let hangs = vm.uploading();
            vm.tick_after(550);
            assert_eq!(vm.in_flight(), Some(1), "{until}");
            drop(hangs);
            assert_eq!(vm.in_flight(), Some(0), "{until}");
        }
    }

    #[test]
    fn the_limit_learns_from_handshakes() {
        let vm = Vm::new("");
        vm.respond("101", "via_upstream");
        vm.host.set_header(Headers::Request, "upgrade", "websocket");
        let shed = |of: usize| {
            let before = vm.host.replies().len();
            let mut pack: Vec<_> = (0..of).map(|_| vm.with_body().0).collect();
            vm.pass(20);
            for stream in &mut pack {
                stream.on_response_headers(Length::More);
            }
            for _ in 0..30 {
                vm.tick_after(100);
            }
            vm.host.replies().len() - before
        };
        let [first, .., before, last] = [60; 8].map(shed);
        assert!(first > 0, "the initial limit is lower");
        assert_eq!([before, last], [0, 0]);
    }

    #[test]
    fn a_body_costs_a_read_only_where_connections_are_upgraded() {
        let vm = Vm::new("");
        for (status, reads) in [("101", 2), ("200", 3)] {
            vm.host.take_reads();
            vm.respond(status, "via_upstream");
            let mut stream = vm.uploading();
            stream.on_request_end();
            stream.on_response_headers(Length::More);
            stream.on_response_end();
            assert_eq!(vm.host.take_reads(), reads, "{status}");
        }
        // Without the header it is an upload as before.
        let upload = vm.uploading();
        vm.tick_after(2_000);
        assert_eq!(vm.in_flight(), Some(0));
        drop(upload);
    }

    #[test]
    fn the_count_is_lowered_at_the_moment_that_the_objective_measures() {
        // After the headers, after the first byte, at the end: number in flight, and latencies measured.
        let table = [
            (Until::Headers, [0, 0, 0], 20),
            (Until::FirstByte, [1, 0, 0], 50),
            (Until::End, [1, 1, 0], 150),
        ];
        for (until, in_flight, latency) in table {
            let vm = Vm::measuring(until, "");
            vm.respond("200", "via_upstream");
            let mut stream = vm.admitted();
            assert_eq!(vm.in_flight(), Some(1), "{until}");
            let mut seen = Vec::new();
            vm.pass(20);
            stream.on_response_headers(Length::More);
            seen.push(vm.in_flight().unwrap());
            vm.pass(30);
            stream.on_response_body();
            seen.push(vm.in_flight().unwrap());
            vm.pass(100);
            stream.on_response_body();
            stream.on_response_end();
            seen.push(vm.in_flight().unwrap());
            drop(stream);
            assert_eq!(seen, in_flight, "{until}");
            assert_eq!(vm.measured(), (1, latency), "{until}");
            assert_eq!(vm.in_flight(), Some(0), "{until}");
        }
    }

    #[test]
    fn an_answer_without_a_body_is_measured_at_its_headers() {
        for until in Until::ALL {
            let vm = Vm::measuring(until, "");
            vm.respond("204", "via_upstream");
            let mut stream = vm.admitted();
            vm.pass(20);
            stream.on_response_headers(Length::HeadersOnly);
            assert_eq!(vm.in_flight(), Some(0), "{until}");
            assert_eq!(vm.measured(), (1, 20), "{until}");
        }
    }

    #[test]
    fn trailers_end_the_measured_latency() {
        let vm = Vm::measuring(Until::End, "");
        vm.respond("200", "via_upstream");
        let mut stream = vm.admitted();
        stream.on_response_headers(Length::More);
        vm.pass(40);
        stream.on_response_body();
        assert_eq!(vm.in_flight(), Some(1));
        stream.on_response_trailers();
        assert_eq!(vm.in_flight(), Some(0));
        assert_eq!(vm.measured(), (1, 40));
    }

    #[test]
    fn the_end_of_the_request_starts_the_clock() {
        let vm = Vm::new("");
        vm.host.take_reads();
        vm.respond("200", "via_upstream");
        let mut stream = vm.uploading();
        assert_eq!(vm.in_flight(), Some(1));
        vm.pass(250);
        stream.on_request_end();
        vm.pass(20);
        stream.on_response_headers(Length::More);
        assert_eq!(vm.measured(), (1, 20));
        assert_eq!(vm.in_flight(), Some(0));
        assert_eq!(vm.host.take_reads(), 2, "a body costs no read");
    }

    #[test]
    fn an_answer_before_the_end_of_the_request_is_not_measured() {
        for until in Until::ALL {
            let vm = Vm::measuring(until, "");
            vm.respond("200", "via_upstream");
            let mut stream = vm.uploading();
            vm.pass(20);
            stream.on_response_headers(Length::More);
            assert_eq!(vm.in_flight(), Some(0), "{until}");
            stream.on_response_body();
            stream.on_request_end();
            stream.on_response_end();
            assert_eq!(vm.count(Count::Successes), 1, "{until}");
            assert_eq!(vm.measured(), (0, 0), "{until}");
            assert_eq!(vm.in_flight(), Some(0), "{until}");
        }
    }

    #[test]
    fn an_upload_that_stalls_is_no_load_until_it_ends() {
        let vm = Vm::new("");
        vm.respond("200", "via_upstream");
        let (mut stalled, left) = (vm.uploading(), vm.uploading());
        assert_eq!(vm.in_flight(), Some(2));
        vm.tick_after(2_000);
        assert_eq!(vm.in_flight(), Some(0));
        drop(left);
        assert_eq!(vm.in_flight(), Some(0));
        stalled.on_request_end();
        assert_eq!(vm.in_flight(), Some(1));
        vm.pass(30);
        stalled.on_response_headers(Length::HeadersOnly);
        assert_eq!(vm.in_flight(), Some(0));
        assert_eq!(vm.measured(), (1, 30));
    }

    #[test]
    fn a_body_without_an_end_is_a_stream() {
        let vm = Vm::measuring(Until::End, "");
        vm.respond("200", "via_upstream");
        let mut stream = vm.admitted();
        stream.on_response_headers(Length::More);
        stream.on_response_body();
        assert_eq!(vm.in_flight(), Some(1));
        vm.tick_after(8_000);
        assert_eq!(vm.in_flight(), Some(0));
        stream.on_response_end();
        assert_eq!(vm.in_flight(), Some(0));
        assert_eq!(vm.count(Count::Successes), 1);
        assert_eq!(vm.measured(), (0, 0));
    }

    #[test]
    fn beyond_the_bound_on_open_requests_they_are_shed_with_the_reason() {
        let vm = Vm::new(r#","limit":{"maxOpen":2}"#);
        vm.respond("200", "via_upstream");
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut stream = vm.admitted();
            stream.on_response_headers(Length::More);
            open.push(stream);
        }
        assert_eq!(vm.in_flight(), Some(0));
        let (_, next) = vm.stream();
        assert_eq!(next, Next::Answered);
        let details = "tidegate_shed_max_open".to_owned();
        assert_eq!(vm.host.replies(), [(503, details)]);
        open.pop();
        drop(vm.admitted());
    }

    #[test]
    fn beyond_the_limit_requests_are_shed_with_the_reason() {
        let vm = Vm::new(r#","limit":{"min":1,"max":1,"initial":1}"#);
        let mut held = vec![vm.stream()];
        while held.last().is_some_and(|(_, next)| *next == Next::Continue) && held.len() < 10 {
            held.push(vm.stream());
        }
        assert_eq!(vm.host.replies(), [(503, "tidegate_shed_limit".to_owned())]);
        let admitted = u64::try_from(held.len()).unwrap() - 1;
        assert_eq!(vm.in_flight(), Some(admitted));
        drop(held);
        assert_eq!(vm.in_flight(), Some(0));
    }

    #[test]
    fn headers_that_come_twice_are_one_request() {
        let vm = Vm::new("");
        let before = vm.count(Count::Arrivals);
        let mut stream = vm.admitted();
        assert_eq!(
            stream.on_request_headers(Length::HeadersOnly),
            Next::Continue
        );
        drop(stream);
        assert_eq!(vm.count(Count::Arrivals), before + 1);
        assert_eq!(vm.in_flight(), Some(0));
    }

    #[test]
    fn the_kill_switch_reads_and_counts_nothing() {
        let vm = Vm::new(r#","enabled":false"#);
        vm.host.take_reads();
        drop(vm.admitted());
        assert_eq!(vm.host.take_reads(), 0);
        assert_eq!(vm.count(Count::Arrivals), 0);
    }

    #[test]
    fn a_request_without_a_cluster_passes_by() {
        let vm = Vm::new("");
        vm.host.clear_attributes();
        let before = vm.count(Count::Arrivals);
        drop(vm.admitted());
        assert_eq!(vm.count(Count::Arrivals), before);
    }

    #[test]
    fn an_ignored_path_passes_by() {
        let vm = Vm::new(r#","ignore":{"paths":["/healthz"]}"#);
        let before = vm.count(Count::Arrivals);
        vm.host.set_header(Headers::Request, ":path", "/healthz");
        drop(vm.admitted());
        assert_eq!(vm.count(Count::Arrivals), before);
    }

    #[test]
    fn a_cluster_name_that_is_not_utf8_still_names_an_upstream() {
        let vm = Vm::new("");
        vm.host.set_attribute(attribute::CLUSTER, b"\xff\xfe;x");
        let before = vm.count(Count::Arrivals);
        drop(vm.admitted());
        assert_eq!(vm.count(Count::Arrivals), before + 1);
    }
}

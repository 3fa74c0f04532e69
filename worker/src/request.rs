//! A request, read from the host as the engine needs it.
//!
//! Nothing is read before it is needed, and nothing twice. To read a header that exists costs some 10,000 instructions, most
//! of them for the proxy's call back for memory. The whole map costs about as much, and a missing header a quarter. So the
//! map is read at once if several headers are needed that likely exist.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::classify::Length;
use tidegate_core::config::{Config, CriticalityInputs};
use tidegate_core::reply::Protocol;
use tidegate_core::{Criticality, Request};

use crate::api::{Headers, Host, attribute};
use crate::cohorts::Cohorts;
use crate::faults::Fault;
use crate::pairs;
use crate::proxy::Proxy;

/// How often the request was sent, counted by a proxy on the way; 1 is the first attempt.
const ATTEMPT_COUNT: &str = "x-envoy-attempt-count";

/// How headers are read, by how many will likely be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFetch {
    /// One header, which is likely missing.
    Single,
    /// Several: the last request was shed, and a shed request needs all of them.
    All,
}

/// How requests are read.
#[derive(Clone, Debug)]
pub struct Requests {
    config: Arc<Config>,
    cohorts: Cohorts,
    fetch: HeaderFetch,
}

impl Requests {
    /// Reads requests as a configuration needs it.
    #[must_use]
    pub fn of(config: &Arc<Config>, cohorts: Cohorts) -> Self {
        Self {
            config: Arc::clone(config),
            cohorts,
            fetch: HeaderFetch::Single,
        }
    }

    /// Another configuration is in force.
    pub fn follow<H: Host>(&mut self, config: &Arc<Config>, proxy: &Proxy<H>) {
        self.cohorts.follow(config, proxy);
        self.config = Arc::clone(config);
        self.fetch = HeaderFetch::Single;
    }

    /// A tick: the cohorts that are served may change.
    pub fn tick<H: Host>(&mut self, proxy: &Proxy<H>) {
        self.cohorts.rotate(proxy);
    }

    /// Sets how the headers of the next request are read.
    pub const fn expect(&mut self, fetch: HeaderFetch) {
        self.fetch = fetch;
    }

    /// The request of the callback under way; `length` tells whether a body follows.
    pub fn current<'a, H: Host>(
        &'a self,
        proxy: &'a Proxy<H>,
        length: Length,
    ) -> HostRequest<'a, H> {
        HostRequest {
            proxy,
            config: &self.config,
            cohorts: &self.cohorts,
            fetch: self.fetch,
            length,
            map: OnceCell::new(),
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub struct HostRequest<'a, H> {
    proxy: &'a Proxy<H>,
    config: &'a Config,
    cohorts: &'a Cohorts,
    fetch: HeaderFetch,
    length: Length,
    map: OnceCell<Vec<u8>>,
}

impl<H: Host> HostRequest<'_, H> {
    /// Whether the configuration ignores its path. Costs nothing without such paths.
    pub fn is_passed_by(&mut self) -> bool {
        self.config.ignore().needs_path() && {
            let path = self.value(":path");
            self.config.ignore().matches(path.as_deref(), None)
        }
    }

    /// Its protocol, as far as it is known from headers that were read.
    pub fn protocol(&self) -> Protocol {
        match self.map.get().map(|map| pairs::find(map, "content-type")) {
            None => Protocol::Unknown,
            Some(Some(kind)) if kind.starts_with(b"application/grpc") => Protocol::Unknown,
            Some(_) => Protocol::PlainHttp,
        }
    }

    /// A header, from the map if that was read already.
    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        let bytes = match self.map.get() {
            Some(map) => pairs::find(map, name).map(Cow::Borrowed),
            None => {
                let read = self.proxy.host.header(Headers::Request, name);
                self.proxy.check(Fault::Read, read)?
            }
        };
        bytes.and_then(text)
    }

    fn attribute(&self, path: &[u8]) -> Option<Cow<'_, str>> {
        let read = self.proxy.host.attribute(path);
        self.proxy.check(Fault::Read, read)?.and_then(text)
    }

    fn read_map(&mut self) {
        if !H::READS_ARE_CHEAP && self.map.get().is_none() {
            let read = self.proxy.host.header_map(Headers::Request);
            let map = self.proxy.check(Fault::Read, read);
            // It was empty.
            let _ = self.map.set(map.unwrap_or_default());
        }
    }
}

/// The bytes as a text; `None` if they are none.
fn text(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

impl<H: Host> Request for HostRequest<'_, H> {
    fn criticality(&mut self) -> Criticality {
        let rules = self.config.criticality();
        let needs = rules.needs();
        let header = rules.header();
        if header.is_some() || needs.path || needs.method {
            self.read_map();
        }
        let named = header
            .and_then(|name| self.value(name))
            .and_then(|value| Criticality::from_header(&value));
        if let Some(class) = named {
            return class;
        }
        let path = if needs.path {
            self.value(":path")
        } else {
            None
        };
        let method = if needs.method {
            self.value(":method")
        } else {
            None
        };
        let identity = if needs.client_identity {
            self.attribute(attribute::CLIENT_IDENTITY)
                .or_else(|| self.attribute(attribute::TUNNEL_IDENTITY))
        } else {
            None
        };
        rules.by_rules(&CriticalityInputs {
            path: path.as_deref(),
            method: method.as_deref(),
            client_identity: identity.as_deref(),
        })
    }

    fn is_retry(&mut self) -> bool {
        if self.fetch == HeaderFetch::All {
            self.read_map();
        }
        self.value(ATTEMPT_COUNT)
            .and_then(|value| value.trim_ascii().parse::<u32>().ok())
            .is_some_and(|attempt| attempt > 1)
    }

    fn time_left(&mut self) -> Option<Duration> {
        let config = self.config;
        if config.deadline().is_empty() {
            return None;
        }
        // Trusted callers send a deadline with each request, and the other questions need headers too.
        self.read_map();
        config.deadline().time_left(|name| self.value(name))
    }

    fn has_body(&self) -> bool {
        self.length == Length::More
    }

    fn is_upgrade(&mut self) -> bool {
        // Envoy removes the header from requests that cannot upgrade, and adds it to a CONNECT with a protocol.
        self.value("upgrade").is_some()
    }

    fn is_health_check(&mut self) -> bool {
        // Read only if the request would be shed. Clients usually send a user-agent, so this header would cost as much as the
        // whole map, which also tells the protocol.
        let ignore = self.config.ignore();
        if ignore.needs_path() || ignore.needs_user_agent() {
            self.read_map();
        }
        let path = if ignore.needs_path() {
            self.value(":path")
        } else {
            None
        };
        let agent = if ignore.needs_user_agent() {
            self.value("user-agent")
        } else {
            None
        };
        ignore.matches(path.as_deref(), agent.as_deref())
    }

    fn cohort(&mut self) -> Option<u32> {
        let header = self.config.criticality().cohort_header()?;
        Some(self.cohorts.of(&self.value(header)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    fn rules(more: &str) -> Requests {
        let text = format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}}{more}}}"#);
        let keys = crate::exchange::keys::Keys::new("tidegate");
        let config = Config::from_json(text.as_bytes()).unwrap();
        Requests::of(&Arc::new(config), Cohorts::new(&keys, 1))
    }

    const WITH_HEADER: &str = r#","criticality":{"header":"x-criticality","rules":[
        {"path":"/pay/*","method":"POST","criticality":"critical_plus"}]}"#;

    const CHECKED: &str = r#","ignore":{"userAgents":["kube-probe/"]}"#;

    fn ask<T>(
        host: &FakeHost,
        requests: &Requests,
        question: impl FnOnce(&mut HostRequest<'_, FakeHost>) -> T,
    ) -> T {
        let proxy = Proxy::new(host.clone(), "tidegate");
        question(&mut requests.current(&proxy, Length::HeadersOnly))
    }

    #[test]
    fn without_rules_nothing_is_read_for_the_class() {
        let host = FakeHost::default();
        assert_eq!(
            ask(&host, &rules(""), |asked| asked.criticality()),
            Criticality::Critical
        );
        assert_eq!(host.take_reads(), 0);
    }

    #[test]
    fn one_read_gives_class_and_attempt() {
        let host = FakeHost::default();
        host.set_header(Headers::Request, "x-criticality", "sheddable");
        host.set_header(Headers::Request, "x-envoy-attempt-count", "2");
        let (class, retry) = ask(&host, &rules(WITH_HEADER), |asked| {
            (asked.criticality(), asked.is_retry())
        });
        assert_eq!((class, retry), (Criticality::Sheddable, true));
        assert_eq!(host.take_reads(), 1);
    }

    #[test]
    fn in_a_flood_one_read_gives_attempt_and_health_checker() {
        let host = FakeHost::default();
        host.set_header(Headers::Request, "user-agent", "kube-probe/1.33");
        let (mut requests, proxy) = (rules(CHECKED), Proxy::new(host.clone(), "tidegate"));
        requests.expect(HeaderFetch::All);
        let mut asked = requests.current(&proxy, Length::HeadersOnly);
        assert!(!asked.is_retry());
        assert!(asked.is_health_check());
        assert_eq!(asked.protocol(), Protocol::PlainHttp);
        assert_eq!(host.take_reads(), 1);
    }

    #[test]
    fn with_an_unknown_header_value_the_rules_decide() {
        let host = FakeHost::default();
        host.set_header(Headers::Request, "x-criticality", "very");
        host.set_header(Headers::Request, ":path", "/pay/1?x=y");
        host.set_header(Headers::Request, ":method", "POST");
        let class = ask(&host, &rules(WITH_HEADER), |asked| asked.criticality());
        assert_eq!(class, Criticality::CriticalPlus);
    }

    #[test]
    fn a_caller_is_known_by_its_certificate_even_around_a_tunnel() {
        let by_caller = rules(
            r#","criticality":{"rules":[{"clientIdentity":"spiffe://*/sa/batch","criticality":"sheddable"}]}"#,
        );
        let class_of = |path: &[u8], caller: &str| {
            let host = FakeHost::default();
            host.set_attribute(path, caller.as_bytes());
            ask(&host, &by_caller, |asked| asked.criticality())
        };
        for path in [attribute::CLIENT_IDENTITY, attribute::TUNNEL_IDENTITY] {
            assert_eq!(
                class_of(path, "spiffe://cluster.local/ns/shop/sa/batch"),
                Criticality::Sheddable
            );
            assert_eq!(
                class_of(path, "spiffe://cluster.local/ns/shop/sa/web"),
                Criticality::Critical
            );
        }
    }

    #[test]
    fn the_connections_own_certificate_wins_over_that_of_a_tunnel() {
        let by_caller = rules(
            r#","criticality":{"rules":[{"clientIdentity":"spiffe://*/sa/batch","criticality":"sheddable"}]}"#,
        );
        let host = FakeHost::default();
        host.set_attribute(attribute::CLIENT_IDENTITY, b"spiffe://a/ns/b/sa/web");
        host.set_attribute(attribute::TUNNEL_IDENTITY, b"spiffe://a/ns/b/sa/batch");
        let class = ask(&host, &by_caller, |asked| asked.criticality());
        assert_eq!((class, host.take_reads()), (Criticality::Critical, 1));
    }

    #[test]
    fn one_read_gives_deadline_class_and_attempt() {
        let host = FakeHost::default();
        host.set_header(Headers::Request, "grpc-timeout", "80m");
        host.set_header(Headers::Request, "x-envoy-attempt-count", "2");
        let heeding = rules(r#","deadline":{"headers":["x-wait","grpc-timeout"]}"#);
        let (left, retry) = ask(&host, &heeding, |asked| {
            (asked.time_left(), asked.is_retry())
        });
        assert_eq!((left, retry), (Some(Duration::from_millis(80)), true));
        assert_eq!(host.take_reads(), 1);
        assert_eq!(ask(&host, &rules(""), |asked| asked.time_left()), None);
        assert_eq!(host.take_reads(), 0, "deadlines are not read by default");
    }

    #[test]
    fn neither_a_first_attempt_nor_a_malformed_count_is_a_retry() {
        let host = FakeHost::default();
        for value in ["1", "0", "", "two", "-3"] {
            host.set_header(Headers::Request, "x-envoy-attempt-count", value);
            assert!(!ask(&host, &rules(""), |asked| asked.is_retry()), "{value}");
        }
    }

    #[test]
    fn health_checkers_are_known_by_agent_and_by_path() {
        let host = FakeHost::default();
        host.set_header(Headers::Request, "user-agent", "kube-probe/1.33");
        assert!(ask(&host, &rules(CHECKED), |asked| asked.is_health_check()));
        host.take_reads();
        assert!(!ask(&host, &rules(""), |asked| asked.is_health_check()));
        assert_eq!(host.take_reads(), 0, "none is exempt by default");

        host.clear_headers();
        host.set_header(Headers::Request, ":path", "/healthz");
        let with_path = rules(r#","ignore":{"paths":["/healthz"]}"#);
        assert!(ask(&host, &with_path, |asked| asked.is_passed_by()));
        assert!(ask(&host, &with_path, |asked| asked.is_health_check()));
        host.take_reads();
        assert!(!ask(&host, &rules(""), |asked| asked.is_passed_by()));
        assert_eq!(host.take_reads(), 0);
    }
}

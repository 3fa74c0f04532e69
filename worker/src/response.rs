//! Reads what the verdict on a response needs, with as few calls of the host as possible.

use std::borrow::Cow;

use tidegate_core::classify::{self, Author, FirstLook, Length};
use tidegate_core::config::OverloadConfig;
use tidegate_core::{Engine, Outcome, UpstreamId};

use crate::api::{Headers, Host, attribute};
use crate::faults::Fault;
use crate::proxy::Proxy;

/// The result of reading the response headers.
pub(crate) struct ReadResponse {
    pub(crate) outcome: Outcome,
    pub(crate) by: By,
    /// Whether the connection is upgraded.
    pub(crate) is_upgrade: bool,
    /// Whether the exchange is over for the filter.
    pub(crate) is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Upstream,
    Proxy,
}

/// Reads what the verdict on a response needs.
pub(crate) struct Reader<'a, H> {
    proxy: &'a Proxy<H>,
    engine: &'a Engine,
    upstream: UpstreamId,
}

impl<'a, H: Host> Reader<'a, H> {
    pub(crate) const fn new(proxy: &'a Proxy<H>, engine: &'a Engine, upstream: UpstreamId) -> Self {
        Self {
            proxy,
            engine,
            upstream,
        }
    }

    /// What answers say about overload, by the upstream's policy. Most answers do not ask.
    fn signals(&self) -> &'a OverloadConfig {
        self.engine.policy(self.upstream).overload()
    }

    /// Classifies a response with as few reads as possible.
    pub(crate) fn judge(&self, length: Length) -> ReadResponse {
        let is_over = length == Length::HeadersOnly;
        let upstreams = |outcome| ReadResponse {
            outcome,
            by: By::Upstream,
            is_upgrade: false,
            is_over,
        };
        let status = self.proxy.host.status();
        let Some(status) = self.proxy.check(Fault::Read, status).flatten() else {
            return upstreams(Outcome::Ignored);
        };
        let is_signal = || self.signals().has_status_with_retry_after(status);
        match classify::first_look(status, length, is_signal) {
            FirstLook::Settled(outcome) => upstreams(outcome),
            FirstLook::Upgraded => ReadResponse {
                is_upgrade: true,
                is_over: false,
                ..upstreams(Outcome::Success)
            },
            FirstLook::MaybeGrpc => match self.grpc_outcome(Headers::Response) {
                None | Some(Outcome::Success) => upstreams(Outcome::Success),
                Some(outcome) => self.blame(|| outcome, is_over),
            },
            FirstLook::WhoAnswered => {
                let own =
                    || classify::http_answer(status, self.retry_after(status), self.signals());
                self.blame(own, is_over)
            }
        }
    }

    /// An answer that may count against its author; `own` is the outcome if the upstream is the author.
    fn blame(&self, own: impl FnOnce() -> Outcome, is_over: bool) -> ReadResponse {
        let read = self.proxy.host.attribute(attribute::CODE_DETAILS);
        let details = self.proxy.check(Fault::Read, read).flatten();
        let details = details.unwrap_or_default();
        let (outcome, by) = match classify::answered_by(&String::from_utf8_lossy(&details)) {
            Author::Upstream => (own(), By::Upstream),
            Author::Proxy(outcome) => (outcome, By::Proxy),
        };
        ReadResponse {
            outcome,
            by,
            is_upgrade: false,
            is_over,
        }
    }

    pub(crate) fn grpc_outcome(&self, map: Headers) -> Option<Outcome> {
        let status = classify::parse_grpc_status(&self.header(map, "grpc-status")?)?;
        let signals = self.signals();
        let pushback = (signals.has_grpc_status(status))
            .then(|| self.header(map, "grpc-retry-pushback-ms"))
            .flatten()
            .and_then(|value| classify::parse_pushback(&value));
        Some(classify::grpc_answer(status, pushback, signals))
    }

    fn retry_after(&self, status: u16) -> Option<core::time::Duration> {
        if !self.signals().has_status_with_retry_after(status) {
            return None;
        }
        let value = self.header(Headers::Response, "retry-after")?;
        classify::parse_retry_after(&value)
    }

    fn header(&self, map: Headers, name: &str) -> Option<Cow<'a, [u8]>> {
        let read = self.proxy.host.header(map, name);
        self.proxy.check(Fault::Read, read).flatten()
    }
}

//! What the filter asks of the proxy it runs in.
//!
//! All of this crate speaks to this trait, so that it runs in a test against a scripted proxy. The crates `filter` and `native` call the
//! real one.
//! Every call can fail, and none may bring the VM down: a failure comes back as a [`HostError`], the request
//! passes, and the fault is counted.

use core::time::Duration;
use std::borrow::Cow;
use std::sync::Arc;

use tidegate_core::reply::LocalReply;
use tidegate_core::{Instant, KeySource, classify};

/// Proxy attributes that are read, in the form the host takes: path parts, separated by NUL.
pub mod attribute {
    /// The cluster that the route chose.
    pub const CLUSTER: &[u8] = b"xds\0cluster_name";
    /// The name of the route.
    pub const ROUTE: &[u8] = b"xds\0route_name";
    /// How many endpoints the cluster has, as a little-endian `u64`.
    pub const ENDPOINTS: &[u8] = b"upstream\0num_endpoints";
    /// The URI in the client's certificate.
    pub const CLIENT_IDENTITY: &[u8] = b"connection\0uri_san_peer_certificate";
    /// The same in a waypoint of Istio's, where the certificate belongs to the connection around the tunnel and its
    /// URI is handed inside.
    pub const TUNNEL_IDENTITY: &[u8] = b"filter_state\0io.istio.peer_principal";
    /// Envoy's response code details.
    pub const CODE_DETAILS: &[u8] = b"response\0code_details";
    /// Envoy's response flags, as a little-endian `i64`.
    pub const FLAGS: &[u8] = b"response\0flags";
    /// The plugin's name in the proxy's configuration.
    pub const PLUGIN_NAME: &[u8] = b"plugin_name";
}

/// A call into the proxy that did not go well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The proxy answered with a status that the call does not provide for.
    #[error("{call} answered with status {status}")]
    Status {
        /// The proxy-wasm function.
        call: &'static str,
        /// The number it returned.
        status: u32,
    },
    /// It returned malformed data.
    #[error("{call} returned something malformed")]
    Malformed {
        /// The proxy-wasm function.
        call: &'static str,
    },
}

/// Header maps of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// Of the request.
    Request,
    /// Of the response.
    Response,
    /// After the response's body.
    ResponseTrailers,
}

/// How weighty a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// What an operator may want to know.
    Info,
    /// What an operator should look at.
    Warn,
    /// What does not work.
    Error,
}

/// What a metric does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Handle of a metric in this VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricId(pub u32);

/// Which version of a shared value is to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there.
    Anything,
    /// There is none yet.
    Absent,
    /// The version that [`Host::shared`] gave.
    Version(u32),
}

/// The result of a write of a shared value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It is there.
    Done,
    /// Another VM was faster.
    Beaten,
}

/// A shared value and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedValue {
    /// The bytes. Where workers share memory, they share these too: a slice of a thousand upstreams has 100 KB.
    pub bytes: Arc<Vec<u8>>,
    /// Changes with every write.
    pub version: u32,
}

/// The proxy.
///
/// # Errors
/// All methods: when the proxy refuses or answers with nonsense.
#[allow(
    clippy::missing_errors_doc,
    reason = "said once for all methods, above"
)]
pub trait Host {
    /// Whether a header costs no more to read than to look up in a map that was read.
    const READS_ARE_CHEAP: bool = false;

    /// The monotonic clock, the same in all VMs of the process.
    fn now(&self) -> Result<Instant, HostError>;

    /// The wall clock, since its epoch. It jumps.
    fn wall_clock(&self) -> Result<Instant, HostError>;

    /// An attribute, `None` when it has no value here or an empty one. A host that can show it without a copy does, for as long as
    /// the callback under way lasts.
    fn attribute(&self, path: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HostError>;

    /// The first value of a header, `None` when it is missing or empty. As for [`Host::attribute`], it may be the host's own.
    fn header(&self, map: Headers, name: &str) -> Result<Option<Cow<'_, [u8]>>, HostError>;

    /// Calls `read` with the name of the cluster that the route chose; `None` if there is none. A host that can show the name
    /// without a copy does.
    fn cluster<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, HostError> {
        Ok(self.attribute(attribute::CLUSTER)?.map(|name| read(&name)))
    }

    /// The number of the upstream's endpoints, as far as Envoy knows it.
    fn endpoints(&self) -> Result<Option<u64>, HostError> {
        Ok(number(self.attribute(attribute::ENDPOINTS)?))
    }

    /// Envoy's flags of the response under way.
    fn response_flags(&self) -> Result<Option<u64>, HostError> {
        Ok(number(self.attribute(attribute::FLAGS)?))
    }

    /// The status of the response under way; `None` if it is missing or malformed.
    fn status(&self) -> Result<Option<u16>, HostError> {
        let value = self.header(Headers::Response, ":status")?;
        Ok(value.and_then(|value| classify::parse_status(&value)))
    }

    /// A whole header map as the proxy serialises it (see [`crate::pairs`]). Cheaper than two single headers.
    fn header_map(&self, map: Headers) -> Result<Vec<u8>, HostError>;

    /// Answers the request in the upstream's place.
    fn send_local_reply(&self, reply: &LocalReply<'_>) -> Result<(), HostError>;

    /// Answers a request that was shed, in the place of the upstream with this hash ([`tidegate_core::Engine::hash`]).
    fn shed(&self, _upstream: u64, reply: &LocalReply<'_>) -> Result<(), HostError> {
        self.send_local_reply(reply)
    }

    /// A new handle for a metric; the same name means the same metric in every VM.
    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<MetricId, HostError>;

    /// Adds to a metric.
    fn increment_metric(&self, id: MetricId, by: i64) -> Result<(), HostError>;

    /// Adds 1 to a metric and returns its new value, or leaves it as it was.
    fn raise_metric(&self, id: MetricId) -> Result<u64, HostError> {
        self.increment_metric(id, 1)?;
        let value = self.metric(id);
        if value.is_err() {
            self.increment_metric(id, -1)?;
        }
        value
    }

    /// Sets a gauge; the last writer wins.
    fn record_metric(&self, id: MetricId, value: u64) -> Result<(), HostError>;

    /// The value of a metric.
    fn metric(&self, id: MetricId) -> Result<u64, HostError>;

    /// A value shared by all VMs with the same VM id.
    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError>;

    /// Replaces it.
    fn set_shared(&self, key: &str, value: &[u8], expect: Expect)
    -> Result<WriteResult, HostError>;

    /// Names that the engines of this process share, where workers share memory.
    fn keys(&self) -> Option<Arc<dyn KeySource>> {
        None
    }

    /// The plugin's configuration; only while it is being configured.
    fn configuration(&self) -> Result<Vec<u8>, HostError>;

    /// Asks for a tick every so often, whole milliseconds.
    fn set_tick_period(&self, period: Duration) -> Result<(), HostError>;

    /// Writes a line into the proxy's log.
    fn log(&self, level: LogLevel, line: &str) -> Result<(), HostError>;
}

/// An attribute that is a number.
fn number(bytes: Option<Cow<'_, [u8]>>) -> Option<u64> {
    bytes?.first_chunk::<8>().copied().map(u64::from_le_bytes)
}

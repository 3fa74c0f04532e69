//! How a request ended, as far as the control laws care.

use core::time::Duration;

/// gRPC's `RESOURCE_EXHAUSTED`: the server says "too busy", and so does a shed request.
pub(crate) const GRPC_RESOURCE_EXHAUSTED: u32 = 8;

/// What the engine learns from one completed request. Exactly one per permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The upstream answered, and the answer does not speak against it.
    Success,
    /// The upstream failed.
    Failure(Failure),
    /// The upstream says "too busy", by an answer that the configuration counts as such: it lowers the limit and
    /// fails probes, but is not a sign of a dead upstream.
    Overload {
        /// How long the upstream asked to be left alone.
        retry_after: Option<Duration>,
    },
    /// Says nothing about the upstream: a client error, a health check, a websocket, Envoy's own local reply.
    Ignored,
    /// The caller went away before the answer.
    Cancelled,
}

/// Why an upstream counts as failing. A closed set: the names are metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// A 5xx status of the upstream's own.
    Status,
    /// A gRPC status that blames the server (UNKNOWN, INTERNAL, UNAVAILABLE, DATA_LOSS).
    Grpc,
    /// The route's timeout or the caller's deadline passed without an answer.
    Timeout,
    /// The connection was refused or reset before the response headers.
    Connection,
    /// The response broke off after its headers.
    Truncated,
}

//! What the workers of a proxy tell each other.
//!
//! Every worker reports what it counted (a [`Slice`]); one of them, the leader, merges the slices, runs the
//! control laws and answers with [`Directives`] that all follow. Both are plain data; how they travel is the
//! skin's business. On the wire each is one version byte and postcard (<https://postcard.jamesmunns.com>); another
//! version is refused, so that two versions of the module side by side ignore each other instead of
//! misreading. A directive carries all that was learned, so it is also what a fresh VM starts from.

use serde::{Deserialize, Serialize};

use crate::breaker::{BreakerState, TripReason};
use crate::ladder::Margin;
use crate::limit::Learned;
use crate::tally::Tally;
use crate::time::Instant;
use crate::upstream::UpstreamKey;

/// Version of both wire formats; a change to any type below is a new one.
pub const WIRE_VERSION: u8 = 1;

/// What one worker saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Which worker's VM, by a number that no other VM of the proxy has.
    pub worker: u64,
    /// When it was made, so that slices of dead VMs can be told.
    pub at: Instant,
    /// One for every upstream in use.
    pub reports: Vec<Report>,
}

/// What one worker saw of one upstream. Borrowed on its way out, owned on its way in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report<K = UpstreamKey, T = Tally> {
    /// Which upstream.
    pub upstream: K,
    /// When it began to count: with its VM, or later when the upstream came (back) into its registry.
    pub began: Instant,
    /// All it counted since.
    pub tally: T,
    /// Requests it has in flight now.
    pub in_flight: u32,
    /// Requests of its own that became streams, or that hang since before the breaker opened.
    pub streams: u32,
    /// Of those in flight, how many wait for response headers far beyond the latency target.
    pub overdue: u32,
    /// The most requests in flight, in the whole proxy, that an arrival met since the last report but one.
    pub peak: u32,
    /// When response headers last came.
    pub last_response: Instant,
    /// Endpoints behind the upstream; 0 when unknown.
    pub endpoints: u32,
    /// The longest Retry-After since the last report but one, milliseconds.
    pub retry_after_ms: u32,
    /// The worker's last trip on its own evidence.
    pub trip: Option<LocalTrip>,
}

/// A worker tripped before the leader could tell it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalTrip {
    /// Counts the worker's trips of this upstream, so that each is heard once.
    pub sequence: u32,
    /// The epoch whose evidence it judged.
    pub epoch: u32,
    /// Why.
    pub reason: TripReason,
}

/// What the leader decided, for all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Directives {
    /// The leader's worker number.
    pub leader: u64,
    /// When.
    pub at: Instant,
    /// One for every upstream in use, and for every one with something learned.
    pub entries: Vec<Directive>,
}

/// What holds for one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Directive {
    /// [`UpstreamKey::hash`].
    pub upstream: u64,
    /// Counts the breaker's transitions.
    pub epoch: u32,
    /// The breaker's state.
    pub breaker: BreakerState,
    /// Most requests in flight for the marginal level.
    pub limit: u32,
    /// Most requests in flight for levels above it.
    pub reserve: u32,
    /// Where demand crosses what the upstream can carry.
    pub margin: Margin,
    /// Workers that serve this upstream, at least 1: who cannot see the shared count keeps to this share.
    pub workers: u16,
    /// All that the laws learned.
    pub learned: Learned,
}

impl Directive {
    /// What holds while nothing is known.
    pub(crate) fn unknown(upstream: u64) -> Self {
        Self {
            upstream,
            epoch: 0,
            breaker: BreakerState::Closed,
            limit: 1,
            reserve: 1,
            margin: Margin::NONE,
            workers: 1,
            learned: Learned::default(),
        }
    }
}

/// A payload that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another version of the module wrote it.
    #[error("payload version {found}, expected {WIRE_VERSION}")]
    Version {
        /// The version byte.
        found: u8,
    },
    /// It is not what it says it is.
    #[error("malformed payload")]
    Malformed,
}

impl Slice {
    /// The bytes to share.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what [`Slice::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are of another version or malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        decode(bytes)
    }
}

impl Directives {
    /// The bytes to share.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what [`Directives::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are of another version or malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        decode(bytes)
    }
}

impl Report<&UpstreamKey, &Tally> {
    pub(crate) fn to_owned(&self) -> Report {
        Report {
            upstream: self.upstream.clone(),
            began: self.began,
            tally: self.tally.clone(),
            in_flight: self.in_flight,
            streams: self.streams,
            overdue: self.overdue,
            peak: self.peak,
            last_response: self.last_response,
            endpoints: self.endpoints,
            retry_after_ms: self.retry_after_ms,
            trip: self.trip,
        }
    }
}

/// A slice's bytes without the slice: a thousand upstreams' tallies are not copied to be written.
pub(crate) fn encode_slice<'a>(
    worker: u64,
    at: Instant,
    count: usize,
    reports: impl Iterator<Item = Report<&'a UpstreamKey, &'a Tally>>,
) -> Vec<u8> {
    let head = postcard::to_extend(&(worker, at, count), vec![WIRE_VERSION]);
    reports
        .take(count)
        .fold(head, |bytes, report| postcard::to_extend(&report, bytes?))
        .unwrap_or_default()
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Writing plain data to a growing vector cannot fail; were it to, an empty payload is refused by every reader.
    postcard::to_extend(value, vec![WIRE_VERSION]).unwrap_or_default()
}

fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, WireError> {
    match bytes.split_first() {
        Some((&WIRE_VERSION, payload)) => {
            postcard::from_bytes(payload).map_err(|_| WireError::Malformed)
        }
        Some((&found, _)) => Err(WireError::Version { found }),
        None => Err(WireError::Malformed),
    }
}

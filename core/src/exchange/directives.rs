//! What the leader decided for all, as the bytes that travel.
//!
//! Like a [`super::Slice`] it stays bytes on both sides: a worker reads one directive, follows it, and reads the
//! next.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::envelope::{open, seal};
use super::{WireError, check_all, plausible};
use crate::breaker::BreakerState;
use crate::ladder::Margin;
use crate::limit::Learned;
use crate::time::Instant;

/// What the leader decided, for all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directives<'a> {
    /// The leader's worker number.
    pub leader: u64,
    /// When.
    pub at: Instant,
    payload: Cow<'a, [u8]>,
}

/// What holds for one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Directive {
    /// [`crate::UpstreamKey::hash`].
    #[serde(with = "postcard::fixint::le")]
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
    /// Requests of the whole proxy that have not ended.
    pub unended: u32,
    /// All that the laws learned.
    pub learned: Learned,
}

impl<'a> Directives<'a> {
    /// Those of a leader.
    #[must_use]
    pub fn new<D: core::borrow::Borrow<Directive>>(
        leader: u64,
        at: Instant,
        entries: impl IntoIterator<Item = D>,
    ) -> Directives<'static> {
        // Writing plain data to a growing vector cannot fail; were it to, there would be no directives.
        let payload = entries.into_iter().try_fold(Vec::new(), |bytes, entry| {
            postcard::to_extend(entry.borrow(), bytes)
        });
        Directives {
            leader,
            at,
            payload: payload.unwrap_or_default().into(),
        }
    }

    /// The bytes to share.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        seal(&(self.leader, self.at), self.payload.into_owned())
    }

    /// Reads what [`Directives::encode`] wrote: all of it or nothing.
    ///
    /// # Errors
    /// When the bytes are of another version, an entry cannot be read, or has a number that no leader writes.
    pub fn decode(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, WireError> {
        let ((leader, at), payload) = open(bytes.into())?;
        check_all::<Directive>(&payload, plausible::check)?;
        Ok(Self {
            leader,
            at,
            payload,
        })
    }

    /// One for every upstream in use; of [`crate::Engine::learned`], for every one with something learned.
    pub fn entries(&self) -> impl Iterator<Item = Directive> {
        super::all(&self.payload)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }
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
            unended: 0,
            learned: Learned::default(),
        }
    }
}

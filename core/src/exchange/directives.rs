//! The leader's decisions for all workers, as bytes.
//!
//! Like a [`super::Slice`], they stay bytes on both sides: a worker reads one directive, follows it, and reads the next.
//!
//! ```text
//! entry: length 2 bytes | stamp 4 bytes | directive
//! ```
//!
//! All upstreams in use are in it every time, so that a late worker misses nothing. Most of them did not change since the
//! last time: a worker knows by the stamp that it follows a directive already, and skips it unread.

use std::borrow::Cow;

use super::directive::Directive;
use super::envelope::{ENVELOPE_BYTES, WireError, open, seal};
use crate::time::Instant;

/// Bytes in front of a directive: the length of what follows, and the stamp.
const PREFIX: usize = 2 + 4;
/// About as many as an entry has.
const ENTRY_BYTES: usize = 80;
/// The stamp of a directive that is always followed, whatever was followed before.
pub(crate) const UNSTAMPED: u32 = 0;

/// The leader's directives for all upstreams in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directives<'a> {
    /// The leader's worker number.
    pub leader: u64,
    /// When.
    pub at: Instant,
    payload: Cow<'a, [u8]>,
}

impl<'a> Directives<'a> {
    /// The directives of a leader without stamps, so that every reader follows them.
    #[must_use]
    pub fn new<D: core::borrow::Borrow<Directive>>(
        leader: u64,
        at: Instant,
        entries: impl IntoIterator<Item = D>,
    ) -> Directives<'static> {
        let entries = entries.into_iter();
        let room = entries.size_hint().0.saturating_mul(ENTRY_BYTES);
        let mut payload = Vec::with_capacity(room + ENVELOPE_BYTES);
        for entry in entries {
            Self::write(entry.borrow(), UNSTAMPED, &mut payload);
        }
        Directives::of(leader, at, payload)
    }

    /// The directives of a leader that have been [written](Self::write).
    pub(crate) const fn of(leader: u64, at: Instant, payload: Vec<u8>) -> Directives<'static> {
        Directives {
            leader,
            at,
            payload: Cow::Owned(payload),
        }
    }

    /// Appends a directive to `payload`. The stamp must differ from those of all other directives of this leader for the
    /// upstream.
    pub(crate) fn write(directive: &Directive, stamp: u32, payload: &mut Vec<u8>) {
        let begin = payload.len();
        payload.extend_from_slice(&[0; PREFIX]);
        // Writing plain data to a growing vector cannot fail; were it to, there would be no directives.
        *payload = postcard::to_extend(directive, core::mem::take(payload)).unwrap_or_default();
        let length = payload.len().saturating_sub(begin + PREFIX);
        if let Some((prefix, _)) = payload
            .get_mut(begin..)
            .and_then(<[u8]>::split_first_chunk_mut::<PREFIX>)
        {
            let (place, stamps) = prefix.split_at_mut(2);
            place.copy_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
            stamps.copy_from_slice(&stamp.to_le_bytes());
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
    /// If the bytes are of another version, or an entry cannot be read or has a number that no leader writes.
    pub fn decode(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, WireError> {
        Self::decode_news(bytes, |_, _| false)
    }

    /// The same, but skips entries of this leader that are known (`is_known`): they are not followed again either.
    pub(crate) fn decode_news(
        bytes: impl Into<Cow<'a, [u8]>>,
        mut is_known: impl FnMut(u64, &PackedDirective<'_>) -> bool,
    ) -> Result<Self, WireError> {
        let ((leader, at), payload) = open(bytes.into())?;
        let mut rest = &*payload;
        while !rest.is_empty() {
            let entry = PackedDirective::take(&mut rest).ok_or(WireError::Malformed)?;
            if !is_known(leader, &entry) {
                entry.directive().ok_or(WireError::Malformed)?.check()?;
            }
        }
        Ok(Self {
            leader,
            at,
            payload,
        })
    }

    /// The same, but reads no entry: entries from a malformed one on are missing, and others are followed whatever they say.
    ///
    /// # Errors
    /// If the bytes are not as they were written.
    pub(crate) fn decode_unread(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, WireError> {
        let ((leader, at), payload) = open(bytes.into())?;
        Ok(Self {
            leader,
            at,
            payload,
        })
    }

    /// A directive for every upstream in use; from [`crate::Engine::learned`], for every upstream with learned state.
    pub fn entries(&self) -> impl Iterator<Item = Directive> {
        self.unread().filter_map(|entry| entry.directive())
    }

    /// The same, unread.
    pub(crate) fn unread(&self) -> impl Iterator<Item = PackedDirective<'_>> {
        let mut rest = &*self.payload;
        core::iter::from_fn(move || PackedDirective::take(&mut rest))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }
}

/// A directive that has not been read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedDirective<'a> {
    /// [`crate::UpstreamKey::hash`].
    pub(crate) upstream: u64,
    /// The directive's stamp: [`UNSTAMPED`], or a number that this leader gives to no other directive of the upstream.
    pub(crate) stamp: u32,
    bytes: &'a [u8],
}

impl<'a> PackedDirective<'a> {
    /// Takes the next directive off the payload.
    fn take(payload: &mut &'a [u8]) -> Option<Self> {
        let (prefix, rest) = payload.split_first_chunk::<PREFIX>()?;
        let (length, stamp) = prefix.split_at(2);
        let length = usize::from(u16::from_le_bytes(*length.first_chunk()?));
        let (bytes, rest) = rest.split_at_checked(length)?;
        *payload = rest;
        Some(Self {
            // It is the first field of a directive, in eight bytes.
            upstream: u64::from_le_bytes(*bytes.first_chunk()?),
            stamp: u32::from_le_bytes(*stamp.first_chunk()?),
            bytes,
        })
    }

    /// Reads it; `None` if it is malformed.
    pub(crate) fn directive(&self) -> Option<Directive> {
        let (directive, rest) = postcard::take_from_bytes(self.bytes).ok()?;
        rest.is_empty().then_some(directive)
    }
}

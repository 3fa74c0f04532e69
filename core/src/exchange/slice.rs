//! A worker's reports of all upstreams in use, as the bytes that travel.
//!
//! A slice is written once and read once, and a thousand upstreams make a long one: it stays bytes on both sides, and
//! reports are read from it one at a time, in the order of their upstreams' hashes, so that a leader can walk all
//! slices side by side. An upstream at rest is told by its hash alone. Names are long and the leader knows most of them: they stand apart, and only those stand
//! there that it has not answered about lately.

use std::borrow::Cow;

use super::WireError;
use super::envelope::{open, seal};
use super::report::{Introduction, Report};
use crate::time::Instant;

/// What one worker saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice<'a> {
    /// Which worker's VM, by a number that no other VM of the proxy has.
    pub worker: u64,
    /// When it was made, so that slices of dead VMs can be told.
    pub at: Instant,
    /// Bytes of `payload` that are introductions.
    introductions: usize,
    /// Introductions, then reports.
    payload: Cow<'a, [u8]>,
}

impl<'a> Slice<'a> {
    /// A slice of introductions and of reports, written one behind the other; the former take so many bytes.
    pub(crate) fn new(
        worker: u64,
        at: Instant,
        introductions: usize,
        payload: impl Into<Cow<'a, [u8]>>,
    ) -> Self {
        Self {
            worker,
            at,
            introductions,
            payload: payload.into(),
        }
    }

    /// The bytes to share.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        seal(
            &(self.worker, self.at, self.introductions),
            self.payload.into_owned(),
        )
    }

    /// Reads what [`Slice::encode`] wrote: all of it or nothing, since reports that are missing are throughput that is.
    /// That they are whole the envelope says: they are not read twice for it. Of a neighbor's forgery those up to the
    /// first that cannot be read count, and any numbers are possible ones.
    ///
    /// # Errors
    /// When the bytes are of another version, or not as they were written.
    pub fn decode(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, WireError> {
        let ((worker, at, introductions), payload) = open(bytes.into())?;
        if introductions > payload.len() {
            return Err(WireError::Malformed);
        }
        Ok(Self {
            worker,
            at,
            introductions,
            payload,
        })
    }

    /// Upstreams that the leader may not know.
    pub fn introductions(&self) -> impl Iterator<Item = Introduction<'_>> {
        let mut rest = self.payload.get(..self.introductions).unwrap_or_default();
        core::iter::from_fn(move || {
            let (name, behind) = postcard::take_from_bytes(rest).ok()?;
            rest = behind;
            Some(name)
        })
        .fuse()
    }

    /// One for every upstream in use of which there is something to report, in the order of their hashes.
    pub fn reports(&self) -> impl Iterator<Item = Report<'_>> {
        self.entries().filter_map(|entry| match entry {
            SliceEntry::News(report) => Some(report),
            SliceEntry::Resting { .. } => None,
        })
    }

    /// One for every upstream in use, in the order of their hashes.
    pub(crate) fn entries(&self) -> SliceEntries<'_> {
        let rest = self.payload.get(self.introductions..);
        SliceEntries(rest.unwrap_or_default())
    }
}

/// What a worker tells of one upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SliceEntry<'a> {
    /// A report.
    News(Report<'a>),
    /// Nothing is under way, and nothing has happened since the last report.
    Resting {
        /// [`crate::UpstreamKey::hash`].
        upstream: u64,
    },
}

/// The byte in front of a [`SliceEntry::News`], and of a [`SliceEntry::Resting`].
const NEWS: u8 = 0;
const RESTING: u8 = 1;

impl<'a> SliceEntry<'a> {
    /// Which upstream.
    pub(crate) const fn upstream(&self) -> u64 {
        match self {
            Self::News(report) => report.upstream,
            Self::Resting { upstream } => *upstream,
        }
    }

    /// Writes it behind what stands in `bytes`.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::News(report) => {
                bytes.push(NEWS);
                report.write(bytes);
            }
            Self::Resting { upstream } => {
                bytes.push(RESTING);
                bytes.extend_from_slice(&upstream.to_le_bytes());
            }
        }
    }

    fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        *bytes = rest;
        if *kind != RESTING {
            return Report::take(bytes).map(Self::News);
        }
        let (upstream, rest) = bytes.split_first_chunk::<8>()?;
        *bytes = rest;
        Some(Self::Resting {
            upstream: u64::from_le_bytes(*upstream),
        })
    }
}

/// What a slice tells, up to the first that cannot be read.
#[derive(Clone, Debug)]
pub(crate) struct SliceEntries<'a>(&'a [u8]);

impl<'a> Iterator for SliceEntries<'a> {
    type Item = SliceEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.0;
        let told = SliceEntry::take(&mut rest);
        self.0 = told.map_or(&[], |_| rest);
        told
    }
}

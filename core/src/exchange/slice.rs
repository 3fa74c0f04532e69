//! A worker's reports of all upstreams in use, as bytes.
//!
//! A slice is written once and read once, and a thousand upstreams make it long. So it stays bytes on both sides. Reports
//! are read from it one at a time, in the order of their upstreams' hashes, so that a leader can walk all slices side by
//! side. An upstream at rest is only its hash. Names are long and the leader knows most of them, so they are in a part of
//! their own, which has only the names that the leader has not answered about lately.

use std::borrow::Cow;

use super::WireError;
use super::envelope::{open, seal};
use super::report::{Introduction, Report};
use crate::time::Instant;

/// The reports of one worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice<'a> {
    /// The number of the worker's VM, unique in the proxy.
    pub worker: u64,
    /// When it was made, so that slices of dead VMs are recognized.
    pub at: Instant,
    /// Bytes of `payload` that are introductions.
    introductions: usize,
    /// Introductions, then reports.
    payload: Cow<'a, [u8]>,
}

impl<'a> Slice<'a> {
    /// A slice of introductions followed by reports; `introductions` is the length of the former in bytes.
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

    /// Reads what [`Slice::encode`] wrote, all of it or nothing: missing reports would look like missing throughput. The
    /// envelope shows that the slice is whole, so reports are not read here. In a forged slice the reports up to the first
    /// malformed one count, with whatever numbers they have.
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

    /// The reports, in the order of their upstreams' hashes.
    pub fn reports(&self) -> impl Iterator<Item = Report<'_>> {
        self.entries().filter_map(|entry| match entry {
            SliceEntry::News(report) => Some(report),
            SliceEntry::Resting { .. } => None,
        })
    }

    /// An entry for every upstream in use, in the order of their hashes.
    pub(crate) fn entries(&self) -> SliceEntries<'_> {
        let rest = self.payload.get(self.introductions..);
        SliceEntries(rest.unwrap_or_default())
    }
}

/// One upstream in a slice.
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
/// The length of the latter.
const RESTING_BYTES: usize = 1 + 8;

impl<'a> SliceEntry<'a> {
    /// Which upstream.
    pub(crate) const fn upstream(&self) -> u64 {
        match self {
            Self::News(report) => report.upstream,
            Self::Resting { upstream } => *upstream,
        }
    }

    /// Appends the entry to `bytes`.
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

/// The entries of a slice, up to the first malformed one.
#[derive(Clone, Debug)]
pub(crate) struct SliceEntries<'a>(&'a [u8]);

impl<'a> SliceEntries<'a> {
    /// Puts the next one into `place`. Most have nothing to report and are small, so none is moved.
    pub(crate) fn put_next(&mut self, place: &mut Option<SliceEntry<'a>>) {
        *place = match self.0.split_first_chunk::<RESTING_BYTES>() {
            Some(([RESTING, upstream @ ..], rest)) => {
                self.0 = rest;
                Some(SliceEntry::Resting {
                    upstream: u64::from_le_bytes(*upstream),
                })
            }
            _ => self.next(),
        };
    }
}

impl<'a> Iterator for SliceEntries<'a> {
    type Item = SliceEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.0;
        let told = SliceEntry::take(&mut rest);
        self.0 = if told.is_some() { rest } else { &[] };
        told
    }
}

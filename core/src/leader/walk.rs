//! The walk of a round through the slices of all workers.
//!
//! Reports are in the order of their upstreams' hashes, so the slices can be walked side by side: all reports of one upstream
//! are available together, and nothing has to be kept of the rest. A slice that is out of order splits an upstream into
//! several rounds, but does no other harm.

use std::collections::BTreeMap;

use core::time::Duration;

use crate::exchange::{Introduction, Slice, SliceEntries, SliceEntry};
use crate::time::Instant;
use crate::upstream::UpstreamKey;

/// One slice of each live worker, walked side by side.
pub(crate) struct Walk<'a> {
    /// The length of the round.
    pub(super) span: Duration,
    introductions: BTreeMap<u64, Introduction<'a>>,
    workers: Vec<Stop<'a>>,
}

/// The position in one worker's slice.
struct Stop<'a> {
    worker: u64,
    at: Instant,
    next: Option<SliceEntry<'a>>,
    rest: SliceEntries<'a>,
}

impl<'a> Walk<'a> {
    /// A walk through these slices; `span` is the time since the reports before.
    pub(super) fn new(span: Duration, slices: impl Iterator<Item = &'a Slice<'a>>) -> Self {
        let mut introductions = BTreeMap::new();
        let mut workers = Vec::new();
        for slice in slices {
            introductions.extend(
                slice
                    .introductions()
                    .map(|name| (UpstreamKey::hash(name.cluster, name.route), name)),
            );
            let mut rest = slice.entries();
            workers.push(Stop {
                worker: slice.worker,
                at: slice.at,
                next: rest.next(),
                rest,
            });
        }
        Self {
            span,
            introductions,
            workers,
        }
    }

    /// Upstreams that this leader may not know, in the order of their hashes.
    pub(crate) fn introductions(&self) -> impl Iterator<Item = (u64, Introduction<'a>)> {
        self.introductions.iter().map(|(hash, name)| (*hash, *name))
    }

    /// The next upstream's hash.
    pub(crate) fn next(&self) -> Option<u64> {
        let nexts = self.workers.iter().filter_map(|stop| stop.next.as_ref());
        nexts.map(SliceEntry::upstream).min()
    }

    /// Visits the reports of an upstream and moves past them.
    pub(crate) fn pass(
        &mut self,
        upstream: u64,
        mut visit: impl FnMut(u64, Instant, &SliceEntry<'_>),
    ) {
        for stop in &mut self.workers {
            while let Some(told) = stop.next.filter(|told| told.upstream() == upstream) {
                visit(stop.worker, stop.at, &told);
                stop.next = stop.rest.next();
            }
        }
    }
}

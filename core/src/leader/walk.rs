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

/// An odd number with bits all over: 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Brings the bits of one number beside those of the next.
const ROTATE: u32 = 26;

/// One slice of each live worker, walked side by side.
pub(crate) struct Walk<'a> {
    /// The length of the round.
    pub(super) span: Duration,
    /// A number that differs where the workers differ, but for 1 in 2^64.
    pub(super) roster: u64,
    introductions: BTreeMap<u64, Introduction<'a>>,
    workers: Vec<Stop<'a>>,
}

/// One worker of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visited {
    pub(super) worker: u64,
    /// When it made its slice.
    pub(super) at: Instant,
    /// Its number among the walk's workers.
    pub(super) index: usize,
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
        let mut roster = 0_u64;
        let mut workers = Vec::new();
        for slice in slices {
            roster = (roster.rotate_left(ROTATE) ^ slice.worker).wrapping_mul(SPREAD);
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
            roster,
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
    pub(crate) fn pass(&mut self, upstream: u64, mut visit: impl FnMut(Visited, &SliceEntry<'_>)) {
        for (index, stop) in self.workers.iter_mut().enumerate() {
            while let Some(told) = &stop.next
                && told.upstream() == upstream
            {
                let visited = Visited {
                    worker: stop.worker,
                    at: stop.at,
                    index,
                };
                visit(visited, told);
                stop.rest.put_next(&mut stop.next);
            }
        }
    }

    /// All workers, in the order of their numbers.
    pub(super) fn workers(&self) -> impl Iterator<Item = u64> {
        self.workers.iter().map(|stop| stop.worker)
    }
}

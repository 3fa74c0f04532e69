//! What a run leaves behind.

use std::collections::BTreeMap;

use crate::contender::Note;
use crate::decision::LimitMove;
use crate::digest::Digest;
use crate::record::Record;
use crate::score::Figures;
use crate::series::SeriesSample;

/// What a run left behind.
#[derive(Debug, Clone)]
pub struct Run {
    /// The figures, as of a run on real sockets.
    pub figures: Figures,
    /// What happened to each request, in the order of their arrivals.
    pub records: Vec<Record>,
    /// Upstreams and contender over time, every [`crate::world::SAMPLE_EVERY`].
    pub samples: Vec<SeriesSample>,
    /// What the contenders noted, in the order of time.
    pub notes: Vec<Noted>,
    /// How the limits of the first proxy moved, and why; empty for contenders that do not say.
    pub moves: Vec<LimitMove>,
    /// Attempts that asked for admission.
    pub asked: u64,
    /// Attempts that were admitted.
    pub admitted: u64,
    /// Attempts that were shed, by reason.
    pub sheds: BTreeMap<&'static str, u64>,
    /// The same by upstream, by its index in the scenario.
    pub sheds_at: BTreeMap<usize, u64>,
    /// The most requests that were in flight together, in all proxies.
    pub most_in_flight: u64,
    /// What the contenders count as in flight after the last request has ended; none when they do not say. Anything but 0 is
    /// a leak.
    pub leaked: Option<u64>,
    /// Events that happened.
    pub events: u64,
    /// Hash of the events, results and notes of the run; `moves` do not feed it.
    pub digest: Digest,
}

/// A note, and the proxy that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// The proxy, by its index.
    pub proxy: usize,
    /// The note.
    pub note: Note,
}

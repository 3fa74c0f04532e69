//! Load reports (ORCA) of upstreams: counted by workers on their ticks, worked out by the ticker, read with each response.
//!
//! ```text
//!  worker's tick: growth of its counts --> cell of the upstream --> ticker: figures, text --> worker's response: header
//! ```
//!
//! A worker keeps the way to the cells of its upstreams, so that a response takes no lock. All of it is empty unless the
//! configuration asks for reports.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::{BreakerPhase, Engine, Instant, UpstreamView};

use crate::load_figures::{COUNTS, LoadCounts, RecentLoad, WORDS, room};
use crate::published::{PublishedText, TextCopy};

/// One report.
pub(crate) type ReportText = TextCopy<WORDS>;

/// The reports of one plugin, by the hash of the upstream.
#[derive(Debug, Default)]
pub(crate) struct LoadReportCells(Mutex<Published>);

#[derive(Debug, Default)]
struct Published {
    cells: HashMap<u64, ReportedLoad>,
    /// The last time that texts were written.
    at: Option<Instant>,
}

/// What the ticker knows of an upstream.
#[derive(Debug)]
struct ReportedLoad {
    cell: Arc<LoadCell>,
    seen: LoadCounts,
    recent: RecentLoad,
}

/// What workers and the ticker tell each other about one upstream.
#[derive(Debug)]
struct LoadCell {
    counts: [AtomicU64; COUNTS],
    /// [`room`], as bits.
    room: AtomicU64,
    is_closed: AtomicBool,
    text: PublishedText<WORDS>,
}

/// One worker's way to the cells.
#[derive(Debug, Default)]
pub(crate) struct WorkerLoadReports(HashMap<u64, CountedUpstream>);

#[derive(Debug)]
struct CountedUpstream {
    cell: Arc<LoadCell>,
    seen: LoadCounts,
}

impl LoadReportCells {
    /// Works the reports out, on the ticker's thread.
    pub(crate) fn publish(&self, now: Instant) {
        let mut published = self.lock();
        let Published { cells, at } = &mut *published;
        let elapsed = at.replace(now).map(|before| now.saturating_since(before));
        let Some(elapsed) = elapsed.filter(|it| !it.is_zero()) else {
            return;
        };
        // Those that no worker counts for any more.
        cells.retain(|_, reported| Arc::strong_count(&reported.cell) > 1);
        for reported in cells.values_mut() {
            reported.publish(elapsed.as_secs_f64());
        }
    }

    fn cell(&self, upstream: u64) -> Arc<LoadCell> {
        let mut published = self.lock();
        let reported = published
            .cells
            .entry(upstream)
            .or_insert_with(|| ReportedLoad {
                cell: Arc::new(LoadCell::new()),
                seen: LoadCounts::default(),
                recent: RecentLoad::default(),
            });
        Arc::clone(&reported.cell)
    }

    /// A panic while it was held leaves figures half added, which fade.
    fn lock(&self) -> MutexGuard<'_, Published> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReportedLoad {
    fn publish(&mut self, elapsed_s: f64) {
        let counts = self.cell.counts();
        let room = f64::from_bits(self.cell.room.load(Ordering::Relaxed));
        self.recent.add(counts.since(self.seen), room, elapsed_s);
        self.seen = counts;
        let is_closed = self.cell.is_closed.load(Ordering::Relaxed);
        let mut place = [0; 8 * WORDS];
        let text = match self.recent.figures(is_closed) {
            Some(figures) => figures.write(&mut place),
            None => &[],
        };
        self.cell.text.write(text);
    }
}

impl LoadCell {
    fn new() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; COUNTS],
            room: AtomicU64::new(1.0_f64.to_bits()),
            is_closed: AtomicBool::new(true),
            text: PublishedText::empty(),
        }
    }

    fn counts(&self) -> LoadCounts {
        LoadCounts::from_array(self.counts.each_ref().map(|it| it.load(Ordering::Relaxed)))
    }

    /// Adds the growth of one worker's counts. All workers know the same limit, learned state and breaker.
    fn add(&self, growth: LoadCounts, view: &UpstreamView<'_>) {
        for (count, by) in self.counts.iter().zip(growth.to_array()) {
            if by > 0 {
                count.fetch_add(by, Ordering::Relaxed);
            }
        }
        self.room.store(room(view).to_bits(), Ordering::Relaxed);
        let is_closed = view.breaker == BreakerPhase::Closed;
        self.is_closed.store(is_closed, Ordering::Relaxed);
    }
}

impl WorkerLoadReports {
    /// Tells what the worker has counted since its last tick.
    pub(crate) fn count(&mut self, engine: &Engine, cells: &LoadReportCells, now: Instant) {
        let most = usize::try_from(engine.config().max_upstreams()).unwrap_or(usize::MAX);
        // One more has the shared state. Beyond that, some are of upstreams that are gone.
        if self.0.len() > most.saturating_add(1) {
            self.0.clear();
        }
        for view in engine.views_in_use(now) {
            let counts = LoadCounts::of(&view);
            let upstream = self.0.entry(view.hash).or_insert_with(|| CountedUpstream {
                cell: cells.cell(view.hash),
                // Requests from before reports were asked for.
                seen: counts,
            });
            upstream.cell.add(counts.since(upstream.seen), &view);
            upstream.seen = counts;
        }
    }

    /// Forgets all, because the configuration asks for no reports any more.
    pub(crate) fn stop(&mut self) {
        if !self.0.is_empty() {
            *self = Self::default();
        }
    }

    /// The report of an upstream; `None` if there is none yet, or nothing to tell.
    pub(crate) fn text(&self, upstream: u64) -> Option<ReportText> {
        self.0.get(&upstream)?.cell.text.read()
    }
}

//! What one worker counted for one upstream since its VM began.
//!
//! Every count only grows (and wraps). A reader takes the difference to what it saw last, so a report that is
//! overwritten before it is read loses nothing, and reading twice counts once.
//!
//! There is a tally for each upstream in each worker, so it is small. Counts have 32 bits: readers need only their growth over a
//! short time. Sums grow by more than one at a time and have 64 bits.

mod count;
mod pressure;
mod travel;

use core::time::Duration;

use crate::histogram::{GrowingHistogram, Histogram};
use crate::on_demand::Blank;

pub use count::Count;
use pressure::Pressure;

/// Counts that are not sums.
const COUNTS: usize = Count::InFlightMicros as usize;
const SUMS: usize = 9;

/// Counts, demand by level, sheds by reason and latencies of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally<L = Histogram> {
    counts: [u32; COUNTS],
    /// Most upstreams never shed anything and need no room for it.
    pressure: Option<Box<Pressure>>,
    sums: [u64; SUMS],
    /// Latencies of successes, to the moment that the objective measures.
    pub latency: L,
}

/// What a worker keeps: every count since it began.
pub type Counted = Tally<GrowingHistogram>;

impl Blank for Tally {
    fn blank() -> &'static Self {
        static BLANK: Tally = Tally::of(Histogram::EMPTY);
        &BLANK
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl Blank for Counted {
    fn blank() -> &'static Self {
        static BLANK: Counted = Counted::of(GrowingHistogram::EMPTY);
        &BLANK
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl<L> Tally<L> {
    /// Nothing but these latencies.
    const fn of(latency: L) -> Self {
        Self {
            counts: [0; COUNTS],
            pressure: None,
            sums: [0; SUMS],
            latency,
        }
    }

    /// Whether nothing was counted: each latency is counted as an answer as well.
    fn is_empty(&self) -> bool {
        let counts = self.counts.iter().all(|count| *count == 0);
        counts && self.pressure.is_none() && self.sums.iter().all(|sum| *sum == 0)
    }

    /// The value of one count.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        let index = count as usize;
        match index.checked_sub(COUNTS) {
            Some(sum) => self.sums.get(sum).copied().unwrap_or_default(),
            None => self.counts.get(index).copied().unwrap_or_default().into(),
        }
    }

    /// A number that differs after every change of a count, because counts only grow. Where it has not changed, there
    /// is nothing to publish. Sums and latencies are left out.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let of = |counts: &[u32]| {
            let counts = counts.iter().map(|count| u64::from(*count));
            counts.fold(0_u64, u64::wrapping_add)
        };
        let pressure = self.pressure.as_deref();
        let more = pressure.map(|it| {
            let classes = it.classes.iter().map(|classes| of(classes));
            classes.fold(of(&it.cells), u64::wrapping_add)
        });
        of(&self.counts).wrapping_add(more.unwrap_or_default())
    }

    pub(crate) fn add(&mut self, count: Count, n: u64) {
        let index = count as usize;
        match index.checked_sub(COUNTS) {
            Some(sum) => {
                if let Some(value) = self.sums.get_mut(sum) {
                    *value = value.wrapping_add(n);
                }
            }
            None => add(&mut self.counts, index, n),
        }
    }

    fn add_measured(&mut self, latency: Duration) {
        self.add(Count::Answers, 1);
        self.add(Count::LatencyMicros, micros(latency));
    }

    /// Adds the time in flight of a request without an answer among `Answers`.
    pub(crate) fn add_unanswered(&mut self, waited: Duration) {
        self.add(Count::UnansweredMicros, micros(waited));
    }

    /// Adds the time in flight of so many requests, each of which waited for `waited` and has no latency that says anything.
    pub(crate) fn add_unmeasured(&mut self, requests: u32, waited: Duration) {
        let micros = micros(waited).saturating_mul(u64::from(requests));
        self.add(Count::UnmeasuredMicros, micros);
    }

    /// Adds an answer to a request that was admitted before the breaker's last transition, and how long it waited.
    pub(crate) fn add_stale_answer(&mut self, waited: Duration) {
        self.add(Count::StaleAnswers, 1);
        self.add(Count::StaleMicros, micros(waited));
    }

    /// Adds one request's load at admission, and its square.
    pub(crate) fn add_load(&mut self, sum: Count, squares: Count, load: u32) {
        let load = u64::from(load);
        self.add(sum, load);
        self.add(squares, load.wrapping_mul(load));
    }
}

impl Counted {
    /// Adds the measured latency of an answer that was no failure; to the histogram only if it was a success.
    pub(crate) fn add_answer(&mut self, latency: Duration, is_success: bool) {
        self.add_measured(latency);
        if is_success {
            self.latency.record(latency);
        }
    }
}

impl Tally {
    /// How many latencies there are. Most upstreams are at rest and have none, which their answers tell sooner.
    pub(crate) fn latencies(&self) -> u64 {
        match self.get(Count::Answers) {
            0 => 0,
            _ => self.latency.len(),
        }
    }

    /// Adds the measured latency of a success.
    #[cfg(test)]
    pub(crate) fn add_success(&mut self, latency: Duration) {
        self.add_measured(latency);
        self.latency.record(latency);
    }

    /// Adds another interval's counts.
    pub fn merge(&mut self, other: &Self) {
        add_all(&mut self.counts, &other.counts);
        if let Some(other) = &other.pressure {
            add_all(
                &mut self.pressure.get_or_insert_default().cells,
                &other.cells,
            );
        }
        for (value, n) in self.sums.iter_mut().zip(&other.sums) {
            *value = value.wrapping_add(*n);
        }
        self.latency.merge(&other.latency);
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn add(counts: &mut [u32], index: usize, n: u64) {
    if let Some(count) = counts.get_mut(index) {
        *count = count.wrapping_add(low_half(n));
    }
}

fn add_all(counts: &mut [u32], more: &[u32]) {
    for (count, n) in counts.iter_mut().zip(more) {
        *count = count.wrapping_add(*n);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "counts wrap, and only differences of them mean anything"
)]
const fn low_half(n: u64) -> u32 {
    n as u32
}

//! What one worker counted for one upstream since its VM began.
//!
//! Every count only grows (and wraps). A reader takes the difference to what it saw last, so a report that is
//! overwritten before it is read loses nothing, and reading twice counts once.
//!
//! There is one for each upstream in each worker, so it is small: counts wrap at 32 bits, as only differences over
//! a moment count, and sums that grow by more than one at a time have 64.

use core::time::Duration;

use crate::criticality::Criticality;
use crate::histogram::{GrowingHistogram, Histogram};
use crate::level::Level;
use crate::on_demand::Blank;
use crate::shed::ShedReason;

/// One growing count. The order is part of the wire format; sums stand last, they have more bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Requests that asked for admission.
    Arrivals,
    /// Requests admitted.
    Admitted,
    /// Successful answers.
    Successes,
    /// Failures.
    Failures,
    /// Overload signals.
    Overloads,
    /// Successes that turned out to be failures after their headers.
    Retracted,
    /// Answers that were no failures and whose latency was measured, client errors among them.
    Answers,
    /// Outcomes that say nothing.
    Ignored,
    /// Callers that went away.
    Cancelled,
    /// Outcomes of requests admitted before the breaker's last transition.
    Stale,
    /// Answers, or waits of callers that gave up, beyond the SLO's latency target.
    Slow,
    /// Probes admitted.
    ProbesSent,
    /// Probes answered well.
    ProbeSuccesses,
    /// Probes that failed.
    ProbeFailures,
    /// Requests of health checkers, admitted despite a refusal.
    Exempt,
    /// Requests admitted only because the cap on the share shed was reached.
    Spared,
    /// Answers that were no failures, to requests admitted before the breaker's last transition.
    StaleAnswers,
    /// Sum of in-flight over time, request-microseconds.
    InFlightMicros,
    /// Sum of the latencies of `Answers`, microseconds.
    LatencyMicros,
    /// Sum of the times in flight of requests without an answer among `Answers`, microseconds: failures, and callers that left.
    UnansweredMicros,
    /// Sum of the times in flight of requests that were taken out of the count because later ones overtook them, or because their
    /// bodies go on, microseconds.
    UnmeasuredMicros,
    /// Sum of the waits for `StaleAnswers`, microseconds.
    StaleMicros,
    /// Sum of the load at admission of successful requests.
    SuccessLoad,
    /// Sum of the load at admission of failed requests and overload signals.
    FailureLoad,
    /// Sum of the squares of `FailureLoad`'s terms.
    FailureLoadSquares,
    /// Sum of the squares of `SuccessLoad`'s terms.
    SuccessLoadSquares,
}

/// Counts that are not sums.
const COUNTS: usize = Count::InFlightMicros as usize;
const SUMS: usize = 9;
const REASONS: usize = ShedReason::ALL.len();
const CLASSES: usize = Criticality::ALL.len();
/// Where demand by level, sheds and would-be sheds by reason begin among the cells of [`Pressure`].
const DEMAND: usize = 0;
const SHED: usize = DEMAND + Level::COUNT;
const WOULD_SHED: usize = SHED + REASONS;
const CELLS: usize = WOULD_SHED + REASONS;
/// Where sums and latencies begin among the numbers of [`Tally::add_grown`].
const FIRST_SUM: usize = COUNTS + CELLS;
const FIRST_LATENCY: usize = FIRST_SUM + SUMS;

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

/// Counts that are needed only under high load, with an open breaker, or where classes are sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pressure {
    /// Demand by level, sheds by reason and would-be sheds by reason.
    cells: [u32; CELLS],
    /// Counts by criticality, by [`ClassCount`]. For the metrics alone: no law asks, so they do not travel.
    classes: [[u32; CLASSES]; 3],
}

/// What is counted for each class.
#[derive(Clone, Copy, Debug)]
enum ClassCount {
    WouldShed,
    Shed,
    Sampled,
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

    /// Arrivals of one level, among those whose level was read.
    #[must_use]
    pub fn demand(&self, level: Level) -> u64 {
        self.cell(DEMAND + level.index())
    }

    /// Requests shed for `reason`.
    #[must_use]
    pub fn shed(&self, reason: ShedReason) -> u64 {
        self.cell(SHED + reason as usize)
    }

    /// Requests that would have been shed for `reason`, were it enforced.
    #[must_use]
    pub fn would_shed(&self, reason: ShedReason) -> u64 {
        self.cell(WOULD_SHED + reason as usize)
    }

    /// Requests of one class shed because of load. A breaker refuses all classes alike and reads none.
    #[must_use]
    pub fn shed_of(&self, class: Criticality) -> u64 {
        self.of_class(class, ClassCount::Shed)
    }

    /// Requests of one class that would have been shed because of load, were it enforced.
    #[must_use]
    pub fn would_shed_of(&self, class: Criticality) -> u64 {
        self.of_class(class, ClassCount::WouldShed)
    }

    /// Requests of one class among those whose class was read as a sample.
    #[must_use]
    pub fn sampled_of(&self, class: Criticality) -> u64 {
        self.of_class(class, ClassCount::Sampled)
    }

    /// Arrivals of one class, first attempts and retries, among those whose level was read.
    #[must_use]
    pub fn demand_of(&self, class: Criticality) -> u64 {
        self.demand(Level::new(class, false))
            .wrapping_add(self.demand(Level::new(class, true)))
    }

    /// All requests shed.
    #[must_use]
    pub fn shed_total(&self) -> u64 {
        ShedReason::ALL
            .into_iter()
            .fold(0, |sum, reason| sum.wrapping_add(self.shed(reason)))
    }

    /// All requests that were or would have been shed because the limit was reached. Those whose deadline was hopeless do not
    /// show that more could be served.
    #[must_use]
    pub fn refused_for_load(&self) -> u64 {
        [
            ShedReason::Limit,
            ShedReason::Criticality,
            ShedReason::Retry,
        ]
        .into_iter()
        .fold(0, |sum, reason| {
            sum.wrapping_add(self.shed(reason))
                .wrapping_add(self.would_shed(reason))
        })
    }

    /// Whether load was ever high, a breaker open, or a class sampled: else nothing was shed, and no class or level counted.
    #[must_use]
    pub const fn knows_pressure(&self) -> bool {
        self.pressure.is_some()
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

    pub(crate) fn add_demand(&mut self, level: Level) {
        self.add_to_cell(DEMAND + level.index(), 1);
    }

    pub(crate) fn add_shed(&mut self, reason: ShedReason, enforced: bool) {
        let first = if enforced { SHED } else { WOULD_SHED };
        self.add_to_cell(first + reason as usize, 1);
    }

    pub(crate) fn add_shed_of(&mut self, class: Criticality, enforced: bool) {
        self.add_of_class(
            class,
            if enforced {
                ClassCount::Shed
            } else {
                ClassCount::WouldShed
            },
        );
    }

    pub(crate) fn add_sample_of(&mut self, class: Criticality) {
        self.add_of_class(class, ClassCount::Sampled);
    }

    fn add_of_class(&mut self, class: Criticality, what: ClassCount) {
        let classes = &mut self.pressure.get_or_insert_default().classes;
        if let Some(counts) = classes.get_mut(what as usize) {
            add(counts, class.index(), 1);
        }
    }

    fn of_class(&self, class: Criticality, what: ClassCount) -> u64 {
        let pressure = self.pressure.as_deref();
        let counts = pressure.and_then(|pressure| pressure.classes.get(what as usize));
        let count = counts.and_then(|counts| counts.get(class.index()));
        count.copied().unwrap_or_default().into()
    }

    fn cell(&self, index: usize) -> u64 {
        let pressure = self.pressure.as_deref();
        let cell = pressure.and_then(|pressure| pressure.cells.get(index));
        cell.copied().unwrap_or_default().into()
    }

    fn add_to_cell(&mut self, index: usize, n: u64) {
        add(&mut self.pressure.get_or_insert_default().cells, index, n);
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

    /// Everything that travels and is not zero, by a number that [`Tally::add_grown`] understands, in the order of it.
    /// Loops rather than one chain of iterators: every worker does this for every upstream on every tick.
    pub(crate) fn for_each_grown(&self, mut work: impl FnMut(usize, u64)) {
        let mut grown = |number, value| {
            if value != 0 {
                work(number, value);
            }
        };
        for (number, count) in self.counts.iter().enumerate() {
            grown(number, u64::from(*count));
        }
        if let Some(pressure) = &self.pressure {
            for (number, cell) in (COUNTS..).zip(&pressure.cells) {
                grown(number, u64::from(*cell));
            }
        }
        for (number, sum) in (FIRST_SUM..).zip(&self.sums) {
            grown(number, *sum);
        }
        for (bucket, count) in self.latency.filled() {
            grown(FIRST_LATENCY + bucket, count.into());
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

    /// Adds what a worker's count of this number grew by, as the difference of two of its values.
    pub(crate) fn add_grown(&mut self, number: usize, difference: u64) {
        if number < COUNTS {
            add(&mut self.counts, number, difference);
        } else if number < FIRST_SUM {
            self.add_to_cell(number - COUNTS, difference);
        } else if let Some(sum) = self.sums.get_mut(number - FIRST_SUM) {
            *sum = sum.wrapping_add(difference);
        } else {
            self.latency.add_grown(number - FIRST_LATENCY, difference);
        }
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

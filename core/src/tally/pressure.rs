//! Counts that are needed only under high load: demand by level, sheds by reason, and classes.
//!
//! Most upstreams are never under pressure, so a tally has no room for these counts before the first of them.

use super::{Tally, add};
use crate::criticality::Criticality;
use crate::level::Level;
use crate::shed::ShedReason;

const REASONS: usize = ShedReason::ALL.len();
const CLASSES: usize = Criticality::ALL.len();
/// Where demand by level, sheds and would-be sheds by reason begin among the cells of [`Pressure`].
const DEMAND: usize = 0;
const SHED: usize = DEMAND + Level::COUNT;
const WOULD_SHED: usize = SHED + REASONS;
pub(super) const CELLS: usize = WOULD_SHED + REASONS;

/// Counts that are needed only under high load, with an open breaker, or where classes are sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pressure {
    /// Demand by level, sheds by reason and would-be sheds by reason.
    pub(super) cells: [u32; CELLS],
    /// Counts by criticality, by [`ClassCount`]. For the metrics alone: no law asks, so they do not travel.
    pub(super) classes: [[u32; CLASSES]; 3],
}

/// What is counted for each class.
#[derive(Clone, Copy, Debug)]
enum ClassCount {
    WouldShed,
    Shed,
    Sampled,
}

impl<L> Tally<L> {
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

    /// Whether load was ever high, a breaker open, or a class sampled. Otherwise nothing was shed, and no class or level counted.
    #[must_use]
    pub const fn knows_pressure(&self) -> bool {
        self.pressure.is_some()
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

    pub(super) fn add_to_cell(&mut self, index: usize, n: u64) {
        add(&mut self.pressure.get_or_insert_default().cells, index, n);
    }
}

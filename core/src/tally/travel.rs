//! The counts of a tally as numbered values, which workers report and the leader adds up.

use super::pressure::CELLS;
use super::{COUNTS, Counted, SUMS, Tally, add};

/// Where sums and latencies begin among the numbers of [`Tally::add_grown`].
const FIRST_SUM: usize = COUNTS + CELLS;
const FIRST_LATENCY: usize = FIRST_SUM + SUMS;

impl Counted {
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
}

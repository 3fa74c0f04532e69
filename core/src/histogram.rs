//! Latencies in buckets a seventh to a quarter apart.
//!
//! The control laws need quantiles of exact windows that several workers filled. Buckets add and subtract, so
//! windows merge and differences of growing counts are windows; a quantile is off by half a bucket at most.
//! Log-linear as in HdrHistogram: four buckets to an octave.

use core::time::Duration;

use crate::by_bucket::ByBucket;

/// Buckets to an octave, as a power of two.
const SUB_BITS: u32 = 2;
/// Latencies below 64 us share the first bucket.
const LOWEST_BITS: u32 = 6;
/// 24 octaves of four: up to 1,074 s, which is more than the longest objective. What is slower shares the last bucket.
pub const BUCKETS: usize = 96;

/// Counts of latencies by bucket; every count wraps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram([u32; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Histogram {
    pub(crate) const EMPTY: Self = Self([0; BUCKETS]);

    /// Counts one latency.
    pub fn record(&mut self, latency: Duration) {
        if let Some(count) = self.0.get_mut(bucket(latency)) {
            *count = count.wrapping_add(1);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Adds the difference of two values that a [`GrowingHistogram`] had in one bucket.
    pub(crate) fn add_grown(&mut self, bucket: usize, difference: u64) {
        if let Some(count) = self.0.get_mut(bucket) {
            *count = count.wrapping_add(low_quarter(difference).into());
        }
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count = count.wrapping_add(*more);
        }
    }

    /// The counts, lowest bucket first.
    pub fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// The middle of each bucket in microseconds, lowest bucket first.
    pub fn middles() -> impl Iterator<Item = u64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 32 us to 18 minutes"
        )]
        let middle = |(low, high): (f64, f64)| (f64::midpoint(low, high) * 1e6) as u64;
        (0..BUCKETS).map(bounds).map(middle)
    }

    /// The latency, in seconds, that a share `quantile` (0..=1) of the counts stays below; `None` when empty.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        quantile_among(self.filled(), self.total(), quantile)
    }

    /// The share (0..=1) that took longer than `seconds`, interpolated within a bucket; 0 when empty.
    pub(crate) fn share_above(&self, seconds: f64) -> f64 {
        let total = self.total();
        if total > 0.0 {
            above_among(self.filled(), seconds) / total
        } else {
            0.0
        }
    }

    /// How many there are. Integers add faster, and are exact in both forms.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a hundred counts of 32 bits stay below 2^53"
    )]
    fn total(&self) -> f64 {
        self.len() as f64
    }

    /// The buckets that are not empty with their counts, lowest bucket first. Most are, so they are passed by in fours.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (usize, f64)> {
        let (fours, _) = self.0.as_chunks::<4>();
        let filled = fours
            .iter()
            .enumerate()
            .filter(|(_, four)| **four != [0; 4]);
        filled.flat_map(|(index, four)| {
            let counts = four.iter().enumerate().filter(|(_, count)| **count > 0);
            counts.map(move |(place, count)| (4 * index + place, f64::from(*count)))
        })
    }

    /// The standard deviation by the mean, taking a bucket's middle for all in it; `None` when empty.
    #[must_use]
    pub fn variation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let filled = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        let (count, squares) = filled.fold((0.0, 0.0), |(n, squares), (index, count)| {
            let (low, high) = bounds(index);
            let off = f64::midpoint(low, high) - mean;
            let count = f64::from(*count);
            (n + count, squares + count * off * off)
        });
        Some((squares / count).sqrt() / mean)
    }

    /// The mean in seconds, taking a bucket's middle for all in it; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        mean_of(self.0.iter().map(|count| f64::from(*count)))
    }
}

/// Counts that only grow, in less room: a worker keeps one for each upstream. They wrap at 16 bits, which is more
/// than one thread answers in a tenth of a second, and only the difference between two looks means anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingHistogram(ByBucket<u16>);

impl Default for GrowingHistogram {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl GrowingHistogram {
    pub(crate) const EMPTY: Self = Self(ByBucket::EMPTY);

    /// Counts one latency.
    pub fn record(&mut self, latency: Duration) {
        if let Some(count) = self.0.at(bucket(latency)) {
            *count = count.wrapping_add(1);
        }
    }

    /// The buckets that are not empty with their counts, lowest bucket first.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u16)> {
        self.0.iter().filter(|(_, count)| *count != 0)
    }
}

// None is left over when they are taken in fours.
const _: () = assert!(BUCKETS.is_multiple_of(4));

/// The quantile, in seconds, of weights by bucket, interpolated within the bucket.
pub(crate) fn quantile_of(
    weights: impl Iterator<Item = (usize, f64)> + Clone,
    quantile: f64,
) -> Option<f64> {
    let total = weights.clone().map(|(_, weight)| weight).sum();
    let filled = weights.filter(|(_, weight)| *weight > 0.0);
    quantile_among(filled, total, quantile)
}

/// The same of those that are not zero, and their sum.
fn quantile_among(
    filled: impl Iterator<Item = (usize, f64)>,
    total: f64,
    quantile: f64,
) -> Option<f64> {
    if total <= 0.0 {
        return None;
    }
    let wanted = total * quantile.clamp(0.0, 1.0);
    let mut below = 0.0;
    let mut last = None;
    for (index, weight) in filled {
        let (low, high) = bounds(index);
        if below + weight >= wanted {
            return Some(low + (high - low) * ((wanted - below) / weight).clamp(0.0, 1.0));
        }
        below += weight;
        last = Some(high);
    }
    last
}

/// The weight of the latencies above `seconds`, interpolated within a bucket.
pub(crate) fn above_of(weights: impl Iterator<Item = (usize, f64)>, seconds: f64) -> f64 {
    above_among(weights.filter(|(_, weight)| *weight > 0.0), seconds)
}

/// The same of those that are not zero.
fn above_among(filled: impl Iterator<Item = (usize, f64)>, seconds: f64) -> f64 {
    let above = filled.map(|(index, weight)| {
        let (low, high) = bounds(index);
        weight * ((high - seconds) / (high - low)).clamp(0.0, 1.0)
    });
    above.sum()
}

/// The mean, in seconds, of weights by bucket.
pub(crate) fn mean_of(weights: impl Iterator<Item = f64>) -> Option<f64> {
    let (total, sum) = weights
        .enumerate()
        .fold((0.0, 0.0), |(total, sum), (index, weight)| {
            let (low, high) = bounds(index);
            (total + weight, sum + weight * (low + high) / 2.0)
        });
    (total > 0.0).then(|| sum / total)
}

/// The bucket of a latency.
pub(crate) fn bucket(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    if micros < 1 << LOWEST_BITS {
        return 0;
    }
    let octave = 63 - micros.leading_zeros();
    let sub = (micros >> (octave - SUB_BITS)) & ((1 << SUB_BITS) - 1);
    let index = u64::from((octave - LOWEST_BITS) << SUB_BITS) + sub;
    usize::try_from(index).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// A bucket's bounds in seconds.
fn bounds(index: usize) -> (f64, f64) {
    (
        if index == 0 { 0.0 } else { lower_bound(index) },
        lower_bound(index + 1),
    )
}

fn lower_bound(index: usize) -> f64 {
    let sub = 1 << SUB_BITS;
    #[expect(clippy::cast_precision_loss, reason = "an index below 97")]
    let fraction = 1.0 + (index % sub) as f64 / sub as f64;
    #[expect(clippy::cast_precision_loss, reason = "a power of two")]
    let octave = (1_u64 << (index / sub)) as f64;
    64e-6 * fraction * octave
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "counts wrap, and only differences of them mean anything"
)]
const fn low_quarter(n: u64) -> u16 {
    n as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::LATENCY_TARGET;

    #[test]
    fn buckets_stand_side_by_side() {
        for index in 1..BUCKETS - 1 {
            let low = Duration::from_secs_f64(lower_bound(index));
            assert_eq!(bucket(low), index);
            assert_eq!(bucket(low - Duration::from_micros(1)), index - 1);
        }
        assert_eq!(bucket(Duration::ZERO), 0);
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    /// Or no queue would show where answers take so long.
    #[test]
    fn latencies_up_to_the_longest_objective_are_told_apart() {
        assert!(bucket(LATENCY_TARGET.max) < BUCKETS - 1);
    }

    #[test]
    fn a_quantile_is_off_by_less_than_a_bucket() {
        let mut histogram = Histogram::default();
        for ms in 1..=1000 {
            histogram.record(Duration::from_millis(ms));
        }
        for (quantile, expected) in [(0.1, 0.1), (0.5, 0.5), (0.99, 0.99)] {
            let found = histogram.quantile(quantile).unwrap();
            assert!(
                (found / expected - 1.0).abs() < 0.13,
                "p{quantile}: {found}"
            );
        }
        assert!((histogram.mean().unwrap() / 0.5 - 1.0).abs() < 0.05);
    }

    #[test]
    fn the_growth_of_a_growing_histogram_is_a_window_even_if_it_wrapped() {
        let mut growing = GrowingHistogram::default();
        let mut window = Histogram::default();
        let fast = Duration::from_millis(3);
        (0..65_530).for_each(|_| growing.record(fast));
        let before = growing.clone();
        (0..10).for_each(|_| growing.record(fast));
        growing.record(Duration::from_secs(100));
        for bucket in 0..BUCKETS {
            let [now, then] = [&growing, &before].map(|counts| {
                let found = counts.filled().find(|(filled, _)| *filled == bucket);
                found.map_or(0, |(_, count)| u64::from(count))
            });
            window.add_grown(bucket, now.wrapping_sub(then));
        }
        assert_eq!(window.len(), 11);
        let mut sum = Histogram::default();
        (0..10).for_each(|_| sum.record(fast));
        sum.record(Duration::from_secs(100));
        assert_eq!(window, sum);
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::default().mean(), None);
    }
}

//! Exact counts of the last ten seconds.
//!
//! A decaying average depends on how fast outcomes came: a total outage in one millisecond barely moves it. Counts in
//! fixed buckets do not.

use core::time::Duration;

use crate::time::Instant;

const BUCKETS: usize = 10;
/// The newest buckets that count as fresh.
const FRESH: usize = 2;
/// The width of one bucket. Ten buckets outlast a garbage collection or a rescheduled pod, and forget an ended outage within
/// 10 s.
const WIDTH: Duration = Duration::from_secs(1);

/// Successes and failures of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BucketOutcomes {
    pub(crate) successes: u64,
    pub(crate) failures: u64,
    /// The time in which they came.
    pub(crate) span: Duration,
}

impl BucketOutcomes {
    /// How many outcomes.
    pub(crate) const fn total(self) -> u64 {
        self.successes.saturating_add(self.failures)
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            successes: self.successes.saturating_add(other.successes),
            failures: self.failures.saturating_add(other.failures),
            span: self.span.saturating_add(other.span),
        }
    }

    /// Whether failures make up at least `ratio` (0..=1) of at least `volume` outcomes.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of ten seconds stay below 2^53"
    )]
    pub(crate) fn fail_at_least(self, ratio: f64, volume: u64) -> bool {
        self.total() >= volume && self.failures as f64 >= ratio * self.total() as f64
    }
}

/// One bucket as it is kept, in half of the room: a leader has a window for each upstream.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    successes: u32,
    failures: u32,
    span_ns: u64,
}

impl Bucket {
    /// No bucket counts 2^32 outcomes, or 500 years.
    fn of(outcomes: BucketOutcomes) -> Self {
        Self {
            successes: u32::try_from(outcomes.successes).unwrap_or(u32::MAX),
            failures: u32::try_from(outcomes.failures).unwrap_or(u32::MAX),
            span_ns: u64::try_from(outcomes.span.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn outcomes(self) -> BucketOutcomes {
        BucketOutcomes {
            successes: self.successes.into(),
            failures: self.failures.into(),
            span: Duration::from_nanos(self.span_ns),
        }
    }
}

/// A ring of buckets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    buckets: [Bucket; BUCKETS],
    newest: u64,
}

impl Window {
    pub(crate) fn add(&mut self, outcomes: BucketOutcomes, now: Instant) {
        self.roll(now);
        if let Some(bucket) = self.buckets.get_mut(slot(self.newest)) {
            *bucket = Bucket::of(bucket.outcomes().and(&outcomes));
        }
    }

    /// The newest two buckets, with the unfinished one: an ended outage leaves them soon.
    pub(crate) fn fresh(&mut self, now: Instant) -> BucketOutcomes {
        self.recent(FRESH, now)
    }

    /// Successes a second in them.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of ten seconds stay below 2^53"
    )]
    pub(crate) fn success_rate(&mut self, now: Instant) -> f64 {
        let BucketOutcomes {
            successes, span, ..
        } = self.fresh(now);
        successes as f64 / span.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The newest `count` buckets, with the unfinished one.
    fn recent(&mut self, count: usize, now: Instant) -> BucketOutcomes {
        self.roll(now);
        (0..count.min(BUCKETS) as u64)
            .filter_map(|back| self.newest.checked_sub(back))
            .filter_map(|index| self.buckets.get(slot(index)))
            .fold(BucketOutcomes::default(), |sum, bucket| {
                sum.and(&bucket.outcomes())
            })
    }

    pub(crate) fn whole(&mut self, now: Instant) -> BucketOutcomes {
        self.roll(now);
        let all = self.buckets.iter();
        let none = BucketOutcomes::default();
        all.fold(none, |sum, bucket| sum.and(&bucket.outcomes()))
    }

    pub(crate) fn clear(&mut self) {
        self.buckets = [Bucket::default(); BUCKETS];
    }

    fn roll(&mut self, now: Instant) {
        let current = now.saturating_since(Instant::ZERO).as_secs() / WIDTH.as_secs();
        let steps = current.saturating_sub(self.newest).min(BUCKETS as u64);
        for step in 0..steps {
            if let Some(bucket) = self.buckets.get_mut(slot(current - step)) {
                *bucket = Bucket::default();
            }
        }
        self.newest = self.newest.max(current);
    }
}

fn slot(index: u64) -> usize {
    usize::try_from(index % BUCKETS as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    const ONE_EACH: BucketOutcomes = BucketOutcomes {
        successes: 1,
        failures: 1,
        span: Duration::from_millis(500),
    };

    #[test]
    fn outcomes_older_than_the_window_are_gone() {
        let mut window = Window::default();
        for second in 0..20 {
            window.add(ONE_EACH, at(second));
        }
        assert_eq!(
            window.whole(at(19)),
            BucketOutcomes {
                successes: 10,
                failures: 10,
                span: Duration::from_secs(5),
            }
        );
        assert_eq!(window.fresh(at(19)).total(), 4);
        assert!((window.success_rate(at(19)) - 2.0).abs() < 1e-9);
        assert_eq!(window.whole(at(24)).total(), 10);
        assert_eq!(window.whole(at(1_000)).total(), 0);
    }

    #[test]
    fn a_jump_backwards_keeps_counting() {
        let mut window = Window::default();
        window.add(ONE_EACH, at(100));
        window.add(ONE_EACH, at(3));
        assert_eq!(window.whole(at(100)).total(), 4);
    }
}

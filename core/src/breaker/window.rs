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

    /// Whether failures make up at least `ratio` (0..=1) of at least `volume` outcomes.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of ten seconds stay below 2^53"
    )]
    pub(crate) fn fail_at_least(self, ratio: f64, volume: u64) -> bool {
        self.total() >= volume && self.failures as f64 >= ratio * self.total() as f64
    }

    /// Successes a second; 0 without a span.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of ten seconds stay below 2^53"
    )]
    pub(crate) fn success_rate(self) -> f64 {
        self.successes as f64 / self.span.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// The counts of one bucket as they are kept.
#[derive(Clone, Copy, Debug, Default)]
struct BucketCounts {
    successes: u32,
    failures: u32,
}

/// A ring of buckets. Their spans are of use while they are fresh, and counts take no room while there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    counts: Option<Box<[BucketCounts; BUCKETS]>>,
    /// The spans of the newest buckets, the newest first.
    spans: [Duration; FRESH],
    newest: u64,
}

impl Window {
    pub(crate) fn add(&mut self, outcomes: BucketOutcomes, now: Instant) {
        self.roll(now);
        let [span, ..] = &mut self.spans;
        *span = span.saturating_add(outcomes.span);
        if outcomes.total() == 0 {
            return;
        }
        let counts = self.counts.get_or_insert_default();
        if let Some(bucket) = counts.get_mut(slot(self.newest)) {
            // No bucket counts 2^32 outcomes.
            let half = |count| u32::try_from(count).unwrap_or(u32::MAX);
            bucket.successes = bucket.successes.saturating_add(half(outcomes.successes));
            bucket.failures = bucket.failures.saturating_add(half(outcomes.failures));
        }
    }

    /// The newest two buckets, with the unfinished one: an ended outage leaves them soon.
    pub(crate) fn fresh(&mut self, now: Instant) -> BucketOutcomes {
        self.roll(now);
        let newest = (0..FRESH as u64).filter_map(|back| self.newest.checked_sub(back));
        let span = self.spans.iter().sum();
        BucketOutcomes {
            span,
            ..self.sum(newest.map(slot))
        }
    }

    /// All buckets; their span is not known.
    pub(crate) fn whole(&mut self, now: Instant) -> BucketOutcomes {
        self.roll(now);
        self.sum(0..BUCKETS)
    }

    /// The outcomes in these places of the ring.
    fn sum(&self, places: impl Iterator<Item = usize>) -> BucketOutcomes {
        let mut sum = BucketOutcomes::default();
        if let Some(counts) = &self.counts {
            for bucket in places.filter_map(|place| counts.get(place)) {
                sum.successes += u64::from(bucket.successes);
                sum.failures += u64::from(bucket.failures);
            }
        }
        sum
    }

    pub(crate) fn clear(&mut self) {
        self.counts = None;
        self.spans = [Duration::ZERO; FRESH];
    }

    fn roll(&mut self, now: Instant) {
        let current = now.saturating_since(Instant::ZERO).as_secs() / WIDTH.as_secs();
        let steps = current.saturating_sub(self.newest).min(BUCKETS as u64);
        self.newest = self.newest.max(current);
        if steps == 0 {
            return;
        }
        self.spans.rotate_right(1);
        let [newest, rest @ ..] = &mut self.spans;
        *newest = Duration::ZERO;
        if steps > 1 {
            rest.fill(Duration::ZERO);
        }
        let Some(counts) = &mut self.counts else {
            return;
        };
        for step in 0..steps {
            if let Some(bucket) = counts.get_mut(slot(current - step)) {
                *bucket = BucketCounts::default();
            }
        }
        let is_empty = |bucket: &BucketCounts| bucket.successes == 0 && bucket.failures == 0;
        if counts.iter().all(is_empty) {
            self.counts = None;
        }
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
        let whole = BucketOutcomes {
            successes: 10,
            failures: 10,
            span: Duration::ZERO,
        };
        assert_eq!(window.whole(at(19)), whole);
        assert_eq!(window.fresh(at(19)).total(), 4);
        assert!((window.fresh(at(19)).success_rate() - 2.0).abs() < 1e-9);
        assert_eq!(window.whole(at(24)).total(), 10);
        assert_eq!(window.whole(at(1_000)).total(), 0);
    }

    #[test]
    fn counts_take_room_while_there_are_some() {
        let mut window = Window::default();
        let nothing = BucketOutcomes {
            span: Duration::from_millis(500),
            ..BucketOutcomes::default()
        };
        window.add(nothing, at(1));
        assert!(window.counts.is_none());
        window.add(ONE_EACH, at(1));
        assert!(
            (window.fresh(at(1)).success_rate() - 1.0).abs() < 1e-9,
            "in 1 s"
        );
        for second in 2..11 {
            window.add(nothing, at(second));
            assert!(window.counts.is_some());
        }
        window.add(nothing, at(11));
        assert!(window.counts.is_none());
        assert_eq!(window.fresh(at(11)).span, Duration::from_secs(1));
    }

    #[test]
    fn a_jump_backwards_keeps_counting() {
        let mut window = Window::default();
        window.add(ONE_EACH, at(100));
        window.add(ONE_EACH, at(3));
        assert_eq!(window.whole(at(100)).total(), 4);
    }
}

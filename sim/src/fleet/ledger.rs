//! The record of a shard: counts and latencies by tenths of a second, levels at their ends, and what each caller got.
//!
//! Sums of shards commute, so that the order in which they are merged does not matter.

use tidegate_core::{BreakerPhase as Breaker, Histogram};

use super::proxy::Look;

/// Tenths of a second: the resolution of the record.
pub(super) const BIN_NS: u64 = 100_000_000;
/// The same in seconds.
pub(super) const BIN_S: f64 = 0.1;
/// Bins in a second.
pub(super) const BINS_PER_SECOND: usize = 10;

/// A tenth of a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Bin {
    pub(super) counts: BinCounts,
    /// Of answers 200, as their callers saw them.
    pub(super) latency: Histogram,
    pub(super) levels: Levels,
}

/// What happened in it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BinCounts {
    pub(super) offered: u64,
    pub(super) admitted: u64,
    pub(super) shed_by_limit: u64,
    pub(super) shed_by_breaker: u64,
    /// Answers 200 within the objective's latency.
    pub(super) good: u64,
    pub(super) late: u64,
    pub(super) failed: u64,
    pub(super) gave_up: u64,
    pub(super) received: u64,
    pub(super) trips: u64,
}

/// How things stood at its end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Levels {
    /// Requests that proxies hold.
    pub(super) held: u64,
    /// Requests in slots, and in lines before them.
    pub(super) in_service: u64,
    pub(super) waiting: u64,
    /// Sum of the proxies' limits; looked at once a second.
    pub(super) limit: u64,
    /// Proxies whose breaker is not closed; the same.
    pub(super) not_closed: u64,
}

/// Sums by which the evenness of a share is judged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
}

/// What one caller sent and got.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) offered: u32,
    pub(super) admitted: u32,
    pub(super) is_heavy: bool,
}

/// One second's evenness among callers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evenness {
    /// Of admitted requests.
    pub(super) admitted: Moments,
    /// Of the share of a caller's requests that was admitted.
    pub(super) served: Moments,
}

/// The whole record.
#[derive(Debug, Clone, Default)]
pub(super) struct ShardLedger {
    pub(super) bins: Vec<Bin>,
    pub(super) seconds: Vec<Evenness>,
    /// What each caller got in the judged part of each phase.
    pub(super) shares: Vec<Vec<Share>>,
    /// Requests that engines believe to be in flight after the end: anything but 0 is a leak.
    pub(super) leaked: u64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.n += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// How evenly it is shared: 1 when all have the same, 1/n when one has all; none when all have nothing. The
    /// index of Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", 1984.
    pub(super) fn fairness(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.sum * self.sum / (self.n * self.squares))
    }
}

impl Share {
    /// The share of its requests that was admitted.
    pub(super) fn served(&self) -> f64 {
        f64::from(self.admitted) / f64::from(self.offered.max(1))
    }
}

impl Evenness {
    /// Adds one caller's second; a caller that sent nothing has no share.
    pub(super) fn add(&mut self, share: &Share) {
        if share.offered > 0 {
            self.admitted.add(f64::from(share.admitted));
            self.served.add(share.served());
        }
    }
}

impl Levels {
    /// Adds one proxy's.
    pub(super) fn add(&mut self, look: Option<Look>) {
        if let Some(look) = look {
            self.limit += u64::from(look.limit);
            self.not_closed += u64::from(look.breaker != Breaker::Closed);
        }
    }
}

impl ShardLedger {
    /// A ledger of so many bins and phases.
    pub(super) fn new(bins: usize, phases: usize) -> Self {
        Self {
            bins: vec![Bin::default(); bins],
            seconds: vec![Evenness::default(); bins.div_ceil(BINS_PER_SECOND)],
            shares: vec![Vec::new(); phases],
            leaked: 0,
        }
    }

    /// Adds another shard's.
    pub(super) fn merge(&mut self, other: Self) {
        for (bin, more) in self.bins.iter_mut().zip(other.bins) {
            bin.merge(&more);
        }
        for (second, more) in self.seconds.iter_mut().zip(other.seconds) {
            second.admitted.merge(&more.admitted);
            second.served.merge(&more.served);
        }
        for (shares, more) in self.shares.iter_mut().zip(other.shares) {
            shares.extend(more);
        }
        self.leaked += other.leaked;
    }
}

impl Bin {
    /// Adds another's: counts and levels of other proxies and endpoints.
    pub(super) fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.latency.merge(&other.latency);
        let (levels, more) = (&mut self.levels, &other.levels);
        levels.held += more.held;
        levels.in_service += more.in_service;
        levels.waiting += more.waiting;
        levels.limit += more.limit;
        levels.not_closed += more.not_closed;
    }
}

impl BinCounts {
    /// Adds another's.
    pub(super) const fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.admitted += other.admitted;
        self.shed_by_limit += other.shed_by_limit;
        self.shed_by_breaker += other.shed_by_breaker;
        self.good += other.good;
        self.late += other.late;
        self.failed += other.failed;
        self.gave_up += other.gave_up;
        self.received += other.received;
        self.trips += other.trips;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_a_share_for_one_who_has_all() {
        let fairness = |shares: &[f64]| {
            let mut moments = Moments::default();
            shares.iter().for_each(|share| moments.add(*share));
            moments.fairness()
        };
        assert_eq!(fairness(&[0.0, 0.0]), None);
        assert!((fairness(&[2.0, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((fairness(&[0.0, 0.0, 5.0, 0.0]).unwrap() - 0.25).abs() < 1e-12);
    }
}

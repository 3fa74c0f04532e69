//! Whether failures come because of load.
//!
//! Such failures betray themselves: the failed requests were admitted at higher load than the successful ones (a full queue
//! refuses, a short one does not), while a dead upstream fails at any load. They lower the limit.

/// Too few of either kind tell nothing about load.
const MIN_PER_SIDE: f64 = 5.0;
/// How many standard errors apart the loads must be (one-sided, 1 in 740 by chance).
const LOAD_SIGNIFICANCE: f64 = 3.0;
/// And how much apart, for a difference that matters.
const MIN_LOAD_RATIO: f64 = 1.03;

/// Sums of the loads at which requests of one kind were admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Loads {
    pub(crate) n: f64,
    pub(crate) sum: f64,
    pub(crate) squares: f64,
}

impl Loads {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean load, or zero when there is none.
    pub(crate) fn mean(&self) -> f64 {
        if self.n > 0.0 { self.sum / self.n } else { 0.0 }
    }

    pub(crate) fn variance_of_mean(&self) -> f64 {
        if self.n > 1.0 {
            let mean = self.mean();
            ((self.squares / self.n - mean * mean).max(0.0) + 1.0 / 12.0) / self.n
        } else {
            f64::MAX
        }
    }
}

/// Whether failures come with load: Welch's t-test on the loads at admission (B. L. Welch, Biometrika 1947).
pub(crate) fn is_caused_by_load(failures: &Loads, successes: &Loads) -> bool {
    if failures.n < MIN_PER_SIDE || successes.n < MIN_PER_SIDE {
        return false;
    }
    let error = (failures.variance_of_mean() + successes.variance_of_mean()).sqrt();
    let difference = failures.mean() - successes.mean();
    difference > LOAD_SIGNIFICANCE * error && failures.mean() > MIN_LOAD_RATIO * successes.mean()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_failures_that_come_together_are_told_from_those_that_do_not() {
        let loads = |range: core::ops::Range<u32>| Loads {
            n: f64::from(range.end - range.start),
            sum: range.clone().map(f64::from).sum(),
            squares: range.map(|load| f64::from(load * load)).sum(),
        };
        assert!(is_caused_by_load(&loads(30..40), &loads(10..30)));
        assert!(!is_caused_by_load(&loads(10..30), &loads(10..30)));
        assert!(
            !is_caused_by_load(&loads(1..5), &loads(10..30)),
            "an outage empties the proxy"
        );
        assert!(
            !is_caused_by_load(&loads(30..33), &loads(10..30)),
            "three failures tell nothing"
        );
    }
}

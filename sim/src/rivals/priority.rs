//! Priorities of requests and their histogram, by which DAGOR and Cinnamon cut off.
//!
//! A request has a class and, inside it, a user (DAGOR) or cohort (Cinnamon): a stable hash of its caller in 128 parts. The
//! two together are one number, the greater the more important, and a shedder admits requests at or above its cut-off. A
//! histogram of the last requests shows which cut-off admits a given number of them.
//!
//! Sources: H. Zhou et al., "Overload Control for Scaling WeChat Microservices", SoCC 2018, section 4.2
//! (business and user priority, 128 users); Uber, "Cinnamon", 2023 (tiers with 128 cohorts each).

use tidegate_core::Criticality;

use crate::number;

/// Users or cohorts of a class.
const COHORTS: u64 = 128;
/// Number of priorities.
const PRIORITIES: usize = Criticality::ALL.len() * 128;

/// The priority of a request, 0 up to 511: the greater is kept longer.
pub(super) fn of(criticality: Criticality, cohort: u64) -> usize {
    let cohort = usize::try_from(cohort % COHORTS).unwrap_or(0);
    criticality.index() * PRIORITIES / Criticality::ALL.len() + cohort
}

/// How many requests asked, by priority.
#[derive(Debug, Clone)]
pub(super) struct PriorityHistogram {
    counts: Vec<u32>,
    total: u32,
}

impl PriorityHistogram {
    /// An empty histogram.
    pub(super) fn new() -> Self {
        Self {
            counts: vec![0; PRIORITIES],
            total: 0,
        }
    }

    /// Counts a request.
    pub(super) fn add(&mut self, priority: usize) {
        if let Some(count) = self.counts.get_mut(priority) {
            *count += 1;
            self.total += 1;
        }
    }

    /// Forgets all requests.
    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// Requests counted.
    pub(super) const fn total(&self) -> u32 {
        self.total
    }

    /// The least cut-off at or above which there are at most `expected` requests; 0 admits all.
    pub(super) fn cut_off(&self, expected: f64) -> usize {
        let mut admitted = 0;
        for (priority, count) in self.counts.iter().enumerate().rev() {
            admitted += u64::from(*count);
            if number::float(admitted) > expected {
                return priority + 1;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_goes_before_cohort() {
        assert_eq!(of(Criticality::Sheddable, 0), 0);
        assert_eq!(of(Criticality::Sheddable, 127), 127);
        assert_eq!(of(Criticality::Sheddable, 128), 0, "128 parts");
        assert_eq!(of(Criticality::SheddablePlus, 0), 128);
        assert_eq!(of(Criticality::CriticalPlus, 127), PRIORITIES - 1);
    }

    #[test]
    fn cut_off_lets_in_what_is_expected_and_not_more() {
        let mut histogram = PriorityHistogram::new();
        for priority in [10, 10, 20, 300, 300, 300] {
            histogram.add(priority);
        }
        assert_eq!(histogram.cut_off(6.0), 0);
        assert_eq!(
            histogram.cut_off(5.9),
            11,
            "one of two equals cannot be told from the other"
        );
        assert_eq!(histogram.cut_off(3.5), 21);
        assert_eq!(histogram.cut_off(2.9), 301);
        histogram.clear();
        assert_eq!(histogram.cut_off(0.0), 0);
    }
}

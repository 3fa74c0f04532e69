//! The order in which requests are kept under overload.
//!
//! Criticality first; within one criticality first attempts before retries, so that a retry storm cannot push
//! out the requests that still have a chance.

use serde::{Deserialize, Serialize};

use crate::criticality::Criticality;

/// A rank in shedding: greater is kept longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Level(u8);

impl Level {
    /// How many levels there are: four criticalities, each as retry and as first attempt.
    pub const COUNT: usize = Criticality::ALL.len() * 2;
    /// Shed first: retries of what is sheddable.
    pub const LOWEST: Self = Self(0);

    /// The level of a request.
    #[must_use]
    pub const fn new(criticality: Criticality, retry: bool) -> Self {
        Self(criticality as u8 * 2 + if retry { 0 } else { 1 })
    }

    /// All levels, the least important first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..8).map(Self)
    }

    /// Whether the level is one of retries.
    #[must_use]
    pub const fn is_retry(self) -> bool {
        self.0.is_multiple_of(2)
    }

    /// Its criticality.
    #[must_use]
    pub fn criticality(self) -> Criticality {
        let class = Criticality::ALL.get(self.index() / 2);
        // There is no level beyond the last class.
        class.copied().unwrap_or(Criticality::CriticalPlus)
    }

    /// The level of first attempts of the same criticality.
    #[must_use]
    pub const fn first_attempt(self) -> Self {
        Self(self.0 | 1)
    }

    /// Its place among all levels, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_go_before_first_attempts_of_their_class_and_after_lesser_classes() {
        let first = Level::new(Criticality::Critical, false);
        let retry = Level::new(Criticality::Critical, true);
        let lesser = Level::new(Criticality::SheddablePlus, false);
        assert!(lesser < retry && retry < first);
        assert_eq!(retry.first_attempt(), first);
        assert_eq!(Level::all().count(), Level::COUNT);
    }

    #[test]
    fn a_level_knows_its_class() {
        for class in Criticality::ALL {
            for retry in [false, true] {
                assert_eq!(Level::new(class, retry).criticality(), class);
            }
        }
    }
}

//! What stories are drawn with.

use std::time::Duration;

use rand::RngCore;

use crate::number;
use crate::rng::{self, Generator, Purpose};

/// The chances of one story.
#[derive(Debug)]
pub(super) struct Dice(Generator);

impl Dice {
    /// Those of the story `number` of a seed.
    pub(super) fn of(seed: u64, number: u32) -> Self {
        Self(rng::generator(seed, Purpose::Story(number)))
    }

    /// Those of what the story has beyond that.
    pub(super) fn of_axes(seed: u64, number: u32) -> Self {
        Self(rng::generator(seed, Purpose::Axes(number)))
    }

    /// Those of a story of faults.
    pub(super) fn of_chaos(seed: u64, number: u32) -> Self {
        Self(rng::generator(seed, Purpose::Chaos(number)))
    }

    /// A number in `low..high`, each as likely.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * rng::unit(&mut self.0)
    }

    /// A number in `low..high`, each order of magnitude as likely.
    pub(super) fn scale(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(self.between(libm::log(low), libm::log(high)))
    }

    /// `first` or one of the others, each as likely.
    pub(super) fn one_of<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        let index = rng::index(&mut self.0, others.len() + 1);
        let other = index.checked_sub(1).and_then(|index| others.get(index));
        other.copied().unwrap_or(first)
    }

    /// True with this chance.
    pub(super) fn happens(&mut self, chance: f64) -> bool {
        rng::unit(&mut self.0) < chance
    }

    /// `most` of some things at the most, each as likely, in the order in which they come.
    pub(super) fn some_of<T: Copy>(&mut self, all: &[T], most: usize) -> Vec<T> {
        let mut left: Vec<(usize, T)> = all.iter().copied().enumerate().collect();
        let mut chosen = Vec::new();
        for _ in 0..most.min(left.len()) {
            chosen.push(left.swap_remove(rng::index(&mut self.0, left.len())));
        }
        chosen.sort_by_key(|(place, _)| *place);
        chosen.into_iter().map(|(_, one)| one).collect()
    }

    /// The seed of a run; TOML has a place for it.
    pub(super) fn seed(&mut self) -> u64 {
        u64::from(self.0.next_u32())
    }
}

/// With two decimals, as people write a rate or a share.
pub(super) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The nearest count.
pub(super) fn count(value: f64) -> u32 {
    u32::try_from(number::floor(value.round())).unwrap_or(u32::MAX)
}

/// Whole milliseconds.
pub(super) fn millis(value: f64) -> Duration {
    Duration::from_millis(u64::from(count(value)))
}

/// Whole microseconds.
pub(super) fn micros(value: f64) -> Duration {
    Duration::from_micros(u64::from(count(value)))
}

/// The moment at which a share of `length` is over, in whole milliseconds.
pub(super) fn part(length: Duration, share: f64) -> Duration {
    millis(number::millis(length) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_some_comes_up_as_often() {
        let mut dice = Dice::of(1, 0);
        let mut counts = [0_u32; 3];
        for _ in 0..3_000 {
            counts[dice.one_of(0, &[1, 2])] += 1;
        }
        // The standard deviation is 26.
        assert!(
            counts.iter().all(|n| (900..1_100).contains(n)),
            "{counts:?}"
        );
    }

    #[test]
    fn orders_of_magnitude_are_as_likely() {
        let mut dice = Dice::of(1, 0);
        let draws: Vec<f64> = (0..2_000).map(|_| dice.scale(2.0, 200.0)).collect();
        assert!(draws.iter().all(|draw| (2.0..200.0).contains(draw)));
        let small = draws.iter().filter(|draw| **draw < 20.0).count();
        // Half of them; the standard deviation is 22.
        assert!((900..1_100).contains(&small), "{small}");
    }
}

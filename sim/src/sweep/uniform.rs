//! Uniform random choices, from which stories are drawn.

use rand::RngCore;

use crate::rng::{self, Generator, RngPurpose};

/// The random choices of one story.
#[derive(Debug)]
pub(super) struct Uniform(Generator);

impl Uniform {
    /// The choices of the story `number` of a seed.
    pub(super) fn of(seed: u64, number: u32) -> Self {
        Self(rng::generator(seed, RngPurpose::Story(number)))
    }

    /// The choices of what a story of all axes has beyond that.
    pub(super) fn of_axes(seed: u64, number: u32) -> Self {
        Self(rng::generator(seed, RngPurpose::Axes(number)))
    }

    /// The choices of a story of faults.
    pub(super) fn of_chaos(seed: u64, number: u32) -> Self {
        Self(rng::generator(seed, RngPurpose::Chaos(number)))
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

    /// True with this probability.
    pub(super) fn happens(&mut self, chance: f64) -> bool {
        rng::unit(&mut self.0) < chance
    }

    /// Up to `most` items of `all`, each as likely, in their order in `all`.
    pub(super) fn some_of<T: Copy>(&mut self, all: &[T], most: usize) -> Vec<T> {
        let mut left: Vec<(usize, T)> = all.iter().copied().enumerate().collect();
        let mut chosen = Vec::new();
        for _ in 0..most.min(left.len()) {
            chosen.push(left.swap_remove(rng::index(&mut self.0, left.len())));
        }
        chosen.sort_by_key(|(place, _)| *place);
        chosen.into_iter().map(|(_, one)| one).collect()
    }

    /// A seed for a run, small enough for TOML.
    pub(super) fn seed(&mut self) -> u64 {
        u64::from(self.0.next_u32())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_some_comes_up_as_often() {
        let mut uniform = Uniform::of(1, 0);
        let mut counts = [0_u32; 3];
        for _ in 0..3_000 {
            counts[uniform.one_of(0, &[1, 2])] += 1;
        }
        // The standard deviation is 26.
        assert!(
            counts.iter().all(|n| (900..1_100).contains(n)),
            "{counts:?}"
        );
    }

    #[test]
    fn orders_of_magnitude_are_as_likely() {
        let mut uniform = Uniform::of(1, 0);
        let draws: Vec<f64> = (0..2_000).map(|_| uniform.scale(2.0, 200.0)).collect();
        assert!(draws.iter().all(|draw| (2.0..200.0).contains(draw)));
        let small = draws.iter().filter(|draw| **draw < 20.0).count();
        // Half of them; the standard deviation is 22.
        assert!((900..1_100).contains(&small), "{small}");
    }
}

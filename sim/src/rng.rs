//! Randomness that is the same on every machine.
//!
//! A run must have the same digest on every machine. So the generator is a specified one (`ChaCha` with 8 rounds, whose
//! output is fixed by its specification), and the laws drawn from it use the logarithm, exponential and cosine of
//! the `libm` crate: those of the standard library differ in the last bit between platforms. One seed feeds many
//! independent streams, so that a contender that draws more numbers in one place does not change those in another.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The generator of the simulator.
pub type Generator = ChaCha8Rng;

/// What a stream of random numbers is for. The numbers are part of every digest: a new purpose gets a new number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RngPurpose {
    /// The arrivals of one client, by its index.
    Arrivals(u32),
    /// Which proxy and worker a request goes to, and which caller sends it.
    Placement,
    /// Service times, errors and delays of one upstream, by its index.
    Upstream(u32),
    /// The network's jitter.
    Network,
    /// The pauses of callers that retry.
    Backoff,
    /// The seeds of the contender's instances.
    Contender,
    /// The balancers' choices.
    Balancing,
    /// What a sweep's story is made of, by its number.
    Story(u32),
    /// What a sweep's story has beyond that, by its number.
    Axes(u32),
    /// Uploads of one client, and how long it reads, by its index.
    Conduct(u32),
    /// What happens in a story of faults, by its number.
    Chaos(u32),
    /// Which calls the requests of services make.
    Calls,
    /// What one caller in a closed loop requests, by the index of its client (below 2^24) and its number in the pool.
    LoopRequests(u32, u32),
    /// Its pauses, its uploads, and how long it reads.
    LoopConduct(u32, u32),
}

/// The generator of `seed` for one purpose.
#[must_use]
pub fn generator(seed: u64, purpose: RngPurpose) -> Generator {
    let mut generator = Generator::seed_from_u64(seed);
    let (kind, index): (u64, u32) = match purpose {
        RngPurpose::Arrivals(index) => (1, index),
        RngPurpose::Placement => (2, 0),
        RngPurpose::Upstream(index) => (3, index),
        RngPurpose::Network => (4, 0),
        RngPurpose::Backoff => (5, 0),
        RngPurpose::Contender => (6, 0),
        RngPurpose::Balancing => (7, 0),
        RngPurpose::Story(index) => (9, index),
        RngPurpose::Conduct(index) => (10, index),
        RngPurpose::Axes(index) => (11, index),
        RngPurpose::Chaos(index) => (12, index),
        RngPurpose::Calls => (13, 0),
        // The other kinds leave the bits above free.
        RngPurpose::LoopRequests(client, member) => (14 | u64::from(client) << 8, member),
        RngPurpose::LoopConduct(client, member) => (15 | u64::from(client) << 8, member),
    };
    generator.set_stream(kind << 32 | u64::from(index));
    generator
}

/// A number in 0..1.
#[must_use]
pub fn unit(rng: &mut impl Rng) -> f64 {
    rng.random()
}

/// Exponential with mean 1.
#[must_use]
pub fn exponential(rng: &mut impl Rng) -> f64 {
    // 1 - u lies in (0, 1], whose logarithm is finite.
    -libm::log(1.0 - unit(rng))
}

/// Normal with mean 0 and standard deviation 1, by the method of Box and Muller (1958).
#[must_use]
pub fn normal(rng: &mut impl Rng) -> f64 {
    let (radius, angle) = (1.0 - unit(rng), unit(rng));
    (-2.0 * libm::log(radius)).sqrt() * libm::cos(std::f64::consts::TAU * angle)
}

/// An index below `count`; 0 when there is none.
#[must_use]
pub fn index(rng: &mut impl Rng, count: usize) -> usize {
    if count < 2 {
        return 0;
    }
    // `usize` ranges would draw differently on 32 and 64 bits.
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    usize::try_from(rng.random_range(0..count)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number;

    fn moments(mut draw: impl FnMut(&mut Generator) -> f64) -> (f64, f64) {
        let mut rng = generator(7, RngPurpose::Placement);
        let draws: Vec<f64> = (0..40_000).map(|_| draw(&mut rng)).collect();
        let count = number::float_len(draws.len());
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws
            .iter()
            .map(|draw| (draw - mean) * (draw - mean))
            .sum::<f64>()
            / count;
        (mean, variance)
    }

    #[test]
    fn laws_have_their_moments() {
        // Standard errors of 40,000 draws: 0.005 for the means; 0.014 and 0.007 for the variances.
        let (mean, variance) = moments(exponential);
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.06);
        let (mean, variance) = moments(normal);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let first = |purpose| unit(&mut generator(1, purpose));
        let streams = [
            first(RngPurpose::Arrivals(0)),
            first(RngPurpose::Arrivals(1)),
            first(RngPurpose::Upstream(0)),
            first(RngPurpose::Network),
            first(RngPurpose::Calls),
            first(RngPurpose::LoopRequests(0, 0)),
            first(RngPurpose::LoopRequests(0, 1)),
            first(RngPurpose::LoopRequests(1, 0)),
            first(RngPurpose::LoopConduct(0, 0)),
        ];
        for (position, one) in streams.iter().enumerate() {
            assert!(!streams[position + 1..].contains(one), "{streams:?}");
        }
    }

    #[test]
    fn draws_are_the_same_everywhere() {
        let mut rng = generator(42, RngPurpose::Network);
        let bits = [
            exponential(&mut rng).to_bits(),
            normal(&mut rng).to_bits(),
            u64::try_from(index(&mut rng, 1_000)).unwrap(),
        ];
        assert_eq!(
            bits,
            [4_587_388_462_088_883_223, 4_597_599_943_018_638_232, 920]
        );
    }
}

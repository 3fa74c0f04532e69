//! Callers with an identity: each has a proxy of its own or keeps one that it shares, and some send more than others.

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::rng;

/// The callers of a scenario. Its clients say what all of them together send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Callers {
    /// How many there are. Neighbors share a proxy; the caller counts of two proxies differ by at most one.
    pub count: u32,
    /// Those that send more; none: all send the same.
    #[serde(default)]
    pub heavy: Option<HeavyCallers>,
}

/// Callers that send more than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeavyCallers {
    /// One in this many callers is heavy, at least 2.
    pub one_in: u32,
    /// How many times as much it sends, at least 1.
    pub times: u32,
}

impl Callers {
    /// Every error as `path: what is wrong`.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |path: &str, found: u32, least: u32| {
            if found < least {
                faults.push(format!(
                    "callers.{path}: found {found}, expected >= {least}"
                ));
            }
        };
        check("count", self.count, 1);
        if let Some(heavy) = self.heavy {
            check("heavy.one_in", heavy.one_in, 2);
            check("heavy.times", heavy.times, 1);
        }
        faults
    }

    /// Whether a caller sends more than most.
    #[must_use]
    pub fn is_heavy(&self, caller: u32) -> bool {
        self.heavy
            .is_some_and(|heavy| caller.is_multiple_of(heavy.one_in.max(2)))
    }

    /// The proxy of a caller, as an index below `proxies`.
    #[must_use]
    pub fn proxy_of(&self, caller: u32, proxies: usize) -> usize {
        let proxies = u64::try_from(proxies).unwrap_or(u64::MAX);
        let place = u64::from(caller).saturating_mul(proxies) / u64::from(self.count.max(1));
        usize::try_from(place).unwrap_or(0)
    }

    /// A stable hash of a caller: multiplicative hashing by the golden ratio (D. Knuth, "The Art of Computer Programming",
    /// volume 3, 6.4).
    #[must_use]
    pub fn cohort_of(caller: u32) -> u64 {
        (u64::from(caller) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The caller of a request: each sends in proportion to its weight.
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        let below = |rng: &mut _, count: u32| {
            let drawn = rng::index(rng, usize::try_from(count).unwrap_or(usize::MAX));
            u32::try_from(drawn).unwrap_or(0)
        };
        let Some(HeavyCallers { one_in, times }) = self.heavy else {
            return below(rng, self.count);
        };
        let one_in = one_in.max(2);
        let heavy = self.count.div_ceil(one_in);
        let light = self.count - heavy;
        let weight = f64::from(heavy) * f64::from(times);
        if rng::unit(rng) * (weight + f64::from(light)) < weight {
            below(rng, heavy) * one_in
        } else {
            let light = below(rng, light);
            light + 1 + light / (one_in - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{RngPurpose, generator};

    #[test]
    fn each_caller_sends_by_its_weight_and_keeps_its_proxy() {
        let callers = Callers {
            count: 25,
            heavy: Some(HeavyCallers {
                one_in: 10,
                times: 10,
            }),
        };
        let mut rng = generator(5, RngPurpose::Placement);
        let mut sent = [0_u32; 25];
        for _ in 0..52_000 {
            sent[usize::try_from(callers.draw(&mut rng)).unwrap()] += 1;
        }
        // Three heavy ones of weight 10 and 22 light ones of weight 1; six standard deviations are 190 of 1,000.
        for (caller, sent) in (0..).zip(sent) {
            let expected = if callers.is_heavy(caller) {
                10_000
            } else {
                1_000
            };
            assert!(sent.abs_diff(expected) < expected / 5, "{caller}: {sent}");
        }
        let mut served = [0; 4];
        for caller in 0..25 {
            served[callers.proxy_of(caller, 4)] += 1;
        }
        assert_eq!(served, [7, 6, 6, 6]);
    }
}

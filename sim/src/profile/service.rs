//! Distributions of service time.

use std::time::Duration;

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::{number, rng as laws};

/// How long one request holds its slot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServiceTime {
    /// Always the same.
    Constant {
        /// The time.
        #[serde(with = "humantime_serde")]
        mean: Duration,
    },
    /// The logarithm is normally distributed: what most services look like.
    Lognormal {
        /// Arithmetic mean (not the median).
        #[serde(with = "humantime_serde")]
        mean: Duration,
        /// Standard deviation of the logarithm; 0.5 puts the 99th percentile at 2.8 x the mean.
        sigma: f64,
    },
    /// Two kinds of requests that look alike.
    Bimodal {
        /// Time of the cheap ones.
        #[serde(with = "humantime_serde")]
        fast: Duration,
        /// Time of the expensive ones.
        #[serde(with = "humantime_serde")]
        slow: Duration,
        /// Share of the expensive ones, 0..=1.
        slow_share: f64,
    },
}

impl ServiceTime {
    /// A constant service time.
    #[must_use]
    pub const fn constant(mean: Duration) -> Self {
        Self::Constant { mean }
    }

    /// Arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match *self {
            Self::Constant { mean } | Self::Lognormal { mean, .. } => mean,
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => number::seconds(
                fast.as_secs_f64() * (1.0 - slow_share) + slow.as_secs_f64() * slow_share,
            ),
        }
    }

    /// The same law with each time multiplied by a factor, at least 0.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        match *self {
            Self::Constant { mean } => Self::Constant {
                mean: mean.mul_f64(factor),
            },
            Self::Lognormal { mean, sigma } => Self::Lognormal {
                mean: mean.mul_f64(factor),
                sigma,
            },
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => Self::Bimodal {
                fast: fast.mul_f64(factor),
                slow: slow.mul_f64(factor),
                slow_share,
            },
        }
    }

    /// Mean of the times, each capped at `most`, in seconds.
    #[must_use]
    pub fn mean_within(&self, most: Duration) -> f64 {
        let cut = |time: Duration| time.min(most).as_secs_f64();
        match *self {
            Self::Constant { mean } => cut(mean),
            Self::Lognormal { mean, sigma } if sigma > 0.0 && !most.is_zero() => {
                let (mean, bound) = (mean.as_secs_f64(), most.as_secs_f64());
                let above_mu = libm::log(bound) - libm::log(mean) + sigma * sigma / 2.0;
                // The part of the mean that lies below the bound, by the partial expectation of the law.
                let deviations = (above_mu - sigma * sigma) / sigma;
                let below = mean * libm::erfc(-deviations / std::f64::consts::SQRT_2) / 2.0;
                let above = self.share_above(most);
                // Without a bound, nothing is above it.
                if above > 0.0 {
                    below + bound * above
                } else {
                    below
                }
            }
            Self::Lognormal { mean, .. } => cut(mean),
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => cut(fast) * (1.0 - slow_share) + cut(slow) * slow_share,
        }
    }

    /// Share of requests that take longer than `bound`, 0..=1.
    #[must_use]
    pub fn share_above(&self, bound: Duration) -> f64 {
        match *self {
            Self::Lognormal { mean, sigma } if sigma > 0.0 && !bound.is_zero() => {
                let mu = libm::log(mean.as_secs_f64()) - sigma * sigma / 2.0;
                let deviations = (libm::log(bound.as_secs_f64()) - mu) / sigma;
                libm::erfc(deviations / std::f64::consts::SQRT_2) / 2.0
            }
            Self::Constant { mean } | Self::Lognormal { mean, .. } => {
                f64::from(u8::from(mean > bound))
            }
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => {
                let (fast, slow) = (u8::from(fast > bound), u8::from(slow > bound));
                f64::from(fast) * (1.0 - slow_share) + f64::from(slow) * slow_share
            }
        }
    }

    /// Draws the time of one request.
    pub fn sample(&self, rng: &mut impl Rng) -> Duration {
        match *self {
            Self::Constant { mean } => mean,
            Self::Lognormal { mean, sigma } => {
                // The mean of a log-normal variable is exp(mu + sigma^2 / 2).
                let factor = libm::exp(sigma * laws::normal(rng) - sigma * sigma / 2.0);
                number::seconds(mean.as_secs_f64() * factor)
            }
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => {
                if laws::unit(rng) < slow_share {
                    slow
                } else {
                    fast
                }
            }
        }
    }

    /// What is wrong with the parameters, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match *self {
            Self::Lognormal { sigma, .. } if !(0.0..=3.0).contains(&sigma) => {
                Some("sigma must lie in 0..=3")
            }
            Self::Bimodal { slow_share, .. } if !(0.0..=1.0).contains(&slow_share) => {
                Some("slow_share must lie in 0..=1")
            }
            _ if self.mean().is_zero() => Some("the mean service time must be greater than 0"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lognormal_keeps_its_arithmetic_mean() {
        let law = ServiceTime::Lognormal {
            mean: Duration::from_millis(40),
            sigma: 0.5,
        };
        let mut rng = laws::generator(7, laws::RngPurpose::Upstream(0));
        let sum: f64 = (0..20_000)
            .map(|_| law.sample(&mut rng).as_secs_f64())
            .sum();
        let mean_ms = sum / 20_000.0 * 1_000.0;
        // The standard error of 20,000 draws is 0.15 ms.
        assert!((mean_ms - 40.0).abs() < 0.6, "{mean_ms}");
    }

    #[test]
    fn a_mean_of_what_is_cut_off_is_that_of_the_draws() {
        let law = ServiceTime::Lognormal {
            mean: Duration::from_secs(10),
            sigma: 1.0,
        };
        let most = Duration::from_secs(8);
        let mut rng = laws::generator(5, laws::RngPurpose::Upstream(0));
        let sum: f64 = (0..20_000)
            .map(|_| law.sample(&mut rng).min(most).as_secs_f64())
            .sum();
        let (found, expected) = (sum / 20_000.0, law.mean_within(most));
        // The standard error of 20,000 draws is 0.02 s.
        assert!((found - expected).abs() < 0.08, "{found} {expected}");
        assert!((law.mean_within(Duration::MAX) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn share_above_a_bound_is_that_of_the_draws() {
        let law = ServiceTime::Lognormal {
            mean: Duration::from_millis(40),
            sigma: 1.2,
        };
        let bound = Duration::from_millis(300);
        let mut rng = laws::generator(9, laws::RngPurpose::Upstream(0));
        let above = (0..40_000).filter(|_| law.sample(&mut rng) > bound).count();
        let found = number::float_len(above) / 40_000.0;
        // A share of 1.1 %; the standard error of 40,000 draws is 0.05 %.
        assert!((found - law.share_above(bound)).abs() < 0.002, "{found}");
        assert!((law.share_above(Duration::ZERO) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn bimodal_mean_weighs_the_shares() {
        let law = ServiceTime::Bimodal {
            fast: Duration::from_millis(10),
            slow: Duration::from_millis(120),
            slow_share: 0.1,
        };
        assert_eq!(law.mean(), Duration::from_millis(21));
    }
}

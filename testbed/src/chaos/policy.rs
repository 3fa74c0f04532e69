//! Policies that are pushed, good and bad.

use rand::Rng;
use rand::rngs::StdRng;

/// Name of the policy that is in force.
pub const POLICY: &str = "chaos";

/// Highest limit that the policy allows when nothing is pushed.
pub const MAX_LIMIT: u32 = 1_000;

/// A sound policy for the proxies of this run.
///
/// A breaker opens for two seconds at most, so that a run sees more than one recovery a minute.
#[must_use]
pub fn good(max_limit: u32) -> String {
    format!(
        "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata: {{name: {POLICY}}}\nspec:\n  \
         proxies: [{{id: 'tidegate-*'}}]\n  slo: {{latency: {{quantile: 0.99, target: 1s}}}}\n  \
         limit: {{max: {max_limit}}}\n  breaker: {{maxOpen: 2s}}\n"
    )
}

/// A policy that is wrong in one of several ways.
#[must_use]
pub fn bad(rng: &mut StdRng) -> String {
    let good = good(MAX_LIMIT);
    match rng.random_range(0..6) {
        0 => String::new(),
        1 => "{]".to_owned(),
        2 => good.replace("0.99", "1.5"),
        3 => good.replace("max: 1000", "min: 2000, max: 1000"),
        4 => format!("{good}  mood: bad\n"),
        _ => good.replace("target: 1s", "target: -3s"),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn every_bad_policy_differs_from_the_good_one() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..100 {
            assert_ne!(bad(&mut rng), good(MAX_LIMIT));
        }
    }
}

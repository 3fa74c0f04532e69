//! Whose queue it is.
//!
//! A proxy sees its own requests only, and a queue in front of the upstream may be of others. How much of it can be its own
//! has a bound: where a queue stands at all endpoints, each of them serves one request at the least. So the share of a proxy
//! in what is served is at most what it has in flight without a queue (Little's law) by the number of endpoints. Who has a
//! small share learns nothing from what it does alone: what it gives up, others get ([`super::cut`]).

use crate::ablation::{Mechanism, is_off};

/// A share below this is too small to learn from cuts that others do not make.
const TELLING_SHARE: f64 = 0.5;

/// Whether a queue that stands is mostly of other proxies, when this one has `carried` requests in flight without a queue
/// before so many `endpoints`. Of what is unknown (0) nothing is said.
pub(super) fn is_one_of_many(carried: f64, endpoints: u32) -> bool {
    carried > 0.0 && carried < TELLING_SHARE * f64::from(endpoints) && !is_off(Mechanism::OneOfMany)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fills_every_second_endpoint_may_be_alone() {
        assert!(is_one_of_many(3.2, 1_000));
        assert!(is_one_of_many(0.4, 1), "one of forty before one endpoint");
        assert!(!is_one_of_many(16.0, 8));
        assert!(!is_one_of_many(3.2, 0), "nobody said how many there are");
        assert!(!is_one_of_many(0.0, 8), "no answer has come yet");
        assert!(!is_one_of_many(f64::NAN, 8), "nothing is known of it");
    }
}

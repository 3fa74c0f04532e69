//! The waits after failed requests to the API server.
//!
//! kube's own backoff grows to 30 s, or up to 60 s with jitter: a change right after an outage would take effect that
//! late. A replica retries only its watches, its discovery and its lease, so attempts every few seconds are no load.
//! Jitter keeps apart the replicas that lost the server at the same moment.

use std::time::Duration;

use backon::ExponentialBuilder;
use kube::runtime::watcher::ExponentialBackoff;

/// The first wait, before jitter, which stretches it by a factor of up to two.
const FIRST: Duration = Duration::from_millis(800);

/// The longest wait before jitter: 5 s with it.
const LONGEST: Duration = Duration::from_millis(2_500);

/// Each wait is this many times the previous one.
const FACTOR: f32 = 2.0;

/// Endless waits of 0.8 s, 1.6 s, 2.5 s, 2.5 s and so on, each stretched by a factor of up to two.
pub(in crate::kube) fn backoff() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(FIRST)
        .with_max_delay(LONGEST)
        .with_factor(FACTOR)
        .with_jitter()
        .without_max_times()
        .into()
}

#[cfg(test)]
mod tests {
    use kube::runtime::utils::Backoff as _;

    use super::*;

    #[test]
    fn waits_grow_to_five_seconds_and_start_again_after_a_success() {
        let mut waits = backoff();
        for least in [800, 1_600, 2_500, 2_500, 2_500, 2_500] {
            let least = Duration::from_millis(least);
            let wait = waits.next().unwrap();
            assert!((least..=least * 2).contains(&wait), "{wait:?}");
        }
        waits.reset();
        assert!(waits.next().unwrap() <= FIRST * 2);
    }
}

//! How long is waited after a look at the API server that failed.
//!
//! kube's own pauses grow to half a minute, and to a whole one by chance: a change that was made right after an outage is
//! then that late in traffic. A replica asks for four things at most, so that a few seconds for each are no load, and
//! chance keeps replicas apart that have lost the server at the same moment.

use std::time::Duration;

use backon::ExponentialBuilder;
use kube::runtime::watcher::ExponentialBackoff;

/// The first pause, before chance stretches it up to twice.
const FIRST: Duration = Duration::from_millis(800);

/// The same of the longest: 5 s with the stretch.
const LONGEST: Duration = Duration::from_millis(2_500);

/// Each is so many times the one before.
const FACTOR: f32 = 2.0;

/// Pauses without end, each up to twice as long as it is here: 0.8 s, 1.6 s, 2.5 s, and so on with 2.5 s.
pub(super) fn pauses() -> ExponentialBackoff {
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
    fn pauses_grow_to_five_seconds_and_begin_anew_after_a_success() {
        let mut pauses = pauses();
        for least in [800, 1_600, 2_500, 2_500, 2_500, 2_500] {
            let least = Duration::from_millis(least);
            let pause = pauses.next().unwrap();
            assert!((least..=least * 2).contains(&pause), "{pause:?}");
        }
        pauses.reset();
        assert!(pauses.next().unwrap() <= FIRST * 2);
    }
}

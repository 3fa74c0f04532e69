//! Whether the first latencies are those of all requests, or only of the fast ones.
//!
//! What has been answered shortly after the first request was fast: the slow ones are still in flight. A baseline of
//! those alone takes every window that follows for a queue, and never learns better. By Little's law the mean latency
//! is the time that requests have spent in flight, for each answer; while the answers themselves say much less, the slow
//! ones are missing among them (statistics calls them censored).

use core::time::Duration;

use crate::sample::Sample;
use crate::tally::Count;

/// The answers are of all requests when their mean is this share of what Little's law says.
const ALIKE: f64 = 0.8;
/// Streams and hangs never end: after so long, what there is has to do.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has been seen since the first request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forming {
    span: Duration,
    /// Time spent in flight, and latencies of all answers; seconds.
    in_flight: f64,
    answered: f64,
}

impl Forming {
    /// One more window, with or without answers. True when the baseline is formed.
    pub(super) fn see(&mut self, window: &Sample) -> bool {
        let latency = &window.tally.latency;
        let answers = window.throughput() * window.span.as_secs_f64();
        self.span += window.span;
        self.in_flight += window.count(Count::InFlightMicros) / 1e6;
        self.answered += answers * latency.mean().unwrap_or_default();
        let is_alike = self.answered >= self.in_flight * ALIKE;
        self.answered > 0.0 && (is_alike || self.span >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of a second with so many in flight, and these answers (milliseconds).
    fn tenth(in_flight: u64, answers: &[u64]) -> Sample {
        let mut sample = Sample::empty(Duration::from_millis(100));
        for ms in answers {
            sample.tally.add_success(Duration::from_millis(*ms));
        }
        sample.tally.add(Count::InFlightMicros, in_flight * 100_000);
        sample
    }

    /// After how many tenths the baseline is formed, where after the first ones each is like the last.
    fn formed_after(windows: &[Sample]) -> Option<usize> {
        let mut forming = Forming::default();
        let last = windows.last().unwrap();
        (1..200).find(|tenth| forming.see(windows.get(tenth - 1).unwrap_or(last)))
    }

    #[test]
    fn the_first_answers_of_a_slow_service_are_only_the_fast_ones() {
        // A hundred requests a second: half of them take 50 ms, half 550 ms, of which none ends in the first half second.
        let fast = [50; 5];
        let both = [50, 50, 50, 50, 50, 550, 550, 550, 550, 550];
        let windows: Vec<Sample> = (0..5)
            .map(|tenth_number| tenth(5 + 5 * tenth_number, &fast))
            .chain([tenth(30, &both)])
            .collect();
        let formed = formed_after(&windows).unwrap();
        assert!((10..40).contains(&formed), "{formed}");
        assert_eq!(formed_after(&[tenth(5, &[50; 10])]), Some(1), "all of them");
    }

    #[test]
    fn what_never_ends_is_waited_for_so_long_and_no_longer() {
        let stuck = [tenth(30, &[50; 10])];
        assert_eq!(formed_after(&stuck), Some(100));
        assert_eq!(
            formed_after(&[tenth(30, &[])]),
            None,
            "nothing to form it of"
        );
    }
}

//! Whether holding requests back has made those that are let in any faster, where only a few are in flight.
//!
//! A queue is cut with what is in flight; a service that has become slower is not. [`super::knee`] tells one from the other by
//! throughput, and a handful of requests is too few for that: counts vary by their root, and a limit of three cannot be cut by
//! a quarter. Latencies vary less. So those of the window in which a queue was found are held against those since: if fewer
//! are in flight and each takes as long as before, time after time, the others were shed in vain.
//!
//! Where it has made them faster there was a queue, and of that nothing is asked for a while: if latency comes back, others
//! have taken the places.
//!
//! ```text
//! nothing --found--> window before --held, COMPARED answers--> as long: once more | shorter: a queue, for PROVED_FOR
//!    ^                    ^-------- neither: none so far --------'      |
//!    '---------------------- so many in a row: in vain <----------------'
//! ```

use core::ops::Range;
use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::histogram::Histogram;
use crate::sample::Sample;
use crate::time::Instant;

/// With more in flight than this throughput tells.
const FEW: f64 = 24.0;
/// Other proxies that hold the same queue find it up to a window later.
const OTHERS_FOLLOW: Duration = Duration::from_secs(1);
/// So many answers make a comparison.
const COMPARED: u64 = 20;
/// It counts where in-flight has come down to this share of what it was, ...
const HELD: f64 = 0.9;
/// ... and says that holding was in vain where mean latency is such a share of what it was. A queue would be shorter, and one
/// that others make longer is a queue.
const STAYS: Range<f64> = 0.94..1.25;
/// Below this share there was a queue. That is known for so long.
const FALLS: f64 = 0.75;
const PROVED_FOR: Duration = Duration::from_secs(60);
/// So many in a row must say so ...
const IN_A_ROW: u32 = 2;
/// ... where mean latency is below this share of the target, so that to let more in risks little, ...
const IN_TIME: f64 = 0.75;
/// ... and so many elsewhere: a queue that many proxies hold together keeps them all waiting.
const IN_A_ROW_LATE: u32 = 8;

/// What was before, what has been since, and what that said until now.
#[derive(Clone, Debug, Default)]
pub(super) struct Vain {
    before: Option<Sample>,
    found_at: Instant,
    since: Option<Sample>,
    in_a_row: u32,
    /// When holding back was last seen to shorten a queue.
    shortened_at: Option<Instant>,
}

impl Vain {
    /// A queue was found in `window`, and requests are held back from now on.
    pub(super) fn found(&mut self, window: &Sample, now: Instant) {
        self.found_at = now;
        // A comparison that was begun goes on: with few answers a congestion may be over before there are enough.
        if self.since.is_none() {
            let is_proved = self
                .shortened_at
                .is_some_and(|at| now.saturating_since(at) < PROVED_FOR);
            let is_few = window.mean_in_flight() <= FEW;
            self.before = (is_few && !is_proved).then(|| window.clone());
        }
    }

    /// What was before says nothing about what comes: the upstream has changed, or a queue is only assumed.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// One window while they are, against the objective's latency. When it is in vain: the latencies since, which have no
    /// queue in them.
    pub(super) fn held(
        &mut self,
        window: &Sample,
        target: Duration,
        now: Instant,
    ) -> Option<Histogram> {
        let before = self.before.as_ref()?;
        if now.saturating_since(self.found_at) < OTHERS_FOLLOW {
            return None;
        }
        let since = match self.since.take() {
            Some(mut since) => {
                since.extend(window);
                since
            }
            None => window.clone(),
        };
        if since.tally.latency.len() < COMPARED {
            self.since = Some(since);
            return None;
        }
        if since.mean_in_flight() > before.mean_in_flight() * HELD {
            return None;
        }
        let (mean, mean_before) = (since.tally.latency.mean()?, before.tally.latency.mean()?);
        let ratio = mean / mean_before;
        if ratio < FALLS {
            *self = Self {
                shortened_at: Some(now),
                ..Self::default()
            };
            return None;
        }
        self.in_a_row = if STAYS.contains(&ratio) {
            self.in_a_row.saturating_add(1)
        } else {
            0
        };
        let needed = if mean < target.as_secs_f64() * IN_TIME {
            IN_A_ROW
        } else {
            IN_A_ROW_LATE
        };
        if self.in_a_row < needed || is_off(Mechanism::Vain) {
            return None;
        }
        self.forget();
        Some(since.tally.latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Count;

    const TARGET: Duration = Duration::from_millis(300);

    /// A second with `answers` that took `ms` each, so many of them in flight as Little's law says.
    fn second(answers: u32, ms: u64) -> Sample {
        let mut sample = Sample::empty(Duration::from_secs(1));
        let latency = Duration::from_millis(ms);
        (0..answers).for_each(|_| sample.tally.latency.record(latency));
        let in_flight_us = u64::from(answers) * ms * 1_000;
        sample.tally.add(Count::InFlightMicros, in_flight_us);
        sample
    }

    /// After how many seconds holding was in vain, of sixty with these answers, when a queue was found in `before`.
    fn in_vain_after(before: &Sample, since: &Sample) -> Option<u64> {
        let mut vain = Vain::default();
        vain.found(before, Instant::ZERO);
        (1..60).find(|second| {
            let now = Instant::ZERO + Duration::from_secs(*second);
            vain.held(since, TARGET, now).is_some()
        })
    }

    #[test]
    fn a_service_that_is_slower_is_told_from_a_queue() {
        let found = second(30, 190);
        let slower = in_vain_after(&found, &second(12, 190));
        assert_eq!(slower, Some(4), "two comparisons of two windows each");
        assert_eq!(in_vain_after(&found, &second(20, 90)), None, "a queue");
        assert_eq!(
            in_vain_after(&found, &second(30, 190)),
            None,
            "nothing was held back"
        );
        let many = second(300, 190);
        assert_eq!(in_vain_after(&many, &second(120, 190)), None, "the knee's");
    }

    #[test]
    fn a_queue_that_holding_back_has_shortened_is_believed_in_when_others_make_it_longer() {
        // Three of four proxies took the queue of the others for a slower service, and held ever more of it.
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let held = |vain: &mut Vain, since: u64, ms| {
            let window = second(40, ms);
            (since..60).any(|now| vain.held(&window, TARGET, at(now)).is_some())
        };
        let found = second(100, 190);
        let mut vain = Vain::default();
        vain.found(&found, at(0));
        let shorter = vain.held(&second(40, 90), TARGET, at(1));
        assert!(shorter.is_none() && !held(&mut vain, 2, 190));
        vain.found(&found, at(59));
        assert!(!held(&mut vain, 59, 190), "it is known for a minute");
        let mut vain = Vain::default();
        vain.found(&found, at(0));
        assert!(!held(&mut vain, 1, 260), "others make it longer");
    }

    #[test]
    fn where_answers_come_late_it_takes_longer() {
        let found = second(30, 400);
        let late = in_vain_after(&found, &second(12, 400));
        assert_eq!(late, Some(16), "eight comparisons");
    }

    #[test]
    fn what_was_begun_in_one_congestion_goes_on_in_the_next() {
        let mut vain = Vain::default();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut ended = 0;
        for begin in (0..60).step_by(3) {
            // Each is over after one window of half a comparison.
            vain.found(&second(30, 190), at(begin));
            ended += u32::from(vain.held(&second(12, 190), TARGET, at(begin + 1)).is_some());
        }
        assert_eq!(ended, 5, "every fourth");
    }
}

//! An endpoint that pauses at times: garbage collection, CPU throttling.
//!
//! In each period of `every` it runs first, and pauses for the last `length`. During a pause no work progresses, no body
//! flows and nothing is answered; work that would have finished finishes later. New connections are still accepted and
//! refused, because the kernel does that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Regular stalls of a whole endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// From the beginning of one pause to the beginning of the next.
    #[serde(with = "humantime_serde")]
    pub every: Duration,
    /// How long each lasts; 0: there are none.
    #[serde(with = "humantime_serde")]
    pub length: Duration,
    /// Whether all endpoints pause at the same time; otherwise their pauses are spread evenly over `every`.
    #[serde(default)]
    pub together: bool,
}

/// The pauses of one endpoint on the clock of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseClock {
    every: u128,
    running: u128,
    shift: u128,
}

impl Pauses {
    /// Share of time in which an endpoint runs, 0..=1.
    #[must_use]
    pub fn running_share(&self) -> f64 {
        if self.every.is_zero() {
            return 1.0;
        }
        1.0 - self.length.as_secs_f64() / self.every.as_secs_f64()
    }

    /// The pauses of the endpoint `index` of `count`; none where it never pauses.
    #[must_use]
    pub fn clock(&self, index: u32, count: u32) -> Option<PauseClock> {
        let every = self.every.as_nanos();
        let running = every.checked_sub(self.length.as_nanos())?;
        if running == 0 || self.length.is_zero() {
            return None;
        }
        let shift = if self.together {
            0
        } else {
            every * u128::from(index) / u128::from(count.max(1))
        };
        Some(PauseClock {
            every,
            running,
            shift,
        })
    }
}

impl PauseClock {
    /// Time in which the endpoint runs between two moments of the run.
    #[must_use]
    pub fn running(&self, from: Duration, to: Duration) -> Duration {
        let ran = self.ran(to).saturating_sub(self.ran(from));
        nanos(ran)
    }

    /// When work of some length that begins at `from` is done. Without work: `from`, or the end of the pause around it.
    #[must_use]
    pub fn finish(&self, from: Duration, work: Duration) -> Duration {
        let target = self.ran(from) + work.as_nanos();
        let (whole, part) = (target / self.running, target % self.running);
        let at = if part == 0 && !work.is_zero() {
            // Done at the last moment of a period that runs, not after the pause.
            (whole - 1) * self.every + self.running
        } else {
            whole * self.every + part
        };
        from.max(nanos(at.saturating_sub(self.shift)))
    }

    /// The last moment at which work of some length can begin and be done at `until`.
    #[must_use]
    pub fn latest_start(&self, until: Duration, work: Duration) -> Duration {
        let target = self.ran(until).saturating_sub(work.as_nanos());
        let at = target / self.running * self.every + target % self.running;
        until.min(nanos(at.saturating_sub(self.shift)))
    }

    /// Time in which it has run, on its own clock.
    fn ran(&self, at: Duration) -> u128 {
        let at = at.as_nanos() + self.shift;
        at / self.every * self.running + (at % self.every).min(self.running)
    }
}

fn nanos(count: u128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// Runs for 1,750 ms, then stands still for 250 ms.
    fn pauses() -> Pauses {
        Pauses {
            every: ms(2_000),
            length: ms(250),
            together: false,
        }
    }

    #[test]
    fn work_takes_longer_by_the_pauses_in_it() {
        let clock = pauses().clock(0, 1).unwrap();
        for (from, work, done) in [
            (0, 100, 100),
            (1_700, 50, 1_750),
            (1_700, 51, 2_001),
            (1_800, 0, 2_000),
            (1_800, 10, 2_010),
            (1_600, 2_000, 4_100),
            (2_000, 0, 2_000),
        ] {
            assert_eq!(
                clock.finish(ms(from), ms(work)),
                ms(done),
                "{work} ms from {from}"
            );
        }
    }

    #[test]
    fn the_latest_start_is_in_time_and_no_later_one_is() {
        let clock = pauses().clock(1, 3).unwrap();
        for until in (500..6_000).step_by(37) {
            let start = clock.latest_start(ms(until), ms(120));
            assert!(clock.finish(start, ms(120)) <= ms(until), "{until}");
            let later = start + Duration::from_micros(1);
            assert!(clock.finish(later, ms(120)) > ms(until), "{until}");
        }
    }

    #[test]
    fn endpoints_pause_one_after_the_other_or_together() {
        let stands = |pauses: Pauses, index| {
            let clock = pauses.clock(index, 2).unwrap();
            clock.running(ms(1_750), ms(2_000)).is_zero()
        };
        assert_eq!([0, 1].map(|index| stands(pauses(), index)), [true, false]);
        let together = Pauses {
            together: true,
            ..pauses()
        };
        assert_eq!([0, 1].map(|index| stands(together, index)), [true, true]);
    }

    #[test]
    fn pauses_of_no_length_are_none() {
        let none = Pauses {
            length: Duration::ZERO,
            ..pauses()
        };
        assert_eq!(none.clock(0, 1), None);
        assert!((pauses().running_share() - 0.875).abs() < 1e-12);
    }
}

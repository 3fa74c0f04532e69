//! How long the rest of a benchmark takes.
//!
//! A run takes as long as its story and a little more: Envoy has to start, and the last callers have to get their answers or
//! give up. The clock learns the additional time from finished runs.

use std::time::Duration;

/// Additional time of a run, before any was measured.
const FIRST_GUESS: Duration = Duration::from_secs(1);

/// Sums up the stories still to be played, and the additional time of finished runs.
#[derive(Debug, Clone, Copy)]
pub struct BenchClock {
    stories: Duration,
    runs: u32,
    over: u32,
    beyond: Duration,
}

impl BenchClock {
    /// A clock for runs with stories of these lengths.
    #[must_use]
    pub fn new(lengths: impl IntoIterator<Item = Duration>) -> Self {
        let mut clock = Self {
            stories: Duration::ZERO,
            runs: 0,
            over: 0,
            beyond: Duration::ZERO,
        };
        for length in lengths {
            clock.stories += length;
            clock.runs += 1;
        }
        clock
    }

    /// Records that a run with a story of `length` ended after `took`.
    pub fn ended(&mut self, length: Duration, took: Duration) {
        self.stories = self.stories.saturating_sub(length);
        self.runs = self.runs.saturating_sub(1);
        self.over += 1;
        self.beyond += took.saturating_sub(length);
    }

    /// Estimated time until all runs are over.
    #[must_use]
    pub fn left(&self) -> Duration {
        let beyond = self.beyond.checked_div(self.over).unwrap_or(FIRST_GUESS);
        self.stories + beyond * self.runs
    }
}

/// A duration as people say it: `40 s`, `12 min`, `1 h 05 min`.
#[must_use]
pub fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let minutes = (seconds + 30) / 60;
    match (seconds, minutes) {
        (..90, _) => format!("{seconds} s"),
        (_, ..60) => format!("{minutes} min"),
        _ => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_runs_take_beyond_their_stories_is_learned() {
        let mut clock = BenchClock::new([s(10), s(20), s(30)]);
        assert_eq!(clock.left(), s(60) + FIRST_GUESS * 3);
        clock.ended(s(10), s(11));
        assert_eq!(clock.left(), s(52), "two stories and a second for each");
        clock.ended(s(20), s(23));
        assert_eq!(clock.left(), s(32), "two seconds on average");
        clock.ended(s(30), s(32));
        assert_eq!(clock.left(), Duration::ZERO);
    }

    #[test]
    fn durations_are_spoken_as_coarsely_as_they_are_long() {
        let texts = [s(40), s(100), s(3_540), s(3_900)].map(spoken);
        assert_eq!(texts, ["40 s", "2 min", "59 min", "1 h 05 min"]);
    }
}

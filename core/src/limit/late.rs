//! Late requests where the limit cannot show a queue.
//!
//! A proxy with few requests has less than one in flight. It fills no limit and refuses nothing, and less than one of its requests
//! waits, even if the upstream is overloaded by many such proxies. But its requests are late. So where the formula affords fewer
//! requests than the least limit, which is a whole number, late requests are counted instead. They show a queue, or a service
//! that became slower. Only a test of [hold](super::hold) can tell, and it begins on the beat: proxies that share the upstream must test at the
//! same moment. After a test that shows no queue, the next one comes later each time.
//!
//! Some requests are late without a queue, and a few of them may come in a row. So there must be more late ones than chance explains.
//!
//! If only half of the requests are slow, a row of late ones is slower than what follows it, because it was chosen for that. A test that is compared with it
//! finds a queue where there is none. So what follows the row must be late, too. If it is faster than the row, the test is compared
//! with it alone:
//!
//! ```text
//!              most are late             more than chance explains
//!   no row ---------------------> row ------------------------------> row, and what follows it
//!     ^                            |                                      |             |
//!     |   most are in time         |       on the beat: most are in time  |             | on the beat: most are late
//!     +----------------------------+--------------------------------------+             +---------------------------> a test
//! ```
//!
//! With any number of requests, callers may all leave before they get an answer. Then no latency shows the queue. The upstream may
//! continue with the requests of callers that left, so the queue grows though few requests are in flight.

use core::time::Duration;

use super::floor::Floor;
use super::hold::BEAT;
use super::queue_test::Measurement;
use crate::ablation::{Mechanism, is_off};
use crate::config::Slo;
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;

/// The fewest late requests that show anything, and the shortest time.
const FEWEST: f64 = 4.0;
const LEAST_SPAN: Duration = Duration::from_secs(2);
/// The logarithm of the odds against chance: one in 8,000.
pub(super) const SURE: f64 = 9.0;
/// Beats without a test after the first one that shows no queue, and the most.
const FIRST_PAUSE: u64 = 2;
const MOST_PAUSE: u64 = 64;
/// At least this share of the requests is taken to be late as usual, whatever is known.
const LEAST_USUAL: f64 = 0.01;

/// A row of late requests: suspected, or to be confirmed.
#[derive(Clone, Debug)]
struct LateRow {
    /// Windows in a row in which most requests were late.
    windows: Sample,
    /// All windows since the row has more late requests than chance explains; `None` before.
    since: Option<Sample>,
}

/// Late requests, and when they may be tested.
#[derive(Clone, Debug, Default)]
pub(super) struct LateRequests {
    /// `None` while most requests are in time. Boxed, because this is so for most upstreams.
    row: Option<Box<LateRow>>,
    /// The beat of the last window, by its number.
    beat: u64,
    /// Beats without a test after the last test, and the beat at which they end.
    pause: u64,
    paused_until: u64,
}

/// What late requests have shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum LateFinding {
    /// Nothing.
    Nothing,
    /// A queue, or a slower service. With what was measured, if a request was answered.
    Late(Option<Measurement>),
}

impl LateRequests {
    /// Whether most requests have been late lately.
    pub(super) const fn are_suspected(&self) -> bool {
        self.row.is_some()
    }

    /// No late requests are of interest.
    pub(super) fn forget(&mut self) {
        self.row = None;
    }

    /// A test has shown a queue, or none.
    pub(super) fn conclude(&mut self, is_queue: bool) {
        if is_queue {
            self.pause = 0;
        } else {
            self.pause = (self.pause * 2).clamp(FIRST_PAUSE, MOST_PAUSE);
            self.paused_until = self.beat + self.pause;
        }
    }

    /// Learns from one window, with or without answers. `clock` is the same for all proxies that share the upstream.
    pub(super) fn update(
        &mut self,
        window: &Sample,
        floor: &Floor,
        slo: &Slo,
        clock: Instant,
    ) -> LateFinding {
        let beat = clock.saturating_since(Instant::ZERO).as_secs() / BEAT.as_secs();
        let on_beat = core::mem::replace(&mut self.beat, beat) != beat;
        // A clock that jumped back does not make the pause longer.
        self.paused_until = self.paused_until.min(beat + MOST_PAUSE);
        if beat < self.paused_until || is_off(Mechanism::LateRequests) {
            self.forget();
            return LateFinding::Nothing;
        }
        let target = slo.latency_target().as_secs_f64();
        let Some(mut row) = self.row.take() else {
            if window.count(Count::Slow) > 0.0 && are_most_late(window, target) {
                let row = Box::new(LateRow {
                    windows: window.clone(),
                    since: None,
                });
                return self.suspect(row, on_beat, floor, target);
            }
            return LateFinding::Nothing;
        };
        let Some(since) = &mut row.since else {
            if are_most_late(window, target) {
                row.windows.extend(window);
                return self.suspect(row, on_beat, floor, target);
            }
            return LateFinding::Nothing;
        };
        since.extend(window);
        if on_beat && !are_most_late(since, target) {
            return LateFinding::Nothing;
        }
        if on_beat && since.count(Count::Slow) > 0.0 {
            return LateFinding::Late(row.measure());
        }
        self.row = Some(row);
        LateFinding::Nothing
    }

    /// Most requests have been late in the windows of the row.
    fn suspect(
        &mut self,
        mut row: Box<LateRow>,
        on_beat: bool,
        floor: &Floor,
        target: f64,
    ) -> LateFinding {
        let windows = &row.windows;
        let is_sure = windows.span >= LEAST_SPAN
            && is_beyond_chance(windows.count(Count::Slow), floor, target);
        if is_sure && is_off(Mechanism::LateConfirmed) {
            if on_beat {
                return LateFinding::Late(Measurement::of(windows));
            }
        } else if is_sure {
            row.since = Some(Sample::empty(Duration::ZERO));
        }
        self.row = Some(row);
        LateFinding::Nothing
    }
}

impl LateRow {
    /// What a test is compared with: all windows, or those since the row if they are faster than it.
    fn measure(mut self) -> Option<Measurement> {
        let since = self.since?;
        let is_faster = |mean| Some(mean) < self.windows.mean_latency();
        if since.mean_latency().is_some_and(is_faster) {
            return Measurement::of(&since);
        }
        self.windows.extend(&since);
        Measurement::of(&self.windows)
    }
}

/// Whether at least half of the requests of these windows were late, `target` in seconds; also without requests.
fn are_most_late(windows: &Sample, target: f64) -> bool {
    let share = windows.tally.latency.share_above(target);
    windows.count(Count::Answers) * (1.0 - share) <= windows.count(Count::Slow)
}

/// Whether chance does not explain so many late requests.
fn is_beyond_chance(late: f64, floor: &Floor, target: f64) -> bool {
    let usual = floor.share_above(target).max(LEAST_USUAL);
    late >= FEWEST && late * -libm::log(usual) >= SURE
}

/// Whether all places of the limit are in use by requests whose callers leave late, without an answer. The window has no answer of known
/// latency. A limit that refuses nothing has room, so a lower one would not help.
pub(super) fn do_callers_leave(window: &Sample, floor: &Floor, slo: &Slo) -> bool {
    let target = slo.latency_target().as_secs_f64();
    let late = window.count(Count::Slow);
    floor.is_known()
        && window.tally.refused_for_load() > 0
        && is_beyond_chance(late, floor, target)
        && !is_off(Mechanism::CallersLeave)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, MINIMAL_EXAMPLE};
    use crate::limit::testing::{assert_close, at, window};

    /// A second with answers of these latencies in milliseconds, against an objective of 300 ms.
    fn second(millis: &[u64]) -> Sample {
        let mut sample = window(1_000, 0, 0);
        for ms in millis {
            sample.tally.add_success(Duration::from_millis(*ms));
            if *ms > 300 {
                sample.tally.add(Count::Slow, 1);
            }
        }
        sample
    }

    /// The seconds in which late requests show something, if each second is like this one and no test shows a queue.
    fn shown(each: &Sample, floor: &Floor, seconds: u64) -> Vec<u64> {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        let mut late = LateRequests::default();
        let mut is_shown = |second: &u64| {
            let slo = config.default_policy().slo();
            let found = late.update(each, floor, slo, at(second * 1_000));
            let is_late = matches!(found, LateFinding::Late(_));
            if is_late {
                late.conclude(false);
            }
            is_late
        };
        (1..seconds).filter(|second| is_shown(second)).collect()
    }

    /// The first of them.
    fn shown_after(each: &Sample, floor: &Floor) -> Option<u64> {
        shown(each, floor, 20).first().copied()
    }

    /// A floor with so many late answers of ten.
    fn floor(late: u64) -> Floor {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        let mut sample = window(1_000, 10 - late, 50);
        sample.tally.merge(&window(1_000, late, 900).tally);
        floor.learn(&sample, 0.99);
        floor
    }

    #[test]
    fn more_late_requests_than_chance_explains_show_a_queue_or_a_slower_service() {
        for (name, millis, usually_late, expected) in [
            ("in time", &[50, 50][..], 0, None),
            ("half is late", &[400, 50], 0, Some(8)),
            ("less than half", &[400, 50, 50], 0, None),
            ("one a second", &[400], 0, Some(8)),
            ("none", &[], 0, None),
            ("half is late as usual", &[400, 400], 5, Some(8)),
        ] {
            let found = shown_after(&second(millis), &floor(usually_late));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn callers_that_leave_late_count_without_an_answer() {
        let mut unanswered = window(1_000, 0, 0);
        unanswered.tally.add(Count::Slow, 2);
        assert_eq!(shown_after(&unanswered, &floor(0)), Some(4));
    }

    #[test]
    fn callers_that_leave_a_full_limit_show_a_queue() {
        let unknown = Floor::believed(0.0, 0.0, 0.0);
        for (name, left, refused, floor, expected) in [
            ("one in a hundred is late as usual", 4, 5, floor(0), true),
            ("too few", 3, 5, floor(0), false),
            ("the limit has room", 4, 0, floor(0), false),
            ("half is late as usual", 12, 5, floor(5), false),
            (
                "half is late as usual, and many leave",
                14,
                5,
                floor(5),
                true,
            ),
            ("nothing is known", 20, 5, unknown, false),
        ] {
            let mut window = window(1_000, 0, 0).refusing(refused);
            window.tally.add(Count::Slow, left);
            let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
            let slo = config.default_policy().slo();
            let found = do_callers_leave(&window, &floor, slo);
            assert_eq!(found, expected, "{name}");
        }
    }

    /// Seconds like these, from the first one of a beat on. Returns what the first test is compared with, or `None` without a test.
    fn compared_with(seconds: &[&[u64]]) -> Option<Measurement> {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        let mut late = LateRequests::default();
        let slo = config.default_policy().slo();
        (4..).zip(seconds).find_map(|(number, millis)| {
            let found = late.update(
                &second(millis).holding(1),
                &floor(0),
                slo,
                at(number * 1_000),
            );
            match found {
                LateFinding::Late(measured) => measured,
                LateFinding::Nothing => None,
            }
        })
    }

    #[test]
    fn a_row_of_late_requests_is_tested_only_if_most_of_those_that_follow_are_late() {
        const ROW: [&[u64]; 2] = [&[400, 400], &[400, 400]];
        let after = |rest: &[&'static [u64]]| {
            let seconds: Vec<&[u64]> = ROW.into_iter().chain(rest.iter().copied()).collect();
            compared_with(&seconds)
        };
        assert!(after(&[&[50], &[50, 50], &[400, 50]]).is_none(), "in time");
        assert!(after(&[&[], &[], &[]]).is_none(), "no request");
        let later = after(&[&[], &[], &[], &[400], &[], &[], &[]]).unwrap();
        assert_close(later.answers, 5.0, "the beat after");
        let faster = after(&[&[310], &[310], &[350]]).unwrap();
        assert_close(faster.answers, 3.0, "chosen because they were slow");
        let slower = after(&[&[500], &[500], &[500]]).unwrap();
        assert_close(slower.answers, 7.0, "a queue that grows");
    }

    #[test]
    fn tests_that_show_no_queue_become_rare() {
        let found = shown(&second(&[400, 400]), &floor(0), 200);
        assert_eq!(found, [4, 16, 36, 72, 140]);
    }

    #[test]
    fn a_second_without_requests_neither_begins_nor_ends_the_evidence() {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        let mut late = LateRequests::default();
        let seconds = [&[][..], &[400, 400], &[], &[400], &[50]].map(second);
        let suspected = seconds.iter().zip(5..).map(|(sample, at_second)| {
            late.update(
                sample,
                &floor(0),
                config.default_policy().slo(),
                at(at_second * 100),
            );
            late.are_suspected()
        });
        assert_eq!(
            suspected.collect::<Vec<_>>(),
            [false, true, true, true, false]
        );
    }
}

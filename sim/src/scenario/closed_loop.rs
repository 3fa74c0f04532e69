//! Callers in a closed loop: each waits for the end of its request before it sends the next.
//!
//! Threads of a pool, users of a load tester and connections of a client behave like this. Their number is given, not their
//! rate: slow answers slow them down, and answers at once, such as refusals, make them send more.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Scenario;
use crate::profile::ServiceTime;

/// More than a run could hold.
const MOST_CALLERS: u32 = 100_000;
/// With a shorter pause refused callers would send again at once, for ever.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// A pool of callers. Caller number `i` sends while `i` is below the count at that time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// How many callers there are over time, in order of time; before the first point there are none.
    pub callers: Vec<CallersPoint>,
    /// Pause between the end of a request and the next request; none: no pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ServiceTime>,
    /// The same after a request without an answer 200, a refused one included; none: as `think`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_failure: Option<ServiceTime>,
}

/// The number of callers from some time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallersPoint {
    /// From when on.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// How many there are. A caller beyond it ends its request, and sends no other one.
    pub count: u32,
}

impl ClosedLoop {
    /// How many callers there are at time `at`.
    #[must_use]
    pub fn count_at(&self, at: Duration) -> u32 {
        let next = self.callers.partition_point(|point| point.at <= at);
        let current = next
            .checked_sub(1)
            .and_then(|index| self.callers.get(index));
        current.map_or(0, |point| point.count)
    }

    /// The most callers at any time.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.callers
            .iter()
            .map(|point| point.count)
            .max()
            .unwrap_or(0)
    }

    /// The first time from `at` on at which caller number `member` may send; none if there is none.
    #[must_use]
    pub fn active_from(&self, member: u32, at: Duration) -> Option<Duration> {
        if member < self.count_at(at) {
            return Some(at);
        }
        let later = self.callers.iter().filter(|point| point.at > at);
        // Of two points at one time the last one counts.
        let mut later = later.filter(|point| member < self.count_at(point.at));
        later.next().map(|point| point.at)
    }

    /// The distribution of the pause after a request, which got an answer 200 or did not; none: no pause.
    #[must_use]
    pub fn pause_after(&self, is_answered: bool) -> Option<ServiceTime> {
        if is_answered {
            self.think
        } else {
            self.after_failure.or(self.think)
        }
    }

    /// Every error as `field: what is wrong`.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.callers.is_empty() {
            faults.push("callers: found nothing, expected at least one point".to_owned());
        }
        if !self.callers.is_sorted_by_key(|point| point.at) {
            faults.push("callers: expected points in order of time".to_owned());
        }
        for (index, point) in self.callers.iter().enumerate() {
            if point.count > MOST_CALLERS {
                faults.push(format!(
                    "callers[{index}].count: found {}, expected 0..={MOST_CALLERS}",
                    point.count
                ));
            }
        }
        let pauses = [("think", self.think), ("after_failure", self.after_failure)];
        for (key, pause) in pauses {
            let fault = pause.and_then(|pause| pause.fault());
            faults.extend(fault.map(|fault| format!("{key}: {fault}")));
        }
        let after_failure = self.after_failure.or(self.think);
        let after_failure = after_failure.map_or(Duration::ZERO, |pause| pause.mean());
        if after_failure < LEAST_PAUSE {
            faults.push(format!(
                "after_failure: found {after_failure:?} on average (none: as think), expected >= {LEAST_PAUSE:?}: refused \
                 callers would send again at once"
            ));
        }
        faults
    }
}

impl Scenario {
    /// Whether the callers of any client wait for their answers before they send again.
    #[must_use]
    pub fn has_closed_loops(&self) -> bool {
        self.clients.iter().any(|one| one.closed_loop.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(client: &str, rest: &str) -> Result<Scenario, String> {
        let text = format!(
            "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n{rest}\n[[clients]]\n{client}"
        );
        Scenario::parse(&text, "test").map_err(|error| error.to_string())
    }

    const PAUSE: &str = "after_failure={kind='constant', mean='10ms'}";

    #[test]
    fn callers_come_and_go_with_the_count() {
        let second = Duration::from_secs;
        let point = |at, count| CallersPoint {
            at: second(at),
            count,
        };
        let closed = ClosedLoop {
            // Of the two points at 6 s the last one counts.
            callers: vec![
                point(1, 3),
                point(4, 1),
                point(6, 9),
                point(6, 2),
                point(8, 0),
            ],
            think: None,
            after_failure: None,
        };
        assert_eq!(closed.most(), 9);
        // Member, time, count at that time, and when it may send from then on.
        for (member, at, count, from) in [
            (0, 0, 0, Some(1)),
            (0, 1, 3, Some(1)),
            (2, 3, 3, Some(3)),
            (2, 4, 1, None),
            (1, 4, 1, Some(6)),
            (0, 5, 1, Some(5)),
            (1, 7, 2, Some(7)),
            (0, 8, 0, None),
            (3, 0, 0, None),
        ] {
            assert_eq!(closed.count_at(second(at)), count, "{at}");
            let found = closed.active_from(member, second(at));
            assert_eq!(found, from.map(second), "{member} at {at}");
        }
    }

    #[test]
    fn a_pause_depends_on_the_answer() {
        let constant = |millis| Some(ServiceTime::constant(Duration::from_millis(millis)));
        // Thinking, after a failure; the pauses after a good answer and after a refusal.
        for (think, after_failure, good, refused) in [
            (None, 10, None, Some(10)),
            (Some(50), 10, Some(50), Some(10)),
            (Some(50), 0, Some(50), Some(50)),
        ] {
            let closed = ClosedLoop {
                callers: Vec::new(),
                think: think.and_then(constant),
                after_failure: (after_failure > 0)
                    .then(|| constant(after_failure))
                    .flatten(),
            };
            assert_eq!(closed.pause_after(true), good.and_then(constant));
            assert_eq!(closed.pause_after(false), refused.and_then(constant));
        }
    }

    #[test]
    fn what_cannot_be_played_is_rejected() {
        let pool = format!("closed_loop={{callers=[{{at='0s', count=5}}], {PAUSE}}}");
        let with =
            |callers: &str, pauses: &str| format!("closed_loop={{callers=[{callers}]{pauses}}}");
        let one = "{at='0s', count=1}";
        for (client, rest, expected) in [
            (
                "deadline='1s'".to_owned(),
                "",
                "clients[0].load: found nothing, expected at least one point, or a closed_loop",
            ),
            (
                format!("{pool}\nload=[{{at='0s', x=0.5}}]"),
                "",
                "clients[0].load: found 1 points, expected none beside closed_loop",
            ),
            (
                format!("{pool}\nbursts={{every='1s', length='50ms', x=6.0}}"),
                "",
                "clients[0].bursts: found some, expected none beside closed_loop",
            ),
            (
                pool,
                "callers={count=9}",
                "clients[0].closed_loop: found one, expected none beside callers with an identity",
            ),
            (
                with("", &format!(", {PAUSE}")),
                "",
                "clients[0].closed_loop.callers: found nothing, expected at least one point",
            ),
            (
                with(
                    "{at='2s', count=1}, {at='1s', count=2}",
                    &format!(", {PAUSE}"),
                ),
                "",
                "clients[0].closed_loop.callers: expected points in order of time",
            ),
            (
                with("{at='0s', count=100001}", &format!(", {PAUSE}")),
                "",
                "clients[0].closed_loop.callers[0].count: found 100001, expected 0..=100000",
            ),
            (
                with(one, ""),
                "",
                "clients[0].closed_loop.after_failure: found 0ns on average (none: as think), expected >= 1ms",
            ),
            (
                with(one, ", think={kind='constant', mean='200us'}"),
                "",
                "clients[0].closed_loop.after_failure: found 200µs on average",
            ),
            (
                with(
                    one,
                    &format!(", {PAUSE}, think={{kind='lognormal', mean='1s', sigma=9.0}}"),
                ),
                "",
                "clients[0].closed_loop.think: sigma",
            ),
        ] {
            let error = parse(&client, rest).unwrap_err();
            assert!(error.contains(expected), "{expected} is missing in {error}");
        }
    }

    #[test]
    fn what_can_be_played_reads_back_as_it_was_written() {
        for pauses in [
            PAUSE.to_owned(),
            "think={kind='constant', mean='1ms'}".to_owned(),
            format!("{PAUSE}, think={{kind='lognormal', mean='1s', sigma=0.5}}"),
        ] {
            let client = format!("closed_loop={{callers=[{{at='0s', count=5}}], {pauses}}}");
            let scenario = parse(&client, "").unwrap();
            assert!(scenario.has_closed_loops() && scenario.only_simulated().is_empty());
            let text = scenario.text().unwrap();
            assert!(!text.contains("load"), "{text}");
            assert_eq!(Scenario::parse(&text, "test").unwrap(), scenario);
        }
        assert!(
            !parse("load=[{at='0s', x=0.5}]", "")
                .unwrap()
                .has_closed_loops()
        );
    }

    #[test]
    fn a_story_that_is_told_slower_keeps_its_pauses() {
        let client = format!("closed_loop={{callers=[{{at='2s', count=5}}], {PAUSE}}}");
        let scenario = parse(&client, "").unwrap().scaled(2.0);
        let closed = scenario.clients[0].closed_loop.as_ref().unwrap();
        assert_eq!(closed.callers[0].at, Duration::from_secs(4));
        let pause = closed.after_failure.map(|pause| pause.mean());
        assert_eq!(pause, Some(Duration::from_millis(10)));
    }
}

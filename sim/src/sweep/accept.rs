//! Whether the acceptance stories reach what they must.

use super::{PlayedStory, SweepStanding, axes};
use crate::scenario::Range;
use crate::targets::judge::{ROUNDING, shown};
use crate::targets::{Accept, TargetVerdict};

impl Accept {
    /// Checks our results in a group against the bounds. A group that was not played meets no bound.
    #[must_use]
    pub fn judge(
        &self,
        group: &str,
        ours: Option<&SweepStanding>,
        played: &[PlayedStory],
    ) -> Vec<TargetVerdict> {
        let figure = |of: fn(&SweepStanding) -> f64| ours.map_or(f64::NAN, of);
        let verdict = |target: String, found: f64, is_met: bool| TargetVerdict {
            scenario: group.to_owned(),
            target: format!("{group}: {target}"),
            found: shown(found),
            is_met,
        };
        let within = |what: &str, found: f64, range: Range| {
            verdict(format!("{what} {range}"), found, range.contains(found))
        };
        let at_most = |what: &str, found: f64, most: f64| {
            verdict(format!("{what} <= {most}"), found, found <= most + ROUNDING)
        };
        let mean = within("mean score", figure(|one| one.mean), self.mean);
        let tenth = self.tenth.map(|range| {
            let found = figure(|one| one.tenth);
            within("10th percentile", found, range)
        });
        let bad = self.below_seven_tenths.map(|most| {
            let found = figure(|one| one.bad);
            at_most("share of stories below 0.7", found, most)
        });
        let behind = self.behind_none_where_calm.map(|most| {
            let found = axes::worst_calm(played).map_or(f64::NAN, |(_, gap)| gap);
            at_most("behind none where nothing is overloaded", found, most)
        });
        [Some(mean), tenth, bad, behind]
            .into_iter()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::OURS;

    const GOOD: SweepStanding = SweepStanding {
        contender: "us",
        mean: 0.97,
        median: 0.99,
        tenth: 0.91,
        worst: 0.5,
        poor: 0.1,
        bad: 0.005,
        best: 1,
    };

    const AT_LEAST: fn(f64) -> Range = |min| Range {
        min: Some(min),
        max: None,
    };

    fn met(bounds: &Accept, ours: Option<&SweepStanding>, played: &[PlayedStory]) -> Vec<bool> {
        let verdicts = bounds.judge("one", ours, played);
        verdicts.iter().map(|verdict| verdict.is_met).collect()
    }

    #[test]
    fn each_bound_is_held_by_itself() {
        let bounds = Accept {
            mean: AT_LEAST(0.96),
            tenth: Some(AT_LEAST(0.9)),
            below_seven_tenths: Some(0.005),
            behind_none_where_calm: None,
        };
        let met = |ours: Option<&SweepStanding>| met(&bounds, ours, &[]);
        assert_eq!(met(Some(&GOOD)), [true, true, true]);
        let low = SweepStanding { mean: 0.95, ..GOOD };
        assert_eq!(met(Some(&low)), [false, true, true]);
        let rough = SweepStanding {
            tenth: 0.89,
            ..GOOD
        };
        assert_eq!(met(Some(&rough)), [true, false, true]);
        let bad = SweepStanding { bad: 0.01, ..GOOD };
        assert_eq!(met(Some(&bad)), [true, true, false]);
        assert_eq!(met(None), [false, false, false]);
    }

    #[test]
    fn doing_nothing_may_be_ahead_by_so_much_where_nothing_is_overloaded() {
        let bounds = Accept {
            mean: AT_LEAST(0.96),
            tenth: None,
            below_seven_tenths: None,
            behind_none_where_calm: Some(0.03),
        };
        let story = |ours: f64, none: f64, axis: &'static str| PlayedStory {
            axes: vec![axis],
            ..PlayedStory::of("a", "t", [(OURS, ours), ("none", none)])
        };
        let calm = |ours: f64| story(ours, 1.0, "nothing overloaded");
        let met = |played: &[PlayedStory]| met(&bounds, Some(&GOOD), played);
        assert_eq!(met(&[calm(0.98), calm(0.97)]), [true, true]);
        assert_eq!(met(&[calm(0.98), calm(0.96)]), [true, false]);
        let busy = story(0.5, 1.0, "overload");
        assert_eq!(met(&[calm(0.98), busy.clone()]), [true, true]);
        assert_eq!(met(&[busy]), [true, false], "no story without overload");
    }
}

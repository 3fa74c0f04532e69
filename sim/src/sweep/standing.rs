//! The results of each contender over all stories.

use std::collections::BTreeSet;
use std::iter;

use super::played::PlayedStory;
use crate::number;
use tidegate_report::table::Table;

/// Below this a score is poor ...
pub const POOR: f64 = 0.9;
/// ... and below this it is no protection.
pub const BAD: f64 = 0.7;
/// Scores that differ by no more than this are as good.
pub const AS_GOOD: f64 = 0.01;

/// A summary of one contender's scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweepStanding {
    /// Its name.
    pub contender: &'static str,
    /// Mean of the scores.
    pub mean: f64,
    /// Half of the scores lie below.
    pub median: f64,
    /// A tenth of the scores lies below.
    pub tenth: f64,
    /// The least.
    pub worst: f64,
    /// Share of the stories below [`POOR`].
    pub poor: f64,
    /// Share of the stories below [`BAD`].
    pub bad: f64,
    /// Stories in which no contender is better by more than [`AS_GOOD`].
    pub best: usize,
}

impl SweepStanding {
    /// The summary for a contender; none if it played no story.
    #[must_use]
    pub fn of(contender: &'static str, played: &[PlayedStory]) -> Option<Self> {
        let scored = played.iter().filter_map(|one| one.score(contender));
        let mut scores: Vec<f64> = scored.collect();
        scores.sort_by(f64::total_cmp);
        let count = number::float_len(scores.len());
        let below = |bound| {
            let those = scores.iter().filter(|score| **score < bound);
            number::float_len(those.count()) / count
        };
        let is_best = |one: &&PlayedStory| {
            let most = one.scores.values().copied().fold(0.0, f64::max);
            let own = one.score(contender);
            own.is_some_and(|own| own >= most - AS_GOOD)
        };
        Some(Self {
            contender,
            mean: scores.iter().sum::<f64>() / count,
            median: number::quantile(&scores, 0.5)?,
            tenth: number::quantile(&scores, 0.1)?,
            worst: scores.first().copied()?,
            poor: below(POOR),
            bad: below(BAD),
            best: played.iter().filter(is_best).count(),
        })
    }
}

/// All contenders that played, best mean first.
#[must_use]
pub fn standings(played: &[PlayedStory]) -> Vec<SweepStanding> {
    let who = played.iter().flat_map(|one| one.scores.keys().copied());
    let who: BTreeSet<&'static str> = who.collect();
    let standings = who
        .into_iter()
        .filter_map(|who| SweepStanding::of(who, played));
    let mut standings: Vec<SweepStanding> = standings.collect();
    standings.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    standings
}

/// One row for each contender.
#[must_use]
pub fn text(standings: &[SweepStanding]) -> String {
    let head = [
        "contender",
        "mean",
        "median",
        "p10",
        "worst",
        "below 0.9 %",
        "below 0.7 %",
        "best",
    ];
    let row = |one: &SweepStanding| {
        let scores = [one.mean, one.median, one.tenth, one.worst];
        let scores = scores.map(|score| format!("{score:.3}"));
        iter::once(one.contender.to_owned())
            .chain(scores)
            .chain([one.poor, one.bad].map(|share| format!("{:.1}", share * 100.0)))
            .chain([one.best.to_string()])
            .collect()
    };
    Table::new(&head, standings.iter().map(row).collect()).text()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten stories: `us` 0.1, 0.2 and so on to 1.0, `other` always 0.5.
    fn played() -> Vec<PlayedStory> {
        let one = |tenth: u32| {
            let us = f64::from(tenth) / 10.0;
            PlayedStory::of("s", "t", [("us", us), ("other", 0.5)])
        };
        (1..=10).map(one).collect()
    }

    #[test]
    fn figures_are_those_of_the_scores() {
        let us = SweepStanding::of("us", &played()).unwrap();
        assert!((us.mean - 0.55).abs() < 1e-12, "{}", us.mean);
        let found = [us.median, us.tenth, us.worst, us.poor, us.bad];
        // 0.9 itself is not below 0.9, nor 0.7 below 0.7.
        for (found, expected) in found.into_iter().zip([0.5, 0.1, 0.1, 0.8, 0.6]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(us.best, 6, "from 0.5 on");
        assert_eq!(SweepStanding::of("other", &played()).unwrap().best, 5);
        assert_eq!(SweepStanding::of("nobody", &played()), None);
    }

    #[test]
    fn a_hundredth_behind_is_as_good() {
        let with = |us| {
            let played = [PlayedStory::of("s", "t", [("us", us), ("other", 0.8)])];
            SweepStanding::of("us", &played).unwrap().best
        };
        assert_eq!(with(0.795), 1);
        assert_eq!(with(0.785), 0);
    }

    #[test]
    fn more_than_the_oracle_counts_as_the_oracle() {
        let played = PlayedStory::of("s", "t", [("us", 1.04)]);
        assert_eq!(played.score("us"), Some(1.0));
    }

    #[test]
    fn the_best_mean_stands_first() {
        let table = text(&standings(&played()));
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "us         0.550   0.500  0.100  0.100         80.0         60.0     6",
                "other      0.500   0.500  0.500  0.500        100.0        100.0     5"
            ]
        );
    }
}

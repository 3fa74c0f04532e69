//! The stories to look at: those in which another is furthest ahead of us, and our lowest scores.

use super::played::PlayedStory;
use crate::compare::OURS;
use tidegate_report::table::Table;

/// Our score in a story beside the best of the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behind<'a> {
    /// The story.
    pub played: &'a PlayedStory,
    /// Our score.
    pub ours: f64,
    /// The best other contender and its score; none if no other played.
    pub other: Option<(&'static str, f64)>,
}

impl<'a> Behind<'a> {
    /// Our score beside the best other one; none where we did not play.
    fn of(played: &'a PlayedStory) -> Option<Self> {
        let others = played.scores.iter().filter(|(who, _)| **who != OURS);
        let best = others.max_by(|(_, a), (_, b)| a.total_cmp(b));
        Some(Self {
            played,
            ours: played.score(OURS)?,
            other: best.map(|(who, score)| (*who, *score)),
        })
    }

    /// How far we are behind; negative where we are ahead.
    #[must_use]
    pub fn by(&self) -> f64 {
        self.other.map_or(0.0, |(_, score)| score - self.ours)
    }
}

/// The stories in which we are furthest behind, at most `most`; never stories in which we are not behind.
#[must_use]
pub fn furthest(played: &[PlayedStory], most: usize) -> Vec<Behind<'_>> {
    let all = played.iter().filter_map(Behind::of);
    let mut behind: Vec<Behind<'_>> = all.filter(|one| one.by() > 0.0).collect();
    behind.sort_by(|a, b| b.by().total_cmp(&a.by()));
    behind.truncate(most);
    behind
}

/// The stories with our lowest scores, at most `most`.
#[must_use]
pub fn lowest(played: &[PlayedStory], most: usize) -> Vec<Behind<'_>> {
    let mut all: Vec<Behind<'_>> = played.iter().filter_map(Behind::of).collect();
    all.sort_by(|a, b| a.ours.total_cmp(&b.ours));
    all.truncate(most);
    all
}

/// One row for each story.
#[must_use]
pub fn text(stories: &[Behind<'_>]) -> String {
    let head = ["story", "ours", "best other", "its", "what"];
    let row = |one: &Behind<'_>| {
        let (who, score) = one.other.map_or_else(
            || ("-", "-".to_owned()),
            |(who, score)| (who, format!("{score:.3}")),
        );
        vec![
            one.played.name.clone(),
            format!("{:.3}", one.ours),
            who.to_owned(),
            score,
            one.played.title.clone(),
        ]
    };
    Table::of_words(&head, stories.iter().map(row).collect()).text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played() -> Vec<PlayedStory> {
        [("a", 0.9, 0.5), ("b", 0.6, 0.7), ("c", 0.7, 1.0)]
            .map(|(name, ours, other)| {
                PlayedStory::of(name, "t", [(OURS, ours), ("other", other), ("none", 0.1)])
            })
            .to_vec()
    }

    fn names<'a>(stories: &[Behind<'a>]) -> Vec<&'a str> {
        stories.iter().map(|one| one.played.name.as_str()).collect()
    }

    #[test]
    fn the_furthest_behind_stands_first() {
        let played = played();
        assert_eq!(names(&furthest(&played, 10)), ["c", "b"], "ahead in a");
        assert_eq!(names(&furthest(&played, 1)), ["c"]);
        let table = text(&furthest(&played, 1));
        assert!(
            table.contains("c      0.700  other       1.000  t"),
            "{table}"
        );
    }

    #[test]
    fn the_lowest_scores_are_ours() {
        let played = played();
        assert_eq!(names(&lowest(&played, 2)), ["b", "c"]);
    }

    #[test]
    fn without_others_nobody_is_ahead() {
        let alone = [PlayedStory::of("a", "t", [(OURS, 0.4)])];
        assert!(furthest(&alone, 10).is_empty());
        assert!(text(&lowest(&alone, 5)).contains("0.400  -"));
    }
}

//! Our scores on each axis, beside the contender that does nothing.

use tidegate_report::table::Table;

use super::labels::{CALM_LABEL, labels};
use super::played::PlayedStory;
use crate::compare::OURS;
use crate::number;

/// The contender that does nothing.
const NONE: &str = "none";

/// Our scores and those without protection on one axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisScores {
    /// Its label.
    pub label: &'static str,
    /// Stories that lie on it.
    pub stories: usize,
    /// Mean of our scores.
    pub ours: f64,
    /// Our worst score.
    pub worst: f64,
    /// Mean of the scores without protection; none where that did not play.
    pub none: Option<f64>,
    /// The greatest distance by which we are behind it; likewise.
    pub behind: Option<f64>,
}

/// Each axis that some story lies on, with those in which we played.
#[must_use]
pub fn axes(played: &[PlayedStory]) -> Vec<AxisScores> {
    let ours: Vec<&PlayedStory> = played
        .iter()
        .filter(|one| one.score(OURS).is_some())
        .collect();
    let found = labels().filter_map(|label| {
        let on_it = ours.iter().filter(|one| one.axes.contains(&label));
        let stories: Vec<&&PlayedStory> = on_it.collect();
        if stories.is_empty() {
            return None;
        }
        let count = number::float_len(stories.len());
        let scores =
            |who: &str| -> Vec<f64> { stories.iter().filter_map(|one| one.score(who)).collect() };
        let mean = |scores: &[f64]| scores.iter().sum::<f64>() / count;
        let (ours, none) = (scores(OURS), scores(NONE));
        let has_none = none.len() == ours.len();
        let gaps = none.iter().zip(&ours).map(|(none, ours)| none - ours);
        Some(AxisScores {
            label,
            stories: stories.len(),
            ours: mean(&ours),
            worst: ours.iter().copied().fold(1.0, f64::min),
            none: has_none.then(|| mean(&none)),
            behind: has_none.then(|| gaps.fold(0.0, f64::max)),
        })
    });
    found.collect()
}

/// One row for each axis.
#[must_use]
pub fn text(axes: &[AxisScores]) -> String {
    let head = [
        "axis",
        "stories",
        "ours",
        "worst",
        "none",
        "most behind none",
    ];
    let shown =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    let row = |one: &AxisScores| {
        vec![
            one.label.to_owned(),
            one.stories.to_string(),
            shown(Some(one.ours)),
            shown(Some(one.worst)),
            shown(one.none),
            shown(one.behind),
        ]
    };
    Table::new(&head, axes.iter().map(row).collect()).text()
}

/// The story in which nothing is overloaded and doing nothing is furthest ahead of us, and by how much.
#[must_use]
pub fn worst_calm(played: &[PlayedStory]) -> Option<(&PlayedStory, f64)> {
    let calm = played.iter().filter(|one| one.axes.contains(&CALM_LABEL));
    let gaps = calm.filter_map(|one| Some((one, one.score(NONE)? - one.score(OURS)?)));
    gaps.max_by(|(_, a), (_, b)| a.total_cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn scenario(rest: &str) -> Scenario {
        let head = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='60s'\n";
        Scenario::parse(&format!("{head}{rest}"), "test").unwrap()
    }

    #[test]
    fn an_axis_sums_up_its_stories() {
        let calm = scenario("[[clients]]\nload=[{at='0s', x=0.3}]");
        let over = scenario("[[clients]]\nload=[{at='0s', x=3.0}]");
        let played = [(&calm, 0.9, 1.0), (&calm, 1.0, 0.98), (&over, 0.8, 0.1)].map(
            |(story, ours, none)| PlayedStory::of("s", "t", [(OURS, ours), (NONE, none)]).on(story),
        );
        let found = axes(&played);
        assert_eq!(found[0].label, CALM_LABEL);
        assert_eq!((found[0].stories, found[1].stories), (2, 1));
        assert!(
            (found[0].ours - 0.95).abs() < 1e-9 && (found[0].behind.unwrap() - 0.1).abs() < 1e-9
        );
        let (_, gap) = worst_calm(&played).unwrap();
        assert!((gap - 0.1).abs() < 1e-9, "{gap}");
        assert!(text(&found).contains("overload"));
    }
}

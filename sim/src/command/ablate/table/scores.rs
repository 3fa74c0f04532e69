//! Mean scores over seeds, how they change without a mechanism, and expectations that are missed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tidegate_sim::number;
use tidegate_sim::scenario::{Measure, Range};

use super::{AblationRun, StoryGroup};

/// The change of a mean score without a mechanism, and the standard error of that change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::command::ablate) struct ScoreChange {
    pub(in crate::command::ablate) mean: f64,
    pub(in crate::command::ablate) change: f64,
    pub(in crate::command::ablate) error: f64,
}

impl ScoreChange {
    pub(super) fn of(group: StoryGroup, before: &GroupScores, after: &GroupScores) -> Option<Self> {
        let of_group = |scores: &GroupScores| -> Vec<f64> {
            let those = scores.iter().filter(|((one, _), _)| *one == group);
            those.map(|(_, score)| *score).collect()
        };
        let (before, after) = (of_group(before), of_group(after));
        let differences = before
            .iter()
            .zip(&after)
            .map(|(before, after)| after - before);
        let differences: Vec<f64> = differences.collect();
        let change = mean(&differences)?;
        let squares = differences
            .iter()
            .map(|one| (one - change) * (one - change));
        let count = number::float_len(differences.len());
        Some(Self {
            mean: mean(&after)?,
            change,
            error: (squares.sum::<f64>() / count / (count - 1.0).max(1.0)).sqrt(),
        })
    }
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / number::float_len(values.len()))
}

pub(super) type GroupScores = BTreeMap<(StoryGroup, String), f64>;

/// Every story's mean score over its seeds.
pub(super) fn scores(outcomes: &[AblationRun]) -> GroupScores {
    let mut all: BTreeMap<(StoryGroup, String), Vec<f64>> = BTreeMap::new();
    for outcome in outcomes {
        let story = (outcome.group, outcome.story.clone());
        all.entry(story).or_default().push(outcome.score);
    }
    let means = all
        .into_iter()
        .map(|(story, scores)| Some((story, mean(&scores)?)));
    means.flatten().collect()
}

/// Expectations that the median over the seeds does not meet.
pub(super) fn missed(outcomes: &[AblationRun]) -> BTreeSet<String> {
    let mut all: BTreeMap<(&str, Measure), (Range, Vec<f64>)> = BTreeMap::new();
    for outcome in outcomes {
        for (measure, range, value) in &outcome.expected {
            let (_, values) = all
                .entry((&outcome.story, *measure))
                .or_insert_with(|| (*range, Vec::new()));
            values.push(value.unwrap_or(f64::NAN));
        }
    }
    let is_missed = |values: &mut Vec<f64>, range: Range| {
        values.sort_by(f64::total_cmp);
        number::quantile(values, 0.5).is_none_or(|median| !range.contains(median))
    };
    let those = all
        .into_iter()
        .filter_map(|((story, measure), (range, mut values))| {
            is_missed(&mut values, range).then(|| format!("{story} {measure}"))
        });
    those.collect()
}

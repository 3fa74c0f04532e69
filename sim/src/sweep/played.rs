//! A story that was played, with the score of each contender.

use std::collections::BTreeMap;

use serde::Serialize;

use super::labels;
use crate::scenario::Scenario;

/// One story with the score of each contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlayedStory {
    /// The story's name.
    pub name: String,
    /// What happens in it.
    pub title: String,
    /// The axes it lies on.
    pub axes: Vec<&'static str>,
    /// Scores by contender, each at most 1: luck against the oracle's average must not make up for losses elsewhere.
    pub scores: BTreeMap<&'static str, f64>,
}

impl PlayedStory {
    /// A story with the scores of contenders as they came out.
    #[must_use]
    pub fn of(
        name: &str,
        title: &str,
        scores: impl IntoIterator<Item = (&'static str, f64)>,
    ) -> Self {
        // Not `min`, which would turn NaN into 1.
        let capped = |(who, score): (_, f64)| (who, score.clamp(0.0, 1.0));
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            axes: Vec::new(),
            scores: scores.into_iter().map(capped).collect(),
        }
    }

    /// The same with the axes of the story that was played.
    #[must_use]
    pub fn on(self, story: &Scenario) -> Self {
        Self {
            axes: labels::of(story),
            ..self
        }
    }

    /// The score of a contender.
    #[must_use]
    pub fn score(&self, contender: &str) -> Option<f64> {
        self.scores.get(contender).copied()
    }
}

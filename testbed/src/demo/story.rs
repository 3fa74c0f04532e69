//! The demo's story as data: a scenario, names for its phases, and configuration pushes.

use std::time::Duration;

use serde::Deserialize;

use tidegate_sim::scenario::{Scenario, ScenarioError};

/// A story that is played on two sides at once.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    /// Load and upstream.
    pub scenario: Scenario,
    /// The phases, with their texts for viewers.
    pub phases: Vec<StoryPhase>,
    /// Configuration pushes.
    pub pushes: Vec<Push>,
}

/// A stretch of the story.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoryPhase {
    /// One word for charts and checks.
    pub name: String,
    /// Beginning.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// One line for the terminal.
    pub title: String,
    /// What viewers see, for the report.
    pub prose: String,
    /// The phase with which a repetition of this one begins; default: the previous one.
    #[serde(default)]
    pub lead_in: Option<String>,
}

/// A new objective that is pushed to the running proxy.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// When.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// The new latency target.
    #[serde(with = "humantime_serde")]
    pub latency: Duration,
}

const STORY: &str = include_str!("story.toml");

impl Story {
    /// The story of this repository, scaled to `length`.
    ///
    /// # Errors
    /// If the story in this crate does not parse, which its test excludes.
    pub fn told_in(length: Duration) -> Result<Self, ScenarioError> {
        let origin = "the demo's story";
        let mut story: Self = toml::from_str(STORY).map_err(|e| ScenarioError::Parse {
            origin: origin.to_owned(),
            message: e.to_string(),
        })?;
        let factor = length.as_secs_f64() / story.scenario.duration.as_secs_f64();
        story.scenario = story.scenario.checked(origin)?.scaled(factor);
        story
            .phases
            .iter_mut()
            .for_each(|phase| phase.at = phase.at.mul_f64(factor));
        story
            .pushes
            .iter_mut()
            .for_each(|push| push.at = push.at.mul_f64(factor));
        Ok(story)
    }

    /// The phase at a time.
    #[must_use]
    pub fn phase_at(&self, at: Duration) -> Option<&StoryPhase> {
        self.phases
            .iter()
            .rev()
            .find(|phase| phase.at <= at)
            .or_else(|| self.phases.first())
    }

    /// Each phase with its end.
    pub fn stretches(&self) -> impl Iterator<Item = (&StoryPhase, Duration)> {
        let ends = self.phases.iter().skip(1).map(|phase| phase.at);
        self.phases
            .iter()
            .zip(ends.chain(std::iter::once(self.scenario.duration)))
    }

    /// When a repetition of a phase begins, so that both sides reach the phase in the same state as in the whole story.
    pub fn lead_in(&self, phase: &StoryPhase) -> Duration {
        let named = |name: &String| self.phases.iter().find(|other| other.name == *name);
        let before = || self.phases.iter().rev().find(|other| other.at < phase.at);
        let first = phase.lead_in.as_ref().map_or_else(before, named);
        first.map_or(Duration::ZERO, |first| first.at)
    }

    /// The latency target in force at a time.
    #[must_use]
    pub fn objective_at(&self, at: Duration) -> Duration {
        let pushed = self.pushes.iter().rev().find(|push| push.at <= at);
        pushed.map_or(self.scenario.slo.latency, |push| push.latency)
    }

    /// Requests a second that the upstream serves.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.scenario
            .clients
            .first()
            .map_or(0.0, |client| self.scenario.capacity_for(client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn story_parses_and_keeps_its_proportions() {
        let story = Story::told_in(Duration::from_secs(30)).unwrap();
        assert_eq!(story.scenario.duration, Duration::from_secs(30));
        assert_eq!(
            story.phase_at(Duration::from_secs(5)).unwrap().name,
            "overload"
        );
        assert_eq!(
            story.objective_at(Duration::from_secs(25)),
            Duration::from_millis(300)
        );
        assert_eq!(
            story.objective_at(Duration::from_secs(26)),
            Duration::from_millis(200)
        );
        assert!((story.capacity() - 250.0).abs() < 1e-9);
        let is_known = |name: &String| story.phases.iter().any(|phase| phase.name == *name);
        let mut lead_ins = story
            .phases
            .iter()
            .filter_map(|phase| phase.lead_in.as_ref());
        assert!(lead_ins.all(is_known));
    }
}

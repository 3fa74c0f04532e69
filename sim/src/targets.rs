//! What the control laws must reach, and whether they do.
//!
//! The targets are data (`sim/targets.toml`): ranges for our figures in single scenarios, a bound on how far our
//! score may lie behind the best untuned and the best tuned contender, and sets of
//! scenarios whose scores must be alike. They are judged from a table of medians, simulated or measured.
//!
//! Edges: a target of a scenario that was not played is not judged; one whose figure is missing is missed. A
//! comparison without a rival of its kind is not made.

mod accept;
pub(crate) mod judge;
mod sweep;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::scenario::{Measure, Range, ScenarioError};

pub use accept::Accept;
pub use judge::{ContenderScore, Gap, RivalKind, TargetVerdict};
pub use sweep::{Found, Sweep};

/// Everything that must be reached.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Targets {
    /// How far behind others our score may be.
    pub comparison: Margins,
    /// Ranges of our figures, by scenario.
    pub scenarios: BTreeMap<String, BTreeMap<Measure, Range>>,
    /// Sets of scenarios with the same outcome.
    #[serde(default)]
    pub alike: Vec<Alike>,
    /// What a sweep of random stories must reach.
    #[serde(default)]
    pub sweep: Option<Sweep>,
    /// What must be reached on the stories of acceptance, by the name of their group.
    #[serde(default)]
    pub accept: BTreeMap<String, Accept>,
}

/// How far our score may lie behind others' of the same scenario.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// Behind the best untuned contender.
    pub behind_best_untuned: f64,
    /// Behind the best tuned contender.
    pub behind_tuned: f64,
}

/// Scenarios in which our scores must not differ.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alike {
    /// What is different between them, in a few words.
    pub what: String,
    /// Their names.
    pub scenarios: Vec<String>,
    /// Most that two of them may differ by.
    pub within: f64,
}

impl Targets {
    /// The targets of this repository.
    ///
    /// # Errors
    /// When the file cannot be read, or does not parse.
    pub fn read() -> Result<Self, ScenarioError> {
        let path = file();
        let read = |source| ScenarioError::Read {
            path: path.clone(),
            source,
        };
        Self::parse(
            &fs::read_to_string(&path).map_err(read)?,
            &path.display().to_string(),
        )
    }

    /// Parses targets; `origin` names them in errors.
    ///
    /// # Errors
    /// When the text does not parse.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|e| ScenarioError::Parse {
            origin: origin.to_owned(),
            message: e.to_string(),
        })
    }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("targets.toml")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::{Scenario, folder};

    #[test]
    fn every_target_names_a_scenario_that_exists() {
        let targets = Targets::read().unwrap();
        let scenarios = Scenario::read_folder(&folder()).unwrap();
        let known: BTreeSet<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
        let alike = targets.alike.iter().flat_map(|alike| &alike.scenarios);
        for name in targets.scenarios.keys().chain(alike) {
            assert!(known.contains(name.as_str()), "{name}");
        }
    }

    #[test]
    fn a_measure_that_does_not_exist_is_rejected() {
        let text = "scenarios.a = { scor = { min = 1.0 } }\n[comparison]\nbehind_best_untuned = 0.0\nbehind_tuned = 0.0";
        let error = Targets::parse(text, "test").unwrap_err();
        assert!(error.to_string().contains("scor"), "{error}");
    }
}

//! Scenarios from files: read, parse, check.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Scenario;

/// Why a scenario cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("read scenario {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The text is not a scenario; the message holds line and column.
    #[error("parse scenario {origin}:\n{message}")]
    Parse {
        /// File or name.
        origin: String,
        /// What the parser says.
        message: String,
    },
    /// The scenario is invalid.
    #[error("scenario {origin} is refused:\n  {}", faults.join("\n  "))]
    Refused {
        /// File or name.
        origin: String,
        /// Every fault, each as `path: what is wrong`.
        faults: Vec<String>,
    },
    /// The scenario cannot be written as TOML.
    #[error("write scenario {name}")]
    Write {
        /// Its name.
        name: String,
        /// The cause.
        source: toml::ser::Error,
    },
}

impl Scenario {
    /// Parses and checks a scenario; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text does not parse; with all errors of an invalid scenario.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|e| ScenarioError::Parse {
            origin: origin.to_owned(),
            message: e.to_string(),
        })?;
        scenario.checked(origin)
    }

    /// Returns a valid scenario with its adversaries among the clients; `origin` names it in errors.
    ///
    /// # Errors
    /// With all errors of an invalid scenario.
    pub fn checked(self, origin: &str) -> Result<Self, ScenarioError> {
        let faults = self.faults();
        if faults.is_empty() {
            Ok(self.cast())
        } else {
            Err(ScenarioError::Refused {
                origin: origin.to_owned(),
                faults,
            })
        }
    }

    /// The text of a file that reads back as this scenario.
    ///
    /// # Errors
    /// When TOML cannot hold a number, such as a seed above 2^63 - 1.
    pub fn text(&self) -> Result<String, ScenarioError> {
        toml::to_string(self).map_err(|source| ScenarioError::Write {
            name: self.name.clone(),
            source,
        })
    }

    /// Reads one scenario file.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: path.to_owned(),
            source,
        })?;
        let scenario = Self::parse(&text, &path.display().to_string())?;
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        if scenario.name == stem {
            return Ok(scenario);
        }
        let fault = format!(
            "name: found {}, expected the file's name {stem}",
            scenario.name
        );
        Err(ScenarioError::Refused {
            origin: path.display().to_string(),
            faults: vec![fault],
        })
    }

    /// Reads every `*.toml` of a folder, in order of name.
    ///
    /// # Errors
    /// At the first file that cannot be read or is invalid, or when the folder cannot be read.
    pub fn read_folder(folder: &Path) -> Result<Vec<Self>, ScenarioError> {
        let read = |source| ScenarioError::Read {
            path: folder.to_owned(),
            source,
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(read)? {
            let path = entry.map_err(read)?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

/// The folder with the scenarios of this repository.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALLEST: &str = r#"
        name = "smallest"
        title = "t"
        prose = "p"
        seed = 1
        duration = "10s"
        [[clients]]
        load = [{ at = "0s", x = 0.7 }]
    "#;

    #[test]
    fn smallest_scenario_gets_the_standard_upstream() {
        let scenario = Scenario::parse(SMALLEST, "test").unwrap();
        assert_eq!(scenario.upstreams.len(), 1);
        assert!((scenario.capacity_for(&scenario.clients[0]) - 400.0).abs() < 1e-9);
    }

    #[test]
    fn unknown_keys_are_rejected() {
        let error = Scenario::parse(&format!("sed = 2\n{SMALLEST}"), "test").unwrap_err();
        assert!(error.to_string().contains("sed"), "{error}");
    }

    #[test]
    fn unknown_keys_of_a_timeline_are_rejected() {
        let text = format!(
            "{SMALLEST}\n[[upstreams]]\nname = \"main\"\ntimeline = [{{ at = \"1s\", slotz = 3 }}]"
        );
        let error = Scenario::parse(&text, "test").unwrap_err();
        assert!(error.to_string().contains("slotz"), "{error}");
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let text = SMALLEST.replace("x = 0.7", "x = 0.7, rps = 3.0")
            + "upstream = \"nobody\"\ndeadline = \"0s\"\n[slo]\nquantile = 1.0\n";
        let error = Scenario::parse(&text, "test").unwrap_err().to_string();
        for expected in [
            "clients[0].upstream",
            "clients[0].deadline",
            "clients[0].load[0]",
            "slo.quantile",
        ] {
            assert!(
                error.contains(expected),
                "{expected} is missing in: {error}"
            );
        }
    }

    #[test]
    fn every_scenario_of_the_repository_parses() {
        let scenarios = Scenario::read_folder(&folder()).unwrap();
        assert!(scenarios.len() >= 8, "found {}", scenarios.len());
    }
}

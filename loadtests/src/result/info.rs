//! The metadata of a run.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Parameter, Tool};

/// The metadata of a run: machine, date, versions and conditions; the document `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Name of the run, and of its folder.
    pub run: String,
    /// The machine, such as the name of its processor.
    pub machine: String,
    /// Processor cores that the run could use.
    pub cores: u32,
    /// Kernel and its version.
    pub kernel: String,
    /// Version of each program, by its name; `tidegate` and `envoy` always, tools if they took part.
    pub versions: BTreeMap<String, String>,
    /// SHA-256 of the module that Envoy ran, in hexadecimal digits.
    pub module_sha256: String,
    /// Commit of the working copy, followed by `(changed)` if the copy had changes.
    pub commit: String,
    /// Beginning of the run in UTC, such as `2026-11-21T10:00:00Z`.
    pub date: String,
    /// The requested part of the matrix.
    pub extent: Extent,
    /// Settings from the command line, and others that apply to all cells.
    pub parameters: BTreeMap<String, Parameter>,
    /// Planned cells of each study, repetitions included; cells that are missing from the results were not run.
    pub planned: BTreeMap<String, usize>,
}

/// The part of the matrix that a run plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// A part that takes some minutes.
    Reduced,
    /// The whole matrix.
    Full,
}

/// A defect of the metadata of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// The field.
    pub path: String,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: found {}, expected {}",
            self.path, self.found, self.expected
        )
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reduced => "reduced",
            Self::Full => "full",
        })
    }
}

/// The value of a fact that could not be determined.
pub(super) const UNKNOWN: &str = "unknown";

/// Number of hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// Programs that take part in every run.
const ALWAYS: [&str; 2] = ["tidegate", "envoy"];

impl RunInfo {
    /// Everything that is missing or invalid, given the tools that have results.
    #[must_use]
    pub fn lacks(&self, tools: &[Tool]) -> Vec<Lack> {
        let texts = [
            ("run", &self.run, "a name"),
            ("machine", &self.machine, "the name of the machine"),
            ("kernel", &self.kernel, "the kernel's name and version"),
            ("commit", &self.commit, "a commit"),
        ];
        let mut lacks: Vec<Lack> = texts
            .into_iter()
            .filter_map(|(path, text, expected)| said(path, text, expected))
            .collect();
        if self.cores == 0 {
            lacks.push(lack("cores", "0", "at least 1"));
        }
        let programs = ALWAYS
            .into_iter()
            .chain(tools.iter().filter_map(|tool| tool.program()));
        for program in programs {
            let found = self.versions.get(program).map_or("", String::as_str);
            lacks.extend(said(&format!("versions.{program}"), found, "a version"));
        }
        let is_digest = self.module_sha256.len() == DIGITS
            && self
                .module_sha256
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit());
        if !is_digest {
            lacks.push(lack(
                "module_sha256",
                &self.module_sha256,
                "64 hexadecimal digits",
            ));
        }
        if !is_date(&self.date) {
            lacks.push(lack(
                "date",
                &self.date,
                "a time in UTC such as 2026-11-21T10:00:00Z",
            ));
        }
        if self.parameters.is_empty() {
            lacks.push(lack("parameters", "none", "what the run was told"));
        }
        lacks
    }
}

fn said(path: &str, text: &str, expected: &'static str) -> Option<Lack> {
    let text = text.trim();
    (text.is_empty() || text == UNKNOWN).then(|| lack(path, text, expected))
}

fn lack(path: &str, found: &str, expected: &'static str) -> Lack {
    let found = if found.is_empty() { "nothing" } else { found };
    Lack {
        path: path.to_owned(),
        found: found.to_owned(),
        expected,
    }
}

/// Whether a text has the form of a time in UTC; checks only digits and separators.
fn is_date(text: &str) -> bool {
    const FORM: &str = "dddd-dd-ddTdd:dd:ddZ";
    let fits = |(form, found): (u8, u8)| {
        if form == b'd' {
            found.is_ascii_digit()
        } else {
            form == found
        }
    };
    text.len() == FORM.len() && FORM.bytes().zip(text.bytes()).all(fits)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn info() -> RunInfo {
        let version = |(name, version): (&str, &str)| (name.to_owned(), version.to_owned());
        RunInfo {
            run: "reduced-1".to_owned(),
            machine: "two cores".to_owned(),
            cores: 2,
            kernel: "Linux 6.1".to_owned(),
            versions: [
                ("tidegate", "0.1.0"),
                ("envoy", "1.40.0"),
                ("fortio", "1.75.3"),
            ]
            .map(version)
            .into(),
            module_sha256: "0".repeat(64),
            commit: "0123456789ab".to_owned(),
            date: "2026-11-21T10:00:00Z".to_owned(),
            extent: Extent::Reduced,
            parameters: [("seconds".to_owned(), Parameter::Number(5.0))].into(),
            planned: BTreeMap::new(),
        }
    }

    #[test]
    fn everything_that_is_missing_is_said_at_once() {
        let mut broken = info();
        broken.machine.clear();
        broken.commit = UNKNOWN.to_owned();
        broken.module_sha256 = "abc".to_owned();
        broken.date = "yesterday".to_owned();
        broken.parameters.clear();
        let lacks: Vec<String> = broken
            .lacks(&[])
            .iter()
            .map(|lack| lack.path.clone())
            .collect();
        assert_eq!(
            lacks,
            ["machine", "commit", "module_sha256", "date", "parameters"]
        );
        assert_eq!(info().lacks(&[Tool::Fortio, Tool::Testbed]), []);
    }

    #[test]
    fn a_tool_that_has_results_needs_a_version() {
        let lacks = info().lacks(&[Tool::K6]);
        assert_eq!(
            lacks[0].to_string(),
            "versions.k6: found nothing, expected a version"
        );
    }
}

//! Reads policies from texts, and reports all errors.
//!
//! An operator who changes a directory of policies needs the whole list of
//! errors, each with file and line. The messages are core's own, so that this
//! service, the filter and the status in Kubernetes reject a policy with the
//! same message.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tidegate_core::config::ConfigErrors;

use super::read::name_in;
use super::{CheckedPolicy, Policies, PolicyName};
use crate::document::{Malformed, TextPosition, YamlDocument, documents};

/// One error in one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, or other origin of the text.
    pub source: String,
    /// The position in the source.
    pub place: TextPosition,
    /// The policy, if it has a name.
    pub policy: Option<String>,
    /// Path of the value within the document.
    pub path: String,
    /// What was found there.
    pub found: String,
    /// What was expected there.
    pub expected: String,
}

impl Problem {
    /// The errors that core's reader found in a document.
    #[must_use]
    pub fn list(source: &str, document: &YamlDocument, errors: &ConfigErrors) -> Vec<Self> {
        let policy = name_in(document.root()).map(|name| name.to_string());
        let mut problems: Vec<Self> = errors
            .iter()
            .map(|error| Self {
                source: source.to_owned(),
                place: document.locate(error.path()),
                policy: policy.clone(),
                path: error.path().to_owned(),
                found: error.found().to_owned(),
                expected: error.expected().to_owned(),
            })
            .collect();
        let omitted = errors.total().saturating_sub(problems.len());
        if omitted > 0 {
            problems.push(Self {
                source: source.to_owned(),
                place: document.start(),
                policy,
                path: "document".to_owned(),
                found: format!("{omitted} more errors"),
                expected: "none".to_owned(),
            });
        }
        problems
    }

    /// A syntax error after `before` documents.
    #[must_use]
    pub fn malformed(source: &str, before: usize, error: Malformed, expected: &str) -> Self {
        Self {
            source: source.to_owned(),
            place: error.place,
            policy: None,
            path: format!("document {}", before.saturating_add(1)),
            found: format!("malformed YAML ({})", error.reason),
            expected: expected.to_owned(),
        }
    }
}

/// `file:line:column: policy: path: found x, expected y`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.source, self.place)?;
        if let Some(policy) = &self.policy {
            write!(f, "{policy}: ")?;
        }
        write!(
            f,
            "{}: found {}, expected {}",
            self.path, self.found, self.expected
        )
    }
}

/// The contents of several texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// The valid policies.
    pub policies: Policies,
    /// The errors, in the order of the texts. If there are any, some policies
    /// are missing from [`Self::policies`].
    pub problems: Vec<Problem>,
}

/// Reads texts, each with its name for errors. Each policy may occur once.
pub fn gather<'a>(texts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Gathered {
    let mut gathered = Gathered::default();
    let mut seen: BTreeMap<PolicyName, String> = BTreeMap::new();
    for (source, bytes) in texts {
        let (found, malformed) = documents(bytes);
        let count = found.len();
        for document in found {
            let name = name_in(document.root());
            let earlier = name.as_ref().and_then(|name| seen.get(name));
            let again = earlier.map(|there| again(source, &document, there));
            let is_again = again.is_some();
            gathered.problems.extend(again);
            match CheckedPolicy::read(document.root()) {
                Ok(policy) if !is_again => {
                    gathered.policies.insert(policy);
                }
                Ok(_) => {}
                Err(errors) => gathered
                    .problems
                    .extend(Problem::list(source, &document, &errors)),
            }
            if let Some(name) = name {
                let here = || format!("{source}:{}", document.start());
                seen.entry(name).or_insert_with(here);
            }
        }
        let broken =
            malformed.map(|error| Problem::malformed(source, count, error, "a BreakerPolicy"));
        gathered.problems.extend(broken);
    }
    gathered
}

fn again(source: &str, document: &YamlDocument, there: &str) -> Problem {
    Problem {
        source: source.to_owned(),
        place: document.locate("metadata.name"),
        policy: name_in(document.root()).map(|name| name.to_string()),
        path: "metadata.name".to_owned(),
        found: format!("the name of the policy at {there} again"),
        expected: "each name once".to_owned(),
    }
}

//! Policies from texts, and everything that is wrong with those.
//!
//! Whoever changes a directory of policies wants the whole list of errors, each
//! with file and line. The words behind the place are core's own, so that a
//! policy is refused in the same words here, by the filter and in the status of
//! a Kubernetes object.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tidegate_core::config::ConfigErrors;

use super::read::name_in;
use super::{Policies, Policy, PolicyName};
use crate::document::{Document, Malformed, Place, documents};

/// One thing wrong with one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, or whatever else the text came from.
    pub source: String,
    /// Where in it.
    pub place: Place,
    /// The policy, if it has a name.
    pub policy: Option<String>,
    /// Path of the value within the document.
    pub path: String,
    /// What stands there.
    pub found: String,
    /// What could stand there.
    pub expected: String,
}

impl Problem {
    /// What core's reader found wrong with a document.
    #[must_use]
    pub fn list(source: &str, document: &Document, errors: &ConfigErrors) -> Vec<Self> {
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

    /// A text that is no YAML after so many documents.
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

/// What a number of texts hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    /// The sound policies.
    pub policies: Policies,
    /// What is wrong, in the order of the texts. If anything is, the policies
    /// are not all that was meant.
    pub problems: Vec<Problem>,
}

/// Reads texts, each with the name it goes by in errors. Every policy may
/// stand once.
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
            match Policy::read(document.root()) {
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

fn again(source: &str, document: &Document, there: &str) -> Problem {
    Problem {
        source: source.to_owned(),
        place: document.locate("metadata.name"),
        policy: name_in(document.root()).map(|name| name.to_string()),
        path: "metadata.name".to_owned(),
        found: format!("the name of the policy at {there} again"),
        expected: "each name once".to_owned(),
    }
}

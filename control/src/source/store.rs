//! Policies that were sent by REST, stored on disk, one file each, so that a restart loses nothing.
//!
//! A new text is written to a temporary file, synced and renamed to its final name, and then the directory is synced:
//! at any moment the file contains the complete old or the complete new text. A failed write changes nothing, neither
//! on disk nor in force.
//!
//! A text's entity tag is its hash. A client that changes a policy names the text to replace, so that two clients do
//! not overwrite each other's changes without noticing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::policy::{CheckedPolicy, Gathered, Policies, PolicyName, Problem, gather};
use crate::xds::ResourceVersion;

/// Extension of the files. JSON is valid YAML.
const ENDING: &str = "yaml";

/// See the module.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    stored: BTreeMap<PolicyName, StoredPolicy>,
    problems: Vec<Problem>,
}

/// One stored policy.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPolicy {
    /// The text as it was sent.
    pub text: Arc<[u8]>,
    /// Entity tag of the text, without quotes.
    pub tag: ResourceVersion,
    /// The policy in the text.
    pub policy: Arc<CheckedPolicy>,
}

/// A condition on the stored text for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// No condition was given; sufficient only if no stored text would be lost.
    None,
    /// There is no policy with the name.
    Absent,
    /// There is a policy with the name.
    Present,
    /// The text has one of these tags.
    Tagged(Vec<String>),
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The text is not a valid policy of this name.
    #[error("the policy has errors")]
    Invalid(Vec<Problem>),
    /// There is no policy with the name.
    #[error("no policy has this name")]
    Unknown,
    /// The precondition does not hold.
    #[error("the stored policy has changed: it is not the one that the request names")]
    Changed,
    /// A precondition is needed.
    #[error("a policy with this name exists: name the text to replace in If-Match")]
    Unconditional,
    /// It could not be written.
    #[error("cannot write to the state directory: {0}")]
    Write(#[from] io::Error),
}

impl Store {
    /// Opens the directory; creates it if it is missing.
    ///
    /// # Errors
    /// When the directory cannot be created or read.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        let mut store = Self {
            path,
            stored: BTreeMap::new(),
            problems: Vec::new(),
        };
        for entry in fs::read_dir(&store.path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                store.take(&path)?;
            }
        }
        Ok(store)
    }

    /// Everything stored, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&PolicyName, &StoredPolicy)> {
        self.stored.iter()
    }

    /// The policy with this name.
    #[must_use]
    pub fn stored(&self, name: &PolicyName) -> Option<&StoredPolicy> {
        self.stored.get(name)
    }

    /// The policies, and the errors found when the files were read.
    #[must_use]
    pub fn gathered(&self) -> Gathered {
        let mut policies = Policies::default();
        for stored in self.stored.values() {
            policies.insert_shared(Arc::clone(&stored.policy));
        }
        Gathered {
            policies,
            problems: self.problems.clone(),
        }
    }

    /// Stores a text under a name; returns its tag and whether the name is new. Blocks while it writes.
    ///
    /// # Errors
    /// When the text is not a valid policy of that name, the precondition does not hold, or it cannot be written.
    pub fn put(
        &mut self,
        name: &PolicyName,
        text: &[u8],
        precondition: &Precondition,
    ) -> Result<(ResourceVersion, bool), StoreError> {
        self.check(name, precondition)?;
        let policy = sole(name, text).map_err(StoreError::Invalid)?;
        let tag = ResourceVersion::of(text);
        if self.stored.get(name).is_none_or(|stored| stored.tag != tag) {
            replace(&self.path, &self.file(name), text)?;
        }
        let stored = StoredPolicy {
            text: text.into(),
            tag: tag.clone(),
            policy,
        };
        let before = self.stored.insert(name.clone(), stored);
        Ok((tag, before.is_none()))
    }

    /// Removes a policy. Blocks while it writes.
    ///
    /// # Errors
    /// When there is none, the precondition does not hold, or the file cannot be removed.
    pub fn remove(
        &mut self,
        name: &PolicyName,
        precondition: &Precondition,
    ) -> Result<(), StoreError> {
        if !self.stored.contains_key(name) {
            return Err(StoreError::Unknown);
        }
        if *precondition != Precondition::None {
            self.check(name, precondition)?;
        }
        match fs::remove_file(self.file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        self.stored.remove(name);
        sync(&self.path)?;
        Ok(())
    }

    fn check(&self, name: &PolicyName, precondition: &Precondition) -> Result<(), StoreError> {
        let stored = self.stored.get(name);
        let holds = match precondition {
            Precondition::None if stored.is_some() => return Err(StoreError::Unconditional),
            Precondition::None => true,
            Precondition::Absent => stored.is_none(),
            Precondition::Present => stored.is_some(),
            Precondition::Tagged(tags) => {
                stored.is_some_and(|stored| tags.iter().any(|tag| tag == stored.tag.as_str()))
            }
        };
        if holds {
            Ok(())
        } else {
            Err(StoreError::Changed)
        }
    }

    /// Reads a file that an earlier run of the service stored.
    fn take(&mut self, path: &Path) -> io::Result<()> {
        let text = fs::read(path)?;
        let source = path.display().to_string();
        let Gathered { policies, problems } = gather([(source.as_str(), text.as_slice())]);
        self.problems.extend(problems);
        for policy in policies.iter() {
            let stored = StoredPolicy {
                tag: ResourceVersion::of(&text),
                text: text.as_slice().into(),
                policy: Arc::clone(policy),
            };
            self.stored.insert(policy.name().clone(), stored);
        }
        Ok(())
    }

    fn file(&self, name: &PolicyName) -> PathBuf {
        // A valid name contains no path separator and is not `..`.
        self.path.join(format!("{}.{ENDING}", name.name()))
    }
}

/// The only policy in a text, if it is valid and has this name.
fn sole(name: &PolicyName, text: &[u8]) -> Result<Arc<CheckedPolicy>, Vec<Problem>> {
    let Gathered { policies, problems } = gather([("body", text)]);
    if !problems.is_empty() {
        return Err(problems);
    }
    let found: Vec<&Arc<CheckedPolicy>> = policies.iter().collect();
    match found.as_slice() {
        [policy] if policy.name() == name => Ok(Arc::clone(policy)),
        [policy] => Err(vec![wrong(
            "metadata.name",
            policy.name().to_string(),
            format!("{name}, as in the URL, without a namespace"),
        )]),
        many => Err(vec![wrong(
            "document",
            format!("{} policies", many.len()),
            "one".to_owned(),
        )]),
    }
}

fn wrong(path: &str, found: String, expected: String) -> Problem {
    Problem {
        source: "body".to_owned(),
        place: crate::document::TextPosition { line: 1, column: 1 },
        policy: None,
        path: path.to_owned(),
        found,
        expected,
    }
}

pub(super) fn replace(folder: &Path, place: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist(place).map_err(|error| error.error)?;
    sync(folder)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

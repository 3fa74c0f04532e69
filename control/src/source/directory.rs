//! A directory of policy files, scanned again whenever it may have changed.
//!
//! Each file is independent: a file that is broken, half written or temporarily missing keeps the policies of its last
//! valid content. If the directory itself cannot be read, everything stays. Removing a file removes its policies.
//!
//! Edge cases: links are followed, so that volumes that swap a link (ConfigMaps) work. A file that was never completely
//! valid contributes its valid policies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::TextPosition;
use crate::policy::{CheckedPolicy, Gathered, Policies, PolicyName, Problem, gather};

/// Extensions of policy files.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Largest file that is read, in bytes; a larger file is a mistake.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// See the module.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    files: BTreeMap<PathBuf, File>,
    // Why the last scan could not read the directory itself.
    unreadable: Option<Problem>,
}

#[derive(Debug, Default)]
struct File {
    content: Option<Vec<u8>>,
    good: Vec<Arc<CheckedPolicy>>,
    problems: Vec<Problem>,
}

impl Directory {
    /// A directory that has not been scanned yet.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self {
            path,
            files: BTreeMap::new(),
            unreadable: None,
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Scans the directory; returns whether anything changed. Blocks while it reads.
    pub fn scan(&mut self) -> bool {
        let listed = match listed(&self.path) {
            Ok(listed) => listed,
            Err(error) => {
                let problem = unreadable(&self.path, &error);
                return self.unreadable.replace(problem.clone()) != Some(problem);
            }
        };
        let mut is_changed = self.unreadable.take().is_some();
        let before = self.files.len();
        self.files.retain(|path, _| listed.contains(path));
        is_changed |= self.files.len() != before;
        for path in listed {
            let content = read(&path);
            is_changed |= self
                .files
                .entry(path.clone())
                .or_default()
                .take(&path, content);
        }
        is_changed
    }

    /// The policies in force, and all errors.
    #[must_use]
    pub fn gathered(&self) -> Gathered {
        let mut policies = Policies::default();
        let mut origins: BTreeMap<PolicyName, &Path> = BTreeMap::new();
        let mut problems: Vec<Problem> = self.unreadable.iter().cloned().collect();
        for (path, file) in &self.files {
            problems.extend(file.problems.iter().cloned());
            for policy in &file.good {
                if let Some(other) = origins.get(policy.name()) {
                    problems.push(again(path, policy.name(), other));
                } else {
                    origins.insert(policy.name().clone(), path);
                    policies.insert_shared(Arc::clone(policy));
                }
            }
        }
        Gathered { policies, problems }
    }
}

impl File {
    /// Processes the content of the file; returns whether anything changed.
    fn take(&mut self, path: &Path, content: io::Result<Vec<u8>>) -> bool {
        let content = match content {
            Ok(content) => content,
            Err(error) => {
                let problems = vec![unreadable(path, &error)];
                self.content = None;
                return std::mem::replace(&mut self.problems, problems.clone()) != problems;
            }
        };
        if self.content.as_ref() == Some(&content) {
            return false;
        }
        let source = path.display().to_string();
        let Gathered { policies, problems } = gather([(source.as_str(), content.as_slice())]);
        if problems.is_empty() || self.good.is_empty() {
            self.good = policies.iter().cloned().collect();
        }
        self.problems = problems;
        self.content = Some(content);
        true
    }
}

fn listed(directory: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let is_policy = path
            .extension()
            .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        if is_policy && !is_hidden && !path.is_dir() {
            files.insert(path);
        }
    }
    Ok(files)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let size = fs::metadata(path)?.len();
    if size > MAX_FILE_BYTES {
        let reason = format!("{size} bytes, at most {MAX_FILE_BYTES} are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    fs::read(path)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem {
        source: path.display().to_string(),
        place: TextPosition { line: 1, column: 1 },
        policy: None,
        path: "document".to_owned(),
        found: error.to_string(),
        expected: "something that can be read; the content that was read last remains in force"
            .to_owned(),
    }
}

fn again(path: &Path, name: &PolicyName, other: &Path) -> Problem {
    Problem {
        source: path.display().to_string(),
        place: TextPosition { line: 1, column: 1 },
        policy: Some(name.to_string()),
        path: "metadata.name".to_owned(),
        found: format!("the name of a policy in {} again", other.display()),
        expected: "each name once".to_owned(),
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;

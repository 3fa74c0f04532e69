//! A directory of policy files, read again whenever it may have changed.
//!
//! Each file is looked at on its own: one that is broken, or half written, or gone for a moment keeps the
//! policies that it last gave when it was sound. If the directory itself cannot be read, everything stays. A
//! file that is removed takes its policies with it: that is how policies are deleted.
//!
//! Edges: what counts as a file is what a link leads to, so that volumes that swap a link (ConfigMaps) work.
//! A file that has never been sound gives those of its policies that are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::Place;
use crate::policy::{Gathered, Policies, Policy, PolicyName, Problem, gather};

/// Endings of files that hold policies.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Largest file that is read, in bytes; beyond it lies no policy but a mistake.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// See the module.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    files: BTreeMap<PathBuf, File>,
    // Why the directory itself could not be read at the last look.
    unreadable: Option<Problem>,
}

#[derive(Debug, Default)]
struct File {
    content: Option<Vec<u8>>,
    good: Vec<Arc<Policy>>,
    problems: Vec<Problem>,
}

impl Directory {
    /// A directory that has not been looked at yet.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self {
            path,
            files: BTreeMap::new(),
            unreadable: None,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the directory; says whether anything is different. Blocks while it reads.
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

    /// What holds at present, and all that is wrong.
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
    /// Takes what stands in the file now; says whether that is new.
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
        place: Place { line: 1, column: 1 },
        policy: None,
        path: "document".to_owned(),
        found: error.to_string(),
        expected: "something that can be read; what was read last stays in force".to_owned(),
    }
}

fn again(path: &Path, name: &PolicyName, other: &Path) -> Problem {
    Problem {
        source: path.display().to_string(),
        place: Place { line: 1, column: 1 },
        policy: Some(name.to_string()),
        path: "metadata.name".to_owned(),
        found: format!("the name of a policy in {} again", other.display()),
        expected: "each name once".to_owned(),
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;

//! The switch for all policies: while policies are off, every proxy gets its configuration with `enabled: false`, so that
//! requests pass and nothing is counted. Learned state stays in the proxies.
//!
//! Any of these sources turns policies off: the settings, a file in the state directory, or an annotation on the Lease in
//! Kubernetes. The operator who turns them off leaves a note. The file and the annotation outlive the service, and an
//! operator can write them without it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::store::replace;

/// Name of the file in the state directory.
const FILE: &str = "disabled";

/// Longest note, in bytes.
pub const MAX_NOTE_BYTES: usize = 500;

/// What can turn the policies off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ShutoffSource {
    /// The settings of the service.
    Settings,
    /// The file in the state directory.
    File,
    /// The annotation on the Lease.
    Lease,
}

impl ShutoffSource {
    /// Its name, as REST shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::File => "file",
            Self::Lease => "lease",
        }
    }
}

/// The sources that turn the policies off, each with its note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shutoff(BTreeMap<ShutoffSource, String>);

impl Shutoff {
    /// Whether all policies are off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        !self.0.is_empty()
    }

    /// The sources that turn them off, and the notes.
    pub fn notes(&self) -> impl Iterator<Item = (ShutoffSource, &str)> {
        self.0.iter().map(|(source, note)| (*source, note.as_str()))
    }

    /// Sets the note of a source; `None`: it does not turn policies off. Returns whether this is a change.
    pub fn say(&mut self, source: ShutoffSource, note: Option<&str>) -> bool {
        match note {
            Some(note) => {
                let note = shown(note);
                self.0.insert(source, note.clone()) != Some(note)
            }
            None => self.0.remove(&source).is_some(),
        }
    }
}

/// `file: incident 4711; settings: disabled`.
impl std::fmt::Display for Shutoff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let notes: Vec<String> = self
            .notes()
            .map(|(source, note)| format!("{}: {note}", source.name()))
            .collect();
        f.write_str(&notes.join("; "))
    }
}

/// A note on one line, with a bounded length.
fn shown(note: &str) -> String {
    let line: String = note
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut end = line.len().min(MAX_NOTE_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.get(..end).unwrap_or_default().to_owned()
}

/// The file in the state directory.
#[derive(Debug, Clone)]
pub struct ShutoffFile {
    folder: PathBuf,
}

impl ShutoffFile {
    /// The file in this state directory.
    #[must_use]
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// The note in the file; `None` without a file.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn read(&self) -> io::Result<Option<String>> {
        match fs::read(self.path()) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the file with a note, or removes it. Blocks while it writes.
    ///
    /// # Errors
    /// When writing or removing fails; the file is unchanged then.
    pub fn write(&self, note: Option<&str>) -> io::Result<()> {
        let path = self.path();
        match note {
            Some(note) => replace(&self.folder, &path, note.as_bytes()),
            None => remove(&path),
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_while_anyone_says_so() {
        let mut shutoff = Shutoff::default();
        assert!(shutoff.say(ShutoffSource::File, Some("incident\n4711 ")));
        assert!(!shutoff.say(ShutoffSource::File, Some("incident 4711")));
        assert!(shutoff.say(ShutoffSource::Lease, Some("")));
        assert_eq!(shutoff.to_string(), "file: incident 4711; lease: ");
        assert!(shutoff.say(ShutoffSource::File, None));
        assert!(shutoff.is_off());
        assert!(shutoff.say(ShutoffSource::Lease, None));
        assert!(!shutoff.say(ShutoffSource::Lease, None));
        assert!(!shutoff.is_off());
    }

    #[test]
    fn the_file_survives_and_a_missing_one_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = ShutoffFile::in_folder(folder.path().to_owned());
        assert_eq!(file.read().unwrap(), None);
        file.write(None).unwrap();
        file.write(Some("incident 4711")).unwrap();
        let again = ShutoffFile::in_folder(folder.path().to_owned());
        assert_eq!(again.read().unwrap().as_deref(), Some("incident 4711"));
        again.write(None).unwrap();
        assert_eq!(file.read().unwrap(), None);
    }
}

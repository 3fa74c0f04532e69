//! Reads policies from the files and directories that a command names.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tidegate_control::policy::{Gathered, gather};

use super::CommandFailure;

/// Extensions of policy files in a directory.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The name of standard input.
const STDIN: &str = "-";

/// A name and the content of the file of that name.
pub(super) type Text = (String, Vec<u8>);

/// The contents of the files; of a directory, those that end in .yaml, .yml or
/// .json, without subdirectories and hidden files.
pub(super) fn texts(paths: &[PathBuf]) -> Result<Vec<Text>, CommandFailure> {
    let mut texts: Vec<Text> = Vec::new();
    for path in paths {
        if path.as_os_str() == STDIN {
            let mut bytes = Vec::new();
            io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| CommandFailure(format!("standard input: {error}")))?;
            texts.push(("stdin".to_owned(), bytes));
        } else if path.is_dir() {
            for file in listed(path)? {
                texts.push(read(&file)?);
            }
        } else {
            texts.push(read(path)?);
        }
    }
    Ok(texts)
}

/// The texts in the form that readers accept.
pub(super) fn borrowed(texts: &[Text]) -> impl Iterator<Item = (&str, &[u8])> {
    texts
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
}

/// The policies in the files, and how many files there are.
pub(super) fn policies(paths: &[PathBuf]) -> Result<(usize, Gathered), CommandFailure> {
    let texts = texts(paths)?;
    Ok((texts.len(), gather(borrowed(&texts))))
}

/// The text of one file.
fn read(path: &Path) -> Result<Text, CommandFailure> {
    let bytes = fs::read(path).map_err(|error| failure(path, &error))?;
    Ok((path.display().to_string(), bytes))
}

fn listed(directory: &Path) -> Result<Vec<PathBuf>, CommandFailure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| failure(directory, &error))? {
        let path = entry.map_err(|error| failure(directory, &error))?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let is_policy = path
            .extension()
            .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        if is_policy && !is_hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn failure(path: &Path, error: &io::Error) -> CommandFailure {
    CommandFailure(format!("{}: {error}", path.display()))
}

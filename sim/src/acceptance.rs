//! Acceptance seeds: laws may be overfitted to the seeds that they are developed with.
//!
//! Developers play the stories of one seed again and again, and keep the changes that score better there. So published
//! figures come from stories of another seed, which is derived from the files of `core/src`. Any change of a law leads to
//! stories that the law was not developed with. Seeds below [`FIRST_SEED`] are for development.
//!
//! The digest takes every file in the order of its path: the path with `/`, the number of bytes, the bytes. Edges: the
//! files are read when the seed is asked for, so the binary must be built from the same files; `make` does that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::scenario::ScenarioError;

/// Smaller seeds are for development.
pub const FIRST_SEED: u64 = 1_000;
/// The number of acceptance seeds: many, but short in the name of a story.
const SEEDS: u64 = 1_000_000_000;

/// The seed that follows from the files of `core/src` as they are now.
///
/// # Errors
/// When a file cannot be read.
pub fn seed() -> Result<u64, ScenarioError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    let read = |source| ScenarioError::Read {
        path: folder.clone(),
        source,
    };
    let mut sources = Vec::new();
    collect(&folder, "", &mut sources).map_err(read)?;
    Ok(seed_of(sources))
}

/// Files by their path in the folder, with their content.
type SourceFile = (String, Vec<u8>);

/// Adds every file of a folder and of those in it; `prefix` is the folder's own path.
fn collect(folder: &Path, prefix: &str, sources: &mut Vec<SourceFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{name}/"), sources)?;
        } else {
            sources.push((name, fs::read(&path)?));
        }
    }
    Ok(())
}

/// The seed that follows from some files, in any order.
fn seed_of(mut sources: Vec<SourceFile>) -> u64 {
    sources.sort();
    let mut digest = Digest::default();
    for (path, bytes) in &sources {
        digest.feed_bytes(path.as_bytes());
        digest.feed(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        digest.feed_bytes(bytes);
    }
    FIRST_SEED + digest.value() % SEEDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> SourceFile {
        (path.to_owned(), text.as_bytes().to_vec())
    }

    #[test]
    fn a_seed_follows_from_paths_and_contents_alone() {
        let sources = [source("a.rs", "one"), source("b/c.rs", "two")];
        let seed = seed_of(sources.to_vec());
        assert!(seed >= FIRST_SEED);
        let [first, second] = sources;
        assert_eq!(seed_of(vec![second, first]), seed, "the order of reading");
        for other in [
            vec![source("a.rs", "One"), source("b/c.rs", "two")],
            vec![source("a.rs", "one"), source("b/d.rs", "two")],
            vec![source("a.rs", "one")],
            vec![source("a.rs", "onetwo"), source("b/c.rs", "")],
        ] {
            assert_ne!(seed_of(other.clone()), seed, "{other:?}");
        }
    }

    #[test]
    fn every_file_of_core_counts() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
        let mut sources = Vec::new();
        collect(&folder, "", &mut sources).unwrap();
        let has = |name: &str| sources.iter().any(|(path, _)| path == name);
        assert!(has("lib.rs"));
        assert!(sources.iter().any(|(path, _)| path.starts_with("limit/")));
        assert_eq!(seed().unwrap(), seed_of(sources));
    }
}

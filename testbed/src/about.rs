//! Machine, date, versions and commit of a run, without which its figures are worthless.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::envoy::{binary, release_module, repository};

/// Versions, commit, machine and date.
#[must_use]
pub fn metadata() -> BTreeMap<String, String> {
    let repository = repository();
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&repository)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    let envoy = said(&binary().to_string_lossy(), &["--version"]).map(|text| version_of(&text));
    let date = said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]);
    let commit = said("git", &["rev-parse", "--short=12", "HEAD"]);
    let is_changed = said("git", &["status", "--porcelain", "--untracked-files=no"]).is_some();
    let commit = commit.map(|commit| {
        if is_changed {
            format!("{commit} (changed)")
        } else {
            commit
        }
    });
    let cores = std::thread::available_parallelism()
        .map(|n| n.to_string())
        .ok();
    let facts = [
        ("tidegate", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("envoy", envoy),
        ("commit", commit),
        ("date", date),
        ("kernel", said("uname", &["-sr"])),
        ("processor", processor()),
        ("cores", cores),
        (
            "build",
            Some(
                if cfg!(debug_assertions) {
                    "debug"
                } else {
                    "release"
                }
                .to_owned(),
            ),
        ),
    ];
    let unknown = || "unknown".to_owned();
    facts
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.unwrap_or_else(unknown)))
        .collect()
}

/// SHA-256 of the module that ships, in hexadecimal digits.
///
/// # Errors
/// When the module is not there.
pub fn module_sha256() -> io::Result<String> {
    sha256(&release_module())
}

/// SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// When the file cannot be read.
pub fn sha256(file: &Path) -> io::Result<String> {
    let digest = Sha256::digest(fs::read(file)?);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// `envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL` -> `1.40.0`.
fn version_of(text: &str) -> String {
    let version = text
        .rsplit_once("version: ")
        .map_or(text, |(_, version)| version);
    version.split('/').nth(1).unwrap_or(version).to_owned()
}

fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(": ").map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_picked_out() {
        assert_eq!(
            version_of("/opt/bin/envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL"),
            "1.40.0"
        );
    }
}

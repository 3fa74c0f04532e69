//! Embeds what the program states about itself: the commit that it is built from, and the module that it belongs to.
//!
//! The variables `TIDEGATE_COMMIT` and `TIDEGATE_MODULE_SHA256` set them (ci/release.sh does). Without the first, an
//! optimized build asks git for the commit. A build for tests does not, because each commit would compile the crate and
//! its tests again.

use std::path::PathBuf;
use std::process::Command;

/// Replaces the commit if it is not known.
const UNKNOWN: &str = "unknown";

fn main() {
    for name in ["TIDEGATE_COMMIT", "TIDEGATE_MODULE_SHA256"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let commit = given("TIDEGATE_COMMIT")
        .or_else(|| from_git().filter(|_| given("PROFILE").as_deref() == Some("release")))
        .unwrap_or_else(|| UNKNOWN.to_owned());
    println!("cargo::rustc-env=TIDEGATE_COMMIT={commit}");

    let version = given("CARGO_PKG_VERSION").unwrap_or_default();
    let module = given("TIDEGATE_MODULE_SHA256").map_or_else(
        || version.clone(),
        |sha256| format!("{version} sha256:{sha256}"),
    );
    println!("cargo::rustc-env=TIDEGATE_BUILT_FOR={module}");
}

fn given(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The commit of the clone that contains this crate. Makes cargo run this script again when the commit changes.
fn from_git() -> Option<String> {
    let folder = PathBuf::from(given("CARGO_MANIFEST_DIR")?);
    let log = folder.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if !log.exists() {
        return None;
    }
    println!("cargo::rerun-if-changed={}", log.display());
    println!("cargo::rerun-if-changed=build.rs");
    git(&["rev-parse", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

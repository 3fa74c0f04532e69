//! The native module that does nothing, built by the C compiler that building Rust needs anyway.
//!
//! Its cost is what Envoy needs to call a module; no module can cost less.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The module's source.
const SOURCE: &str = include_str!("empty.c");

/// Builds the module in `folder`.
///
/// # Errors
/// If there is no C compiler, or the folder cannot be written.
pub fn module(folder: &Path) -> Result<PathBuf> {
    let source = folder.join("empty.c");
    let module = folder.join("libempty.so");
    fs::write(&source, SOURCE).with_context(|| format!("write {}", source.display()))?;
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&module, &source])
        .status()
        .context("run cc")?;
    ensure!(status.success(), "cc ended with {status}");
    Ok(module)
}

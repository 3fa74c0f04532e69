//! What is under test: what was built here, or the files of a release.
//!
//! `TIDEGATE_RELEASE` names the folder of a release, such as `dist/release`, which `make release` builds. With it, proxies
//! pull the images that a registry of releases has, and the control service is the program of the release.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use tidegate_testbed::envoy::repository;

const FOLDER: &str = "TIDEGATE_RELEASE";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The folder of the release under test, if one is.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let named = env::var_os(FOLDER).filter(|named| !named.is_empty())?;
    Some(repository().join(named))
}

/// The program under test: `built`, or that of the release for this machine, which is unpacked in `place`.
///
/// # Errors
/// If the release has none.
pub fn program(built: &str, place: &Path) -> io::Result<PathBuf> {
    static UNPACKING: Mutex<()> = Mutex::new(());
    let Some(folder) = folder() else {
        return Ok(PathBuf::from(built));
    };
    // Nobody may run it before it is whole.
    let _guard = UNPACKING.lock().unwrap_or_else(PoisonError::into_inner);
    let unpacked = place.join("bin/tidegate");
    if !unpacked.exists() {
        let name = format!("tidegate-{VERSION}-linux-{}.tar.gz", architecture());
        let mut command = Command::new("tar");
        command.arg("-xzf").arg(folder.join(&name));
        let status = command.arg("-C").arg(place).arg("bin/tidegate").status()?;
        if !status.success() {
            return Err(io::Error::other(format!("unpack {name}: {status}")));
        }
    }
    Ok(unpacked)
}

/// This machine's, as releases name it.
const fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    }
}

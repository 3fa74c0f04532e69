//! Where the Envoy binary is.

use std::path::{Path, PathBuf};

/// Environment variable with the path of another Envoy binary.
pub const ENVOY_VARIABLE: &str = "TIDEGATE_ENVOY";

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().unwrap_or(crate_folder).to_owned()
}

/// The Envoy binary that is used.
#[must_use]
pub fn binary() -> PathBuf {
    std::env::var_os(ENVOY_VARIABLE)
        .map_or_else(|| repository().join(".tools/bin/envoy"), PathBuf::from)
}

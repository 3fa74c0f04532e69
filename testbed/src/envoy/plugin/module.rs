//! The files of the module under test.

use std::path::PathBuf;

use crate::envoy::native;
use crate::envoy::place::repository;

/// Environment variable with the path of another release module.
pub const MODULE_VARIABLE: &str = "TIDEGATE_MODULE";

/// The module that `make filter` builds, or the path in the environment variable `TIDEGATE_MODULE`.
#[must_use]
pub fn release_module() -> PathBuf {
    std::env::var_os(MODULE_VARIABLE)
        .map_or_else(|| repository().join("dist/tidegate.wasm"), PathBuf::from)
}

/// The module with hooks that only tests may use, of the same kind as the release module.
#[must_use]
pub fn test_module() -> PathBuf {
    let name = if native::is_native(&release_module()) {
        "dist/libtidegate-test.so"
    } else {
        "dist/tidegate-test.wasm"
    };
    repository().join(name)
}

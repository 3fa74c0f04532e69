//! The native module in Envoy's configuration: a shared object instead of a WebAssembly module, with the same document.
//!
//! Envoy finds `lib<name>.so` in the folder that an environment variable names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::place::repository;

/// The type of a native filter's configuration.
pub(super) const NATIVE_TYPE: &str =
    "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter";
const SEARCH_PATH: &str = "ENVOY_DYNAMIC_MODULES_SEARCH_PATH";

/// The module that `make native` builds.
#[must_use]
pub fn native_module() -> PathBuf {
    repository().join("dist/libtidegate.so")
}

/// Whether a module is a shared object.
pub(super) fn is_native(module: &Path) -> bool {
    module.extension() == Some(OsStr::new("so"))
}

/// The environment variable by which Envoy finds a native module.
#[must_use]
pub fn search_path(module: &Path) -> (&'static str, PathBuf) {
    let folder = module.parent().unwrap_or_else(|| Path::new("."));
    (SEARCH_PATH, folder.to_owned())
}

/// The `typed_config` of an HTTP filter for a native module, with the plugin's name and a configuration document.
#[must_use]
pub fn native_config(module: &Path, plugin: &str, document: &str) -> Value {
    let stem = module.file_stem().and_then(OsStr::to_str);
    let name = stem.unwrap_or_default().trim_start_matches("lib");
    json!({
        "@type": NATIVE_TYPE,
        "dynamic_module_config": {"name": name, "do_not_close": true},
        "filter_name": plugin,
        "filter_config": {
            "@type": "type.googleapis.com/google.protobuf.StringValue",
            "value": document,
        },
    })
}

/// Runtime settings with which a native module's metrics have the same names in Prometheus as the WebAssembly module's.
#[must_use]
pub fn runtime() -> Value {
    json!({"layers": [{
        "name": "tidegate",
        "static_layer": {
            "envoy.reloadable_features.dynamic_modules_strip_custom_stat_prefix": true,
        },
    }]})
}

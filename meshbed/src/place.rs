//! The paths of the servers' binaries and files.

use std::path::PathBuf;

use tidegate_testbed::envoy::repository;

/// A file that a make target creates does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{} is not there: make {target}", path.display())]
pub struct Missing {
    path: PathBuf,
    target: &'static str,
}

/// The path of a server's binary, such as `kube-apiserver`.
///
/// # Errors
/// When it was not built.
pub fn binary(name: &str) -> Result<PathBuf, Missing> {
    let target = match name {
        "etcd" | "kube-apiserver" => "tools-kube",
        _ => "tools-mesh",
    };
    existing(repository().join(".tools/bin").join(name), target)
}

/// The path of a file from Istio's or the Gateway API's module, such as `istio.yaml`.
///
/// # Errors
/// When it was not fetched.
pub fn file(name: &str) -> Result<PathBuf, Missing> {
    let target = match name {
        "envoy_bootstrap.json" => "tools-mesh",
        _ => "tools-kube",
    };
    existing(repository().join(".tools/mesh").join(name), target)
}

fn existing(path: PathBuf, target: &'static str) -> Result<PathBuf, Missing> {
    if path.exists() {
        Ok(path)
    } else {
        Err(Missing { path, target })
    }
}

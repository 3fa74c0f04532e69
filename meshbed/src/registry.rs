//! A registry of images on loopback, to which `make oci-push` pushes the module.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tidegate_supervise::{Log, Process};
use tidegate_testbed::envoy::repository;

use crate::cluster::ClusterError;
use crate::place;
use crate::ports;

/// Short, because it loads nothing.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running registry; dropping this kills it. Its images are in memory.
#[derive(Debug)]
pub struct ImageRegistry {
    #[expect(dead_code, reason = "dropping it ends the process")]
    process: Process,
    address: SocketAddr,
}

/// An image of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its address, as a plugin object names it: `oci://127.0.0.1:5000/tidegate/filter:0.1.0`.
    pub url: String,
    /// SHA-256 of its manifest, in hex.
    pub sha256: String,
}

impl ImageRegistry {
    /// Starts it; its log goes to `folder`.
    ///
    /// # Errors
    /// When `crane` was not built, or it does not listen.
    pub async fn start(folder: &Path) -> Result<Self, ClusterError> {
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let mut command = Command::new(place::binary("crane")?);
        command.args(["registry", "serve", "--address", &address.to_string()]);
        let name = format!("registry-{}", address.port());
        let mut process = Process::start(&name, command, Log::In(folder))?;
        process.listens(address, READY_WITHIN).await?;
        Ok(Self { process, address })
    }

    /// Where it listens, without TLS.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Packs the module and pushes it, as an operator does. Blocks until the image is there.
    ///
    /// # Errors
    /// If that fails, with the script's output.
    pub fn push(&self) -> Result<Image, ClusterError> {
        push(self.address, &[])
    }

    /// Adds a tag to an image of this registry. Blocks until it has it.
    ///
    /// # Errors
    /// If there is no such image.
    pub fn tag(&self, image: &Image, tag: &str) -> Result<(), ClusterError> {
        let name = image.url.trim_start_matches("oci://");
        let mut command = Command::new(place::binary("crane")?);
        let output = command.args(["tag", "--insecure", name, tag]).output()?;
        if output.status.success() {
            Ok(())
        } else {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(io::Error::other(said).into())
        }
    }
}

/// Packs the module and pushes it to the registry at this address, with these additional environment variables.
pub(crate) fn push(to: SocketAddr, environment: &[(&str, &Path)]) -> Result<Image, ClusterError> {
    let target = format!("{to}/tidegate/filter");
    let mut command = Command::new(repository().join("ci/oci.sh"));
    command.args(["push", &target]);
    let output = command.envs(environment.iter().copied()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(said).into());
    }
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    image(&printed).ok_or_else(|| io::Error::other(printed).into())
}

/// Parses the output of a push: `url: ...` and `sha256: ...`.
fn image(printed: &str) -> Option<Image> {
    let value = |key: &str| {
        let mut lines = printed.lines();
        lines.find_map(|line| line.strip_prefix(key).map(str::to_owned))
    };
    Some(Image {
        url: value("url: ")?,
        sha256: value("sha256: ")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_after_a_push_names_the_image() {
        let printed = "url: oci://127.0.0.1:1/a/b:1\nsha256: 00ff\n";
        let expected = Image {
            url: "oci://127.0.0.1:1/a/b:1".to_owned(),
            sha256: "00ff".to_owned(),
        };
        assert_eq!(image(printed), Some(expected));
        assert_eq!(image("url: oci://127.0.0.1:1/a/b:1\n"), None);
    }
}

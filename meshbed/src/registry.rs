//! A registry of images on loopback, to which `make oci-push` pushes the module, or `make release-push` a release.

use std::fs;
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
use crate::release;

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

    /// Packs the module and pushes it, as an operator does; of a release, pushes all images. Blocks until they are there.
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

/// Pushes to the registry at this address, with these additional environment variables.
pub(crate) fn push(to: SocketAddr, environment: &[(&str, &Path)]) -> Result<Image, ClusterError> {
    let target = format!("{to}/tidegate");
    if let Some(folder) = release::folder() {
        let mut command = Command::new(repository().join("ci/release/push.sh"));
        pushed(command.arg(&target), environment)?;
        let digests = fs::read_to_string(folder.join("digests"))?;
        return released(&target, &digests).ok_or_else(|| io::Error::other(digests).into());
    }
    let mut command = Command::new(repository().join("ci/oci.sh"));
    let printed = pushed(
        command.args(["push", &format!("{target}/filter")]),
        environment,
    )?;
    image(&printed).ok_or_else(|| io::Error::other(printed).into())
}

/// What a script printed that pushes.
fn pushed(command: &mut Command, environment: &[(&str, &Path)]) -> Result<String, ClusterError> {
    let output = command.envs(environment.iter().copied()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(said).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The module's image of a release, in the layout that every registry takes. A line is a name with its tag, and a digest.
fn released(target: &str, digests: &str) -> Option<Image> {
    let is_module = |name: &str| name.starts_with("filter:") && !name.ends_with("-artifact");
    let mut lines = digests.lines().filter_map(|line| line.split_once(' '));
    let (name, digest) = lines.find(|(name, _)| is_module(name))?;
    Some(Image {
        url: format!("oci://{target}/{name}"),
        sha256: digest.strip_prefix("sha256:")?.to_owned(),
    })
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

    #[test]
    fn the_digests_of_a_release_name_the_image() {
        let digests = "control:1 sha256:aa\nfilter:1-artifact sha256:bb\nfilter:1 sha256:00ff\n";
        let expected = Image {
            url: "oci://127.0.0.1:1/tidegate/filter:1".to_owned(),
            sha256: "00ff".to_owned(),
        };
        assert_eq!(released("127.0.0.1:1/tidegate", digests), Some(expected));
        assert_eq!(
            released("127.0.0.1:1/tidegate", "control:1 sha256:aa\n"),
            None
        );
    }
}

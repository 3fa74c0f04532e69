//! What was installed from `dist/release`, and Helm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use tidegate_testbed::envoy::repository;

/// Where the chart is installed.
pub(crate) const NAMESPACE: &str = "tidegate-system";

/// The files of a release, and the folder in which its script installed them.
pub(crate) struct Release {
    files: PathBuf,
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Release {
    /// Runs the install script. It installs into a new folder.
    pub(crate) fn unpack(kubeconfig: PathBuf) -> anyhow::Result<Self> {
        let files = repository().join("dist/release");
        let script = files.join("install.sh");
        ensure!(
            script.exists(),
            "{} is missing: make release builds it",
            script.display()
        );
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("sh");
        command.arg(script).arg("--prefix").arg(folder.path());
        command.arg("--from").arg(&files);
        let status = command.status().context("run install.sh")?;
        ensure!(status.success(), "install.sh: {status}");
        Ok(Self {
            files,
            folder,
            kubeconfig,
        })
    }

    /// The installed program.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.path().join("bin/tidegate")
    }

    /// The chart's archive.
    pub(crate) fn chart(&self) -> PathBuf {
        let version = env!("CARGO_PKG_VERSION");
        self.files.join(format!("tidegate-{version}.tgz"))
    }

    /// The recorded digest of an image.
    pub(crate) fn digest(&self, name: &str) -> String {
        let text = fs::read_to_string(self.files.join("digests")).unwrap();
        let start = format!("{name}:{} ", env!("CARGO_PKG_VERSION"));
        let found = text.lines().find_map(|line| line.strip_prefix(&start));
        found
            .unwrap_or_else(|| panic!("no image {name} in: {text}"))
            .to_owned()
    }

    /// Runs Helm in the namespace, without the settings of this machine's user.
    pub(crate) fn helm(&self, words: &[&str]) {
        let mut command = Command::new(helm());
        command.args(words).args(["--namespace", NAMESPACE]);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.env("HOME", self.folder.path());
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, self.folder.path().join(".helm"));
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "helm {words:?}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn helm() -> PathBuf {
    let path: &Path = &repository().join(".tools/bin/helm");
    assert!(
        path.exists(),
        "{} is missing: ci/helm.sh builds it",
        path.display()
    );
    path.to_owned()
}

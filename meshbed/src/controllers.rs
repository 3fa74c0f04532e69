//! The part of kube-controller-manager that the conformance tests need.
//!
//! Two of its controllers run: the garbage collector for objects without an owner, and the one that empties a deleted
//! namespace. The others would wait for nodes that do not exist.

use std::process::Command;
use std::time::Duration;

use tidegate_supervise::{Log, Process};

use crate::cluster::{ClusterError, GRACE, KubeCluster};
use crate::place;

/// It lists all kinds before it works: seconds on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A running controller-manager; killed when dropped.
#[derive(Debug)]
pub struct Controllers {
    process: Process,
}

impl Controllers {
    /// Starts it, and waits until it knows all objects.
    ///
    /// # Errors
    /// When the binary is missing, or it does not become ready.
    pub async fn start(cluster: &KubeCluster) -> Result<Self, ClusterError> {
        let mut command = Command::new(place::binary("kube-controller-manager")?);
        command
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig_file(cluster.admin())?);
        command.args([
            "--controllers=garbage-collector-controller,namespace-controller",
            "--leader-elect=false",
            // It needs no port for requests.
            "--secure-port=0",
        ]);
        command
            .current_dir(cluster.folder())
            .env_remove("KUBECONFIG");
        let mut process = Process::start(
            "kube-controller-manager",
            command,
            Log::In(cluster.folder()),
        )?;
        let collects = |line: &str| line.contains("Proceeding to collect garbage").then_some(());
        process.line(READY_WITHIN, collects).await?;
        Ok(Self { process })
    }

    /// Stops the process.
    pub fn stop(mut self) {
        self.process.stop(GRACE);
    }
}

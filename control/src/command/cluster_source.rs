//! Where a command reads facts about the cluster: from the API server, or from files with objects.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tidegate_control::cluster::{ClusterScope, read_cluster, read_objects};
use tidegate_graph::ClusterFacts;
use tidegate_graph::output::plain;

use super::output::NOTED;
use super::{CommandFailure, files, output};

/// The options of every command that reads Kubernetes.
#[derive(Debug, Args)]
pub(super) struct ClusterSource {
    /// Read replicas, resources, endpoints and nodes from the Kubernetes API that kubectl uses. Nothing is written
    #[arg(long, help_heading = "Kubernetes")]
    kubernetes: bool,
    /// Context of the kubeconfig
    #[arg(
        long,
        value_name = "NAME",
        requires = "kubernetes",
        help_heading = "Kubernetes"
    )]
    context: Option<String>,
    /// Configuration of the client [default: the same as kubectl's, or from within the cluster]
    #[arg(
        long,
        value_name = "FILE",
        requires = "kubernetes",
        help_heading = "Kubernetes"
    )]
    kubeconfig: Option<PathBuf>,
    /// Read these namespaces only [default: all]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "kubernetes",
        help_heading = "Kubernetes"
    )]
    kube_namespace: Vec<String>,
    /// Read these objects from files: the output of kubectl get deploy,sts,ds,pods,endpointslices,nodes -A -o json
    #[arg(long, value_name = "FILE|DIR", num_args = 1.., conflicts_with = "kubernetes", help_heading = "Kubernetes")]
    objects: Vec<PathBuf>,
}

impl ClusterSource {
    /// The facts about the cluster; `None` if no source is given. An API server that does not answer is a warning.
    pub(super) fn facts(&self, timeout: Duration) -> Result<Option<ClusterFacts>, CommandFailure> {
        if !self.objects.is_empty() {
            return self.of_files().map(Some);
        }
        if !self.kubernetes {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandFailure(format!("the runtime: {error}")))?;
        runtime.block_on(async {
            let client = self.client(timeout).await?;
            let scope = ClusterScope {
                namespaces: self.kube_namespace.clone(),
            };
            Ok(Some(read_cluster(&client, &scope, timeout).await))
        })
    }

    async fn client(&self, timeout: Duration) -> Result<Client, CommandFailure> {
        let failure = |error: &dyn std::fmt::Display| {
            CommandFailure(plain(&format!("find the API server: {error}")))
        };
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path).map_err(|error| failure(&error))?;
                Config::from_custom_kubeconfig(file, &options)
                    .await
                    .map_err(|error| failure(&error))?
            }
            None if self.context.is_some() => Config::from_kubeconfig(&options)
                .await
                .map_err(|error| failure(&error))?,
            None => Config::infer().await.map_err(|error| failure(&error))?,
        };
        config.connect_timeout = Some(timeout);
        config.read_timeout = Some(timeout);
        Client::try_from(config).map_err(|error| failure(&error))
    }

    fn of_files(&self) -> Result<ClusterFacts, CommandFailure> {
        let texts = files::texts(&self.objects)?;
        let done = read_objects(files::borrowed(&texts));
        for note in &done.notes {
            output::note(&format_args!("{NOTED}note{NOTED:#}: {}", plain(note)));
        }
        if !done.problems.is_empty() {
            let lines: Vec<String> = done.problems.iter().map(|line| plain(line)).collect();
            return Err(CommandFailure(lines.join("\n")));
        }
        if done.count == 0 {
            return Err(CommandFailure(
                "--objects: found no object, expected the output of kubectl get deploy,sts,ds,pods,endpointslices,nodes -A -o json"
                    .to_owned(),
            ));
        }
        Ok(done.objects.finish(Vec::new()))
    }
}

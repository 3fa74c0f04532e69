//! Starts the tasks of the Kubernetes controller: watches, lease, and reconciliation.
//!
//! All replicas run all tasks; only the one that holds the lease writes. If a
//! task ends before it was told to, the service becomes unhealthy, because
//! nothing else would restart the task.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::Api;
use kube::runtime::events::{Recorder, Reporter};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::ConnectError;
use super::event::KubeEvent;
use super::lease::{Candidate, ShutoffLease};
use super::pools::PoolWatch;
use super::reach::ReachWatch;
use super::reconcile::ClusterReconciler;
use super::rejections::RejectionWatch;
use super::settings::KubeSettings;
use super::shared::SharedState;
use super::view::PoolFindings;
use super::watch::ClusterWatch;
use super::write::ClusterWriter;
use crate::event::EventSink;
use crate::fleet::ProxyFleet;
use crate::source::Catalog;
use crate::traffic::LiveTraffic;

/// Why the service cannot start in a cluster.
#[derive(Debug, thiserror::Error)]
pub enum KubeError {
    /// There is no client of the API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The settings are invalid.
    #[error("{0}")]
    Settings(String),
}

/// What the Kubernetes controller needs from the rest of the service.
#[derive(Clone, Debug)]
pub struct KubeContext {
    /// Receives the policies.
    pub catalog: Catalog,
    /// The connected standalone proxies.
    pub fleet: ProxyFleet,
    /// The service graph; `None`: the service does not read it.
    pub traffic: Option<LiveTraffic>,
    /// Receives the events.
    pub events: EventSink<KubeEvent>,
    /// Stops the tasks when canceled.
    pub closing: CancellationToken,
    /// Tracks the tasks.
    pub tasks: TaskTracker,
}

/// The health of the Kubernetes controller; cheap to clone.
#[derive(Clone, Debug)]
pub struct Health {
    shared: SharedState,
    /// Canceled when a task has ended unexpectedly.
    ended: CancellationToken,
    shutoff: ShutoffLease,
}

impl Health {
    /// Whether all policies are known.
    #[must_use]
    pub fn has_policies(&self) -> bool {
        self.shared.has_policies()
    }

    /// Whether all tasks run; if not, only a restart helps.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.ended.is_cancelled()
    }

    /// The writer of the switch for all policies.
    #[must_use]
    pub fn shutoff_lease(&self) -> ShutoffLease {
        self.shutoff.clone()
    }

    /// Waits until all policies are known.
    pub async fn policies(&self) {
        let mut revisions = self.shared.revisions();
        while !self.has_policies() {
            if revisions.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Starts the Kubernetes controller in the cluster of `client`.
///
/// # Errors
/// When the settings are invalid.
pub fn start(
    client: &Client,
    mut settings: KubeSettings,
    context: &KubeContext,
) -> Result<Health, KubeError> {
    let errors: Vec<String> = settings.errors().iter().map(ToString::to_string).collect();
    if !errors.is_empty() {
        return Err(KubeError::Settings(errors.join("\n")));
    }
    let own = client.default_namespace().to_owned();
    settings.proxies = settings.proxies.with(&own, &settings.scope);
    let shared = SharedState::default();
    let ended = CancellationToken::new();
    let events = context.events.clone();
    let watch = ClusterWatch {
        client: client.clone(),
        scope: settings.scope.clone(),
        proxies: settings.proxies.clone(),
        shared: shared.clone(),
        catalog: context.catalog.clone(),
        events: events.clone(),
        closing: context.closing.clone(),
    };
    // Set before the first plan, so that a condition in the status stays until the rules are known.
    shared.lock().pools = PoolFindings::Unknown;
    let pools = PoolWatch {
        client: client.clone(),
        scope: settings.scope.clone(),
        catalog: context.catalog.clone(),
        shared: shared.clone(),
        events: events.clone(),
        closing: context.closing.clone(),
    };
    let rejections = RejectionWatch {
        fleet: context.fleet.clone(),
        shared: shared.clone(),
        closing: context.closing.clone(),
    };
    let namespace = settings.lease.namespace.clone().unwrap_or(own);
    let candidate = Candidate {
        leases: Api::<Lease>::namespaced(client.clone(), &namespace),
        settings: settings.lease.clone(),
        manager: settings.manager.clone(),
        shared: shared.clone(),
        catalog: context.catalog.clone(),
        events: events.clone(),
    };
    let shutoff = ShutoffLease {
        leases: candidate.leases.clone(),
        name: settings.lease.name.clone(),
        manager: settings.manager.clone(),
        catalog: context.catalog.clone(),
    };
    let reporter = Reporter {
        controller: "tidegate.dev/control".to_owned(),
        instance: Some(settings.lease.identity.clone()),
    };
    let writer = ClusterWriter {
        client: client.clone(),
        recorder: Recorder::new(client.clone(), reporter),
        manager: settings.manager.clone(),
        bound: settings.lease.timing.margin(),
        shared: shared.clone(),
        events: events.clone(),
        closing: context.closing.clone(),
    };
    let reconciler = ClusterReconciler {
        writer,
        settings: Arc::new(settings),
        shared: shared.clone(),
        catalog: context.catalog.clone(),
        events,
    };
    let closing = &context.closing;
    let written = CancellationToken::new();
    let spawn = |task| watched(task, closing, &ended, &context.tasks);
    let recheck = reconciler.settings.recheck;
    spawn(Box::pin(watch.clone().policies()));
    spawn(Box::pin(watch.objects(recheck)));
    spawn(Box::pin(pools.run(recheck)));
    spawn(Box::pin(rejections.run()));
    spawn(Box::pin(candidate.run(closing.clone(), written.clone())));
    spawn(Box::pin(reconciler.run(closing.clone(), written)));
    if let Some(traffic) = context.traffic.clone() {
        let reach = ReachWatch {
            traffic,
            catalog: context.catalog.clone(),
            shared: shared.clone(),
            closing: closing.clone(),
        };
        spawn(Box::pin(reach.run()));
    }
    Ok(Health {
        shared,
        ended,
        shutoff,
    })
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Spawns a task; cancels `ended` if it ends before it was told to.
fn watched(
    task: Task,
    closing: &CancellationToken,
    ended: &CancellationToken,
    tasks: &TaskTracker,
) {
    let (closing, ended) = (closing.clone(), ended.clone());
    let task = tasks.spawn(task);
    tasks.spawn(async move {
        // A panic ends the task as well.
        let _ = task.await;
        if !closing.is_cancelled() {
            tracing::error!("a task of the Kubernetes controller ended unexpectedly");
            ended.cancel();
        }
    });
}

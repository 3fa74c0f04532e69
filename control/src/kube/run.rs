//! The tasks of this service in a cluster: watches, the lease, and the writing.
//!
//! All replicas run all of them; only what the one with the lease plans is
//! written. A task that ends before it was asked to makes the service
//! unhealthy, because nothing else would bring it back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::events::{Recorder, Reporter};
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::util::MapResultLayer;

use super::contact::Contact;
use super::counts::{Counts, Round};
use super::feed::Feed;
use super::lease::Candidate;
use super::plan::plan;
use super::settings::{Access, Settings};
use super::shared::{Shared, moment};
use super::writer::Writer;
use crate::source::Catalogue;

/// Changes that come within this time are looked at together.
const GATHER: Duration = Duration::from_millis(20);

/// When to look again after a look that came to no end.
const AGAIN: Duration = Duration::from_secs(1);

/// Rounds of writing for one look: objects, their status, and what came of a refusal.
const MAX_ROUNDS: usize = 4;

/// Why the service cannot start in a cluster.
#[derive(Debug, thiserror::Error)]
pub enum KubeError {
    /// No way to the API server is known.
    #[error("find the API server: {0}")]
    Access(String),
    /// The way that is known cannot be gone.
    #[error("connect to the API server: {0}")]
    Client(#[from] Box<kube::Error>),
    /// The settings cannot be.
    #[error("{0}")]
    Settings(String),
}

/// What is around it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Where policies go.
    pub catalogue: Catalogue,
    /// What is counted.
    pub counts: Counts,
    /// Ends it.
    pub closing: CancellationToken,
    /// Counts its tasks.
    pub tasks: TaskTracker,
}

/// How the work in a cluster is going; cheap to clone.
#[derive(Clone, Debug)]
pub struct Health {
    shared: Shared,
    /// Cancelled when a task has ended that must not.
    ended: CancellationToken,
}

impl Health {
    /// Whether all policies are known.
    #[must_use]
    pub fn has_policies(&self) -> bool {
        self.shared.has_policies()
    }

    /// Whether it works still; if not, only a restart helps.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.ended.is_cancelled()
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

/// A client as the settings say, which tells in the log when nobody answers, and when somebody does again.
///
/// # Errors
/// When no way to the API server is known; whether there is anybody at its end is not asked.
pub async fn client(access: &Access) -> Result<Client, KubeError> {
    let config = match access {
        Access::Inferred => Config::infer().await.map_err(|e| e.to_string()),
        Access::Kubeconfig(path) => match Kubeconfig::read_from(path) {
            Ok(file) => Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        },
    };
    let config = config.map_err(KubeError::Access)?;
    let builder = ClientBuilder::try_from(config).map_err(Box::new)?;
    let contact = MapResultLayer::new(Contact::default().listen());
    Ok(builder.with_layer(&contact).build())
}

/// Starts the work in the cluster that `client` leads to.
///
/// # Errors
/// When the settings cannot be.
pub fn start(
    client: &Client,
    mut settings: Settings,
    around: &Surroundings,
) -> Result<Health, KubeError> {
    let errors: Vec<String> = settings.errors().iter().map(ToString::to_string).collect();
    if !errors.is_empty() {
        return Err(KubeError::Settings(errors.join("\n")));
    }
    let own = client.default_namespace().to_owned();
    settings.proxies = settings.proxies.with(&own, &settings.scope);
    let shared = Shared::default();
    let ended = CancellationToken::new();
    let counts = around.counts.clone();
    let feed = Feed {
        client: client.clone(),
        scope: settings.scope.clone(),
        proxies: settings.proxies.clone(),
        shared: shared.clone(),
        catalogue: around.catalogue.clone(),
        counts: counts.clone(),
        closing: around.closing.clone(),
    };
    let namespace = settings.lease.namespace.clone().unwrap_or(own);
    let candidate = Candidate {
        leases: Api::<Lease>::namespaced(client.clone(), &namespace),
        settings: settings.lease.clone(),
        manager: settings.manager.clone(),
        shared: shared.clone(),
        counts: counts.clone(),
    };
    let reporter = Reporter {
        controller: "tidegate.dev/control".to_owned(),
        instance: Some(settings.lease.identity.clone()),
    };
    let writer = Writer {
        client: client.clone(),
        recorder: Recorder::new(client.clone(), reporter),
        manager: settings.manager.clone(),
        bound: settings.lease.timing.margin(),
        shared: shared.clone(),
        counts: counts.clone(),
        closing: around.closing.clone(),
    };
    let reconciler = Reconciler {
        writer,
        settings: Arc::new(settings),
        shared: shared.clone(),
        counts,
    };
    let closing = &around.closing;
    let written = CancellationToken::new();
    let spawn = |task| watched(task, closing, &ended, &around.tasks);
    let recheck = reconciler.settings.recheck;
    spawn(Box::pin(feed.clone().policies()));
    spawn(Box::pin(feed.objects(recheck)));
    spawn(Box::pin(candidate.run(closing.clone(), written.clone())));
    spawn(Box::pin(reconciler.run(closing.clone(), written)));
    Ok(Health { shared, ended })
}

type Task = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Spawns a task whose end, before it was asked to end, is told by `ended`.
fn watched(
    task: Task,
    closing: &CancellationToken,
    ended: &CancellationToken,
    tasks: &TaskTracker,
) {
    let (closing, ended) = (closing.clone(), ended.clone());
    let task = tasks.spawn(task);
    tasks.spawn(async move {
        // A panic is an end like any other.
        let _ = task.await;
        if !closing.is_cancelled() {
            tracing::error!("a task of the work in Kubernetes has ended");
            ended.cancel();
        }
    });
}

/// Makes the cluster be as the plan says.
struct Reconciler {
    writer: Writer,
    settings: Arc<Settings>,
    shared: Shared,
    counts: Counts,
}

impl Reconciler {
    async fn run(self, closing: CancellationToken, written: CancellationToken) {
        let _end = written.drop_guard();
        let mut revisions = self.shared.revisions();
        let mut leadership = self.shared.leadership();
        leadership.mark_changed();
        let mut leads = false;
        let mut retry_at = None;
        loop {
            // A renewal of the lease is no reason to look at everything; having it anew is.
            let is_due = tokio::select! {
                () = closing.cancelled() => return,
                _ = leadership.changed() => !leads,
                _ = revisions.changed() => true,
                () = until(retry_at) => true,
            };
            leads = leadership.borrow_and_update().is_some();
            if leads && is_due {
                tokio::time::sleep(GATHER).await;
                revisions.mark_unchanged();
                retry_at = self.look().await;
            }
        }
    }

    /// Looks at everything and writes what is to be written. Returns when to look again, whatever happens.
    async fn look(&self) -> Option<Instant> {
        let mut is_done = true;
        for round in 0..MAX_ROUNDS {
            let plan = plan(&self.shared.lock(), &self.settings, moment());
            let retry_at = plan.retry_at;
            if plan.writes.is_empty() && plan.statuses.is_empty() {
                self.counts.round(match (round, is_done) {
                    (0, _) => Round::Unchanged,
                    (_, true) => Round::Written,
                    (_, false) => Round::Failed,
                });
                return retry_at;
            }
            is_done &= self.writer.carry_out(plan).await;
            if !self.shared.may_write() {
                break;
            }
        }
        self.counts.round(Round::Failed);
        moment().instant.checked_add(AGAIN)
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

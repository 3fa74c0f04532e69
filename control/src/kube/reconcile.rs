//! Writes until the cluster matches the plan.
//!
//! All replicas run this task; only the one that holds the lease writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::clock::ClockReading;
use super::event::{KubeEvent, ReconcileResult};
use super::plan::plan;
use super::settings::KubeSettings;
use super::shared::SharedState;
use super::write::ClusterWriter;
use crate::event::EventSink;
use crate::source::Catalog;

/// Changes within this time are processed together.
const GATHER: Duration = Duration::from_millis(20);

/// Wait before the next attempt if the rounds of one attempt were not enough.
const RETRY: Duration = Duration::from_secs(1);

/// Rounds of writing per attempt: objects, their status, and the results of failed writes.
const MAX_ROUNDS: usize = 4;

/// The task; see the module.
pub(super) struct ClusterReconciler {
    pub(super) writer: ClusterWriter,
    pub(super) settings: Arc<KubeSettings>,
    pub(super) shared: SharedState,
    /// Knows whether all policies are off.
    pub(super) catalog: Catalog,
    pub(super) events: EventSink<KubeEvent>,
}

impl ClusterReconciler {
    /// Reconciles until told to stop; dropping `written` reports that no write follows.
    pub(super) async fn run(self, closing: CancellationToken, written: CancellationToken) {
        let _end = written.drop_guard();
        let mut revisions = self.shared.revisions();
        let mut leadership = self.shared.leadership();
        leadership.mark_changed();
        let mut shutoffs = self.catalog.shutoffs();
        let mut leads = false;
        let mut retry_at = None;
        loop {
            // A renewal of the lease needs no reconciliation; becoming the leader does.
            let is_due = tokio::select! {
                () = closing.cancelled() => return,
                _ = leadership.changed() => !leads,
                _ = revisions.changed() => true,
                _ = shutoffs.changed() => true,
                () = until(retry_at) => true,
            };
            leads = leadership.borrow_and_update().is_some();
            if leads && is_due {
                tokio::time::sleep(GATHER).await;
                revisions.mark_unchanged();
                shutoffs.mark_unchanged();
                retry_at = self.reconcile().await;
            }
        }
    }

    /// Compares the cluster with the plan and writes the differences. Returns when to do so again even without a
    /// change.
    async fn reconcile(&self) -> Option<Instant> {
        let mut is_done = true;
        for round in 0..MAX_ROUNDS {
            let shutoff = self.catalog.shutoff();
            let plan = {
                let mut view = self.shared.lock();
                view.shutoff = shutoff;
                plan(&view, &self.settings, ClockReading::now())
            };
            let retry_at = plan.retry_at;
            if plan.writes.is_empty() && plan.statuses.is_empty() {
                self.events
                    .send(KubeEvent::Reconciled(match (round, is_done) {
                        (0, _) => ReconcileResult::Unchanged,
                        (_, true) => ReconcileResult::Written,
                        (_, false) => ReconcileResult::Failed,
                    }));
                return retry_at;
            }
            is_done &= self.writer.carry_out(plan).await;
            if !self.shared.may_write() {
                break;
            }
        }
        self.events
            .send(KubeEvent::Reconciled(ReconcileResult::Failed));
        ClockReading::now().instant.checked_add(RETRY)
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

//! Compares the policies with each service graph, for the condition `Unreachable`.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::shared::SharedState;
use super::view::ReachFindings;
use crate::advice::{advised, out_of_reach};
use crate::source::Catalog;
use crate::traffic::LiveTraffic;

/// The task; see the module.
pub(super) struct ReachWatch {
    pub(super) traffic: LiveTraffic,
    pub(super) catalog: Catalog,
    pub(super) shared: SharedState,
    pub(super) closing: CancellationToken,
}

impl ReachWatch {
    /// Compares until told to stop.
    pub(super) async fn run(self) {
        let mut reads = self.traffic.changes();
        let mut policies = self.shared.revisions();
        self.shared.lock().reach = ReachFindings::Unknown;
        let mut compared = None;
        loop {
            policies.mark_unchanged();
            let snapshot = reads.borrow_and_update().clone();
            let revision = (snapshot.revision, self.catalog.revision());
            if let Some(good) = snapshot.good.filter(|_| compared != Some(revision)) {
                compared = Some(revision);
                let policies = self.catalog.policies();
                // With thousands of services this may take seconds.
                let found = tokio::task::spawn_blocking(move || {
                    out_of_reach(&advised(&good.built, policies))
                });
                if let Ok(found) = found.await {
                    self.take(ReachFindings::Known(Arc::new(found)));
                }
            }
            tokio::select! {
                () = self.closing.cancelled() => return,
                _ = reads.changed() => {}
                _ = policies.changed() => {}
            }
        }
    }

    fn take(&self, found: ReachFindings) {
        let mut view = self.shared.lock();
        if view.reach != found {
            view.reach = found;
            drop(view);
            self.shared.touch();
        }
    }
}

//! Follows which policies the connected standalone proxies reject, for the condition `Programmed`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::shared::SharedState;
use crate::fleet::ProxyFleet;

/// Shortest time between two looks: thousands of proxies answer one push.
const PACE: Duration = Duration::from_secs(1);

/// The task; see the module.
pub(super) struct RejectionWatch {
    pub(super) fleet: ProxyFleet,
    pub(super) shared: SharedState,
    pub(super) closing: CancellationToken,
}

impl RejectionWatch {
    /// Looks after each change until told to stop.
    pub(super) async fn run(self) {
        let mut changes = self.fleet.revisions();
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = async {
                pace.tick().await;
                // The sender lives as long as the fleet.
                let _ = changes.changed().await;
            };
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = next => self.look(),
            }
        }
    }

    fn look(&self) {
        let rejected = self.fleet.rejected();
        let mut view = self.shared.lock();
        if *view.rejected != rejected {
            view.rejected = Arc::new(rejected);
            drop(view);
            self.shared.touch();
        }
    }
}

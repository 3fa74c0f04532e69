//! What the tasks share: the view of the cluster, whether it has changed, and whether this replica leads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::clock::ClockReading;
use super::view::{ClusterView, Listing};

/// The shared state; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct SharedState {
    view: Arc<Mutex<ClusterView>>,
    revision: Arc<watch::Sender<u64>>,
    leads_until: Arc<watch::Sender<Option<Instant>>>,
    /// Whether the switch for all policies was read.
    knows_shutoff: Arc<AtomicBool>,
}

impl Default for SharedState {
    fn default() -> Self {
        Self {
            view: Arc::default(),
            revision: Arc::new(watch::Sender::new(0)),
            leads_until: Arc::new(watch::Sender::new(None)),
            knows_shutoff: Arc::default(),
        }
    }
}

impl SharedState {
    pub(super) fn lock(&self) -> MutexGuard<'_, ClusterView> {
        // The data stays consistent even if a holder of the lock panics.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the view as changed.
    pub(super) fn touch(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }

    /// Changes whenever the view changes.
    pub(super) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Until when this replica may write; `None`: it does not lead.
    pub(super) fn leadership(&self) -> watch::Receiver<Option<Instant>> {
        self.leads_until.subscribe()
    }

    pub(super) fn set_leadership(&self, until: Option<Instant>) {
        self.leads_until.send_replace(until);
    }

    pub(super) fn may_write(&self) -> bool {
        self.leads_until
            .borrow()
            .is_some_and(|until| until > ClockReading::now().instant)
    }

    /// The switch for all policies was read.
    pub(super) fn know_shutoff(&self) {
        if !self.knows_shutoff.swap(true, Ordering::AcqRel) {
            self.touch();
        }
    }

    /// Whether all policies are known, and also whether they are turned off.
    pub(super) fn has_policies(&self) -> bool {
        self.knows_shutoff.load(Ordering::Acquire)
            && self.lock().listed.contains(&Listing::Policies)
    }
}

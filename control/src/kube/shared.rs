//! What the tasks of this service share: the world, whether it has changed, and who leads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::plan::Moment;
use super::world::{Listing, World};

/// Handle; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    world: Arc<Mutex<World>>,
    revision: Arc<watch::Sender<u64>>,
    leads_until: Arc<watch::Sender<Option<Instant>>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            world: Arc::default(),
            revision: Arc::new(watch::Sender::new(0)),
            leads_until: Arc::new(watch::Sender::new(None)),
        }
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        // What is behind the lock is whole after each of its uses, even one that panicked.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the world has changed.
    pub(super) fn touch(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }

    /// Changes whenever the world does.
    pub(super) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Until when this replica may write.
    pub(super) fn leadership(&self) -> watch::Receiver<Option<Instant>> {
        self.leads_until.subscribe()
    }

    pub(super) fn set_leadership(&self, until: Option<Instant>) {
        self.leads_until.send_replace(until);
    }

    pub(super) fn may_write(&self) -> bool {
        self.leads_until
            .borrow()
            .is_some_and(|until| until > moment().instant)
    }

    pub(super) fn has_policies(&self) -> bool {
        self.lock().listed.contains(&Listing::Policies)
    }
}

/// Now.
pub(super) fn moment() -> Moment {
    Moment {
        instant: tokio::time::Instant::now().into_std(),
        wall: jiff::Timestamp::now(),
    }
}

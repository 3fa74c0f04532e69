//! All policies in force, from all sources.
//!
//! One lock orders changes, so that the fleet sees them in the order in which they were made. A name belongs to one
//! source: if REST has stored a policy and a file with the same name appears, the stored policy stays and the file has
//! an error; REST cannot store a policy whose name a file uses. Policies from Kubernetes have a namespace; if a file or
//! REST uses the same namespace and name, that is an error as well.

mod merge;
mod record;
mod switch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tracing::field::Empty;
use tracing::{error, info, info_span};

use super::directory::Directory;
use super::event::SourceEvent;
use super::shutoff::{Shutoff, ShutoffFile};
use super::store::{Precondition, Store, StoreError, StoredPolicy};
use crate::event::EventSink;
use crate::fleet::ProxyFleet;
use crate::policy::{Gathered, Policies, PolicyName, Problem};
use crate::telemetry::TARGET;
use crate::xds::ResourceVersion;

use merge::FILES;
pub use record::PolicyRecord;

/// Handle to the policies; cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalog {
    inner: Arc<Mutex<CatalogState>>,
    fleet: ProxyFleet,
    events: EventSink<SourceEvent>,
    /// Whether all policies are off.
    shutoff: Arc<watch::Sender<Shutoff>>,
}

#[derive(Debug)]
struct CatalogState {
    directory: Option<Directory>,
    store: Option<Store>,
    /// The policies of the API server; `None`: no cluster is followed.
    cluster: Option<Gathered>,
    shutoff_file: Option<ShutoffFile>,
    policies: Policies,
    problems: Vec<Problem>,
    /// Grows each time policies are put in force.
    revision: u64,
}

/// Why REST cannot change a policy.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A file holds a policy of this name.
    #[error("a file holds a policy of this name: change the file")]
    HeldByFile,
    /// The service was started without a state directory.
    #[error("REST cannot change policies: the control service has no state directory (--state)")]
    NoStore,
    /// The store rejected the change.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Catalog {
    /// Reads these sources and puts their policies in force in `fleet`. Blocks while it reads.
    #[must_use]
    pub fn new(
        directory: Option<Directory>,
        store: Option<Store>,
        fleet: ProxyFleet,
        events: EventSink<SourceEvent>,
    ) -> Self {
        let inner = CatalogState {
            directory,
            store,
            cluster: None,
            shutoff_file: None,
            policies: Policies::default(),
            problems: Vec::new(),
            revision: 0,
        };
        let catalog = Self {
            inner: Arc::new(Mutex::new(inner)),
            fleet,
            events,
            shutoff: Arc::new(watch::Sender::default()),
        };
        let mut inner = catalog.lock();
        if let Some(directory) = &mut inner.directory {
            directory.scan();
        }
        catalog.apply(&mut inner);
        drop(inner);
        catalog
    }

    /// Scans the directory again. Blocks while it reads.
    pub fn rescan(&self) {
        let mut inner = self.lock();
        if inner.directory.as_mut().is_some_and(Directory::scan) {
            self.apply(&mut inner);
        }
    }

    /// Puts the policies of the API server in force.
    pub fn set_cluster(&self, gathered: Gathered) {
        let mut inner = self.lock();
        inner.cluster = Some(gathered);
        self.apply(&mut inner);
    }

    /// Stores a policy and puts it in force; see [`Store::put`].
    ///
    /// # Errors
    /// When the policy is rejected; nothing has changed then.
    pub fn put(
        &self,
        name: &PolicyName,
        text: &[u8],
        precondition: &Precondition,
    ) -> Result<(ResourceVersion, bool), ChangeError> {
        self.change(name, |store| store.put(name, text, precondition))
    }

    /// Removes a stored policy; see [`Store::remove`].
    ///
    /// # Errors
    /// When it is not removed; nothing has changed then.
    pub fn remove(
        &self,
        name: &PolicyName,
        precondition: &Precondition,
    ) -> Result<(), ChangeError> {
        self.change(name, |store| store.remove(name, precondition))
    }

    /// The stored text of a policy.
    #[must_use]
    pub fn stored(&self, name: &PolicyName) -> Option<StoredPolicy> {
        self.lock().store.as_ref()?.stored(name).cloned()
    }

    /// The policies in force.
    #[must_use]
    pub fn policies(&self) -> Policies {
        self.lock().policies.clone()
    }

    /// A number that grows whenever policies are put in force.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// All current errors.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.lock().problems.clone()
    }

    fn change<T>(
        &self,
        name: &PolicyName,
        change: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, ChangeError> {
        let mut inner = self.lock();
        if inner.policies.get(name).is_some() && inner.source(name) == FILES {
            return Err(ChangeError::HeldByFile);
        }
        let store = inner.store.as_mut().ok_or(ChangeError::NoStore)?;
        let changed = change(store)?;
        self.apply(&mut inner);
        Ok(changed)
    }

    fn apply(&self, inner: &mut CatalogState) {
        let span = info_span!(target: TARGET, "apply", policies = Empty, problems = Empty);
        let _entered = span.enter();
        let (policies, problems) = inner.merged(&self.events);
        let before: BTreeMap<String, ()> =
            inner.problems.iter().map(|p| (p.to_string(), ())).collect();
        for problem in &problems {
            if !before.contains_key(&problem.to_string()) {
                error!(%problem, "a policy has an error; the last valid version remains in force");
                self.events.send(SourceEvent::RenderError);
            }
        }
        span.record("policies", policies.len());
        span.record("problems", problems.len());
        info!(
            policies = policies.len(),
            problems = problems.len(),
            "policies in force"
        );
        let is_off = self.shutoff.borrow().is_off();
        let own = policies.iter().filter(|policy| !policy.config().enabled());
        self.events.send(SourceEvent::Disabled {
            all: is_off,
            policies: own.count(),
        });
        self.fleet.replace(&policies, is_off);
        inner.policies = policies;
        inner.problems = problems;
        inner.revision += 1;
        self.fleet.touch();
    }

    fn lock(&self) -> MutexGuard<'_, CatalogState> {
        // The data stays consistent even if a holder of the lock panics.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

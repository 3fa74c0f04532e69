//! All policies in force, from all sources.
//!
//! One lock orders changes, so that the fleet sees them in the order in which they were made. A name belongs to one
//! source: if REST has stored a policy and a file with the same name appears, the stored policy stays and the file has
//! an error; REST cannot store a policy whose name a file uses. Policies from Kubernetes have a namespace; if a file or
//! REST uses the same namespace and name, that is an error as well.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tidegate_core::config::{Config, RuleIndex};
use tokio::sync::watch;
use tracing::field::Empty;
use tracing::{error, info, info_span, warn};

use super::directory::Directory;
use super::event::SourceEvent;
use super::shutoff::{Shutoff, ShutoffFile, ShutoffSource};
use super::store::{Precondition, Store, StoreError, StoredPolicy};
use crate::document::TextPosition;
use crate::event::EventSink;
use crate::fleet::{ClaimedPolicy, ProxyFleet};
use crate::policy::{Gathered, Policies, PolicyName, Problem};
use crate::telemetry::TARGET;
use crate::xds::ResourceVersion;

const FILES: &str = "files";
const REST: &str = "rest";
const KUBERNETES: &str = "kubernetes";

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

/// What status pages show of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRecord {
    /// Its name.
    pub name: String,
    /// `files`, `rest` or `kubernetes`.
    pub source: &'static str,
    /// Version of its configuration.
    pub version: String,
    /// Digest of its configuration, by which the metrics of proxies name it (`tidegate_info`).
    pub config: String,
    /// Number of streams that it matches, whether it wins or not.
    pub proxies: usize,
    /// Number of streams whose proxies have acknowledged its configuration, and run it.
    pub current: usize,
    /// Whether it is on: `enabled: false` turns it off, and so does the switch for all policies.
    pub enabled: bool,
    /// Its mode at the top level, `observe` or `enforce`; rules for single upstreams may have another one.
    pub mode: &'static str,
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

    /// Makes the switch for all policies follow this file, which an earlier run of the service may have written.
    pub fn follow_shutoff(&self, file: ShutoffFile) {
        self.lock().shutoff_file = Some(file);
        self.reread_shutoff();
    }

    /// Reads the file of the switch again. Blocks while it reads.
    pub fn reread_shutoff(&self) {
        let file = self.lock().shutoff_file.clone();
        match file.map(|file| file.read()) {
            None => {}
            Some(Ok(note)) => self.say_shutoff(ShutoffSource::File, note.as_deref()),
            Some(Err(error)) => {
                warn!(%error, "the file that turns all policies off cannot be read; its last content remains in force");
            }
        }
    }

    /// Writes the file of the switch, and puts its state in force. Blocks while it writes.
    ///
    /// # Errors
    /// When there is no state directory, or it cannot be written.
    pub fn write_shutoff(&self, note: Option<&str>) -> Result<(), ChangeError> {
        let file = self.lock().shutoff_file.clone();
        let file = file.ok_or(ChangeError::NoStore)?;
        file.write(note).map_err(StoreError::from)?;
        self.say_shutoff(ShutoffSource::File, note);
        Ok(())
    }

    /// Sets the note of one source of the switch; `None`: this source does not turn policies off.
    pub fn say_shutoff(&self, source: ShutoffSource, note: Option<&str>) {
        let mut inner = self.lock();
        let mut shutoff = self.shutoff();
        if !shutoff.say(source, note) {
            return;
        }
        if shutoff.is_off() {
            warn!(audit = "disable-all", source = source.name(), notes = %shutoff, "all policies are off: every request passes");
        } else {
            warn!(
                audit = "enable-all",
                source = source.name(),
                "the policies are on again"
            );
        }
        self.shutoff.send_replace(shutoff);
        self.apply(&mut inner);
    }

    /// Whether all policies are off, and what turned them off.
    #[must_use]
    pub fn shutoff(&self) -> Shutoff {
        self.shutoff.borrow().clone()
    }

    /// Changes whenever the switch changes.
    #[must_use]
    pub fn shutoffs(&self) -> watch::Receiver<Shutoff> {
        self.shutoff.subscribe()
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

    /// Every policy in force, for status pages.
    #[must_use]
    pub fn records(&self) -> Vec<PolicyRecord> {
        // Take the versions that are rendered already, so that showing them costs no rendering.
        let claims = self.fleet.claims();
        let is_off = self.shutoff.borrow().is_off();
        let inner = self.lock();
        let record = |(name, claimed): (PolicyName, ClaimedPolicy)| {
            let config = inner.policies.get(&name).map(|policy| policy.config());
            PolicyRecord {
                source: inner.source(&name),
                enabled: !is_off && config.is_some_and(Config::enabled),
                mode: config.map_or("", |config| {
                    config.policy(RuleIndex::TopLevel).mode().name()
                }),
                name: name.to_string(),
                version: claimed.version.to_string(),
                config: claimed.digest,
                proxies: claimed.streams,
                current: claimed.current,
            }
        };
        claims.into_iter().map(record).collect()
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

impl CatalogState {
    fn source(&self, name: &PolicyName) -> &'static str {
        let is_stored = |store: &Store| store.stored(name).is_some();
        let in_force = self.policies.get(name);
        let is_of = |cluster: &Gathered| match (cluster.policies.get(name), in_force) {
            (Some(held), Some(in_force)) => Arc::ptr_eq(held, in_force),
            _ => false,
        };
        if self.store.as_ref().is_some_and(is_stored) {
            REST
        } else if self.cluster.as_ref().is_some_and(is_of) {
            KUBERNETES
        } else {
            FILES
        }
    }

    fn merged(&self, events: &EventSink<SourceEvent>) -> (Policies, Vec<Problem>) {
        let stored = self.store.as_ref().map(Store::gathered).unwrap_or_default();
        let files = self
            .directory
            .as_ref()
            .map(Directory::gathered)
            .unwrap_or_default();
        let report = |source, policies, problems| {
            events.send(SourceEvent::Counted {
                source,
                policies,
                problems,
            });
        };
        let (mut policies, mut problems) = (stored.policies, stored.problems);
        report(REST, policies.len(), problems.len());
        let path = self.directory.as_ref().map(Directory::path);
        let path = path.map(|path| path.display().to_string());
        let own = add(&mut policies, files, &path.unwrap_or_default());
        report(FILES, own.0, own.1.len());
        problems.extend(own.1);
        if let Some(cluster) = self.cluster.clone() {
            let own = add(&mut policies, cluster, KUBERNETES);
            report(KUBERNETES, own.0, own.1.len());
            problems.extend(own.1);
        }
        (policies, problems)
    }
}

/// Adds the policies of a source, except those whose name another source uses. Returns their number, and all errors.
fn add(policies: &mut Policies, from: Gathered, source: &str) -> (usize, Vec<Problem>) {
    let (mut count, mut problems) = (0, from.problems);
    for policy in from.policies.iter() {
        if policies.get(policy.name()).is_some() {
            problems.push(taken(policy.name(), source));
        } else {
            count += 1;
            policies.insert_shared(Arc::clone(policy));
        }
    }
    (count, problems)
}

fn taken(name: &PolicyName, source: &str) -> Problem {
    Problem {
        source: source.to_owned(),
        place: TextPosition { line: 1, column: 1 },
        policy: Some(name.to_string()),
        path: "metadata.name".to_owned(),
        found: "the name of a policy that another source holds".to_owned(),
        expected: "each name once".to_owned(),
    }
}

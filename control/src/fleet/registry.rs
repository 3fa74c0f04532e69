//! One lock around the [`Renderer`] and the records of all streams.
//!
//! The lock is held only while a change finds the streams that it affects.
//! Each of those gets the newest assignment through a cell of its own, so that
//! a stream that does not read delays no other.
//!
//! Edge cases: a proxy may have several streams (two listeners with the filter, or a
//! new stream before the old one is known to be dead), so records are kept per
//! stream. Rejections outlive the stream: they are remembered by the proxy's id,
//! for a bounded number of proxies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::info_span;

use super::event::FleetEvent;
use super::metadata::{DroppedKeys, NamedKeys};
use super::origin::StreamOrigin;
use super::record::{LastRejection, ProxyRecord};
use crate::event::EventSink;
use crate::policy::{Policies, PolicyName, ProxyNode};
use crate::render::{ConfigVersion, PluginConfig, Rendered, Renderer};
use crate::telemetry::{TARGET, TraceParent};
use crate::xds::{Desired, Name, PluginTemplate};

/// Proxies whose last rejections are remembered after they disconnect.
const MAX_REMEMBERED: usize = 1_000;

/// Identifies a stream within this process.
pub type StreamId = u64;

/// Handle to the connected proxies; cheap to clone.
#[derive(Debug, Clone)]
pub struct ProxyFleet {
    inner: Arc<Mutex<FleetState>>,
    revision: Arc<watch::Sender<u64>>,
    events: EventSink<FleetEvent>,
}

#[derive(Debug)]
struct FleetState {
    plugin: PluginTemplate,
    renderer: Renderer<StreamId>,
    named: NamedKeys,
    // Encoded once per configuration and shared by all proxies that run it.
    encoded: BTreeMap<ConfigVersion, Arc<Desired>>,
    streams: BTreeMap<StreamId, ProxyStream>,
    rejections: BTreeMap<String, BTreeMap<Name, LastRejection>>,
    last_id: StreamId,
}

#[derive(Debug)]
struct ProxyStream {
    record: ProxyRecord,
    dropped: DroppedKeys,
    outdated: CancellationToken,
    assignment: watch::Sender<Assignment>,
}

/// A policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedPolicy {
    /// The version of its configuration.
    pub version: ConfigVersion,
    /// The digest by which the metrics of proxies name the configuration.
    pub digest: String,
    /// The streams that it matches, including those where another policy wins.
    pub streams: usize,
    /// The streams whose proxies have acknowledged its configuration, and run it.
    pub current: usize,
}

/// What a stream's proxy should have.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The resources.
    pub desired: Arc<Desired>,
    /// When this became the assignment.
    pub changed_at: Instant,
    /// The trace of the change.
    pub cause: TraceParent,
}

/// What the registry gives to a new stream.
pub(super) struct StreamConnection {
    pub(super) id: StreamId,
    pub(super) assignment: watch::Receiver<Assignment>,
    /// Canceled when policies need node metadata that was dropped.
    pub(super) outdated: CancellationToken,
}

impl ProxyFleet {
    /// A registry without proxies and policies, which reports to `events`.
    #[must_use]
    pub fn new(plugin: PluginTemplate, events: EventSink<FleetEvent>) -> Self {
        let inner = FleetState {
            plugin,
            renderer: Renderer::default(),
            named: NamedKeys::default(),
            encoded: BTreeMap::new(),
            streams: BTreeMap::new(),
            rejections: BTreeMap::new(),
            last_id: 0,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            revision: Arc::new(watch::Sender::new(0)),
            events,
        }
    }

    /// Puts exactly these policies in force, or turns all of them off, and notifies the streams that this affects.
    pub fn replace(&self, policies: &Policies, is_off: bool) {
        let now = Instant::now();
        let span = info_span!(target: TARGET, "render", policies = policies.len(), touched = Empty);
        let _entered = span.enter();
        let mut inner = self.lock();
        let named = NamedKeys::of(policies);
        let missing = named.added_since(&inner.named);
        inner.named = named;
        let mut changes = inner.renderer.turn(is_off);
        let replaced = inner.renderer.replace(policies);
        changes.pushed.extend(replaced.pushed);
        changes.relabeled.extend(replaced.relabeled);
        span.record("touched", changes.pushed.len());
        let cause = TraceParent::current();
        for id in &changes.pushed {
            inner.reassign(*id, now, &cause);
        }
        for id in &changes.relabeled {
            inner.relabel(*id);
        }
        inner.mark_outdated(&missing);
        inner.forget_unused();
        drop(inner);
        self.touch();
    }

    /// Registers a stream of `proxy`.
    pub(super) fn connect(&self, mut proxy: ProxyNode, origin: &StreamOrigin) -> StreamConnection {
        let mut inner = self.lock();
        let dropped = inner.named.trim(&mut proxy);
        inner.last_id += 1;
        let id = inner.last_id;
        let mut record = ProxyRecord::new(&proxy, origin);
        if let Some(rejections) = inner.rejections.get(&proxy.id) {
            record.remember(rejections);
        }
        let rendered = inner.renderer.connect(id, proxy);
        record.label(&rendered);
        let assignment = Assignment {
            desired: inner.encoded(&rendered),
            changed_at: Instant::now(),
            cause: TraceParent::default(),
        };
        let outdated = CancellationToken::new();
        let (sender, receiver) = watch::channel(assignment);
        let stream = ProxyStream {
            record,
            dropped,
            outdated: outdated.clone(),
            assignment: sender,
        };
        inner.streams.insert(id, stream);
        drop(inner);
        self.report(FleetEvent::Connected {
            api: origin.api,
            dialect: origin.dialect,
        });
        self.touch();
        StreamConnection {
            id,
            assignment: receiver,
            outdated,
        }
    }

    pub(super) fn report(&self, event: FleetEvent) {
        self.events.send(event);
    }

    /// The resources for a proxy that sends a single request without a stream.
    #[must_use]
    pub fn desired_once(&self, proxy: &ProxyNode) -> Arc<Desired> {
        let mut inner = self.lock();
        let rendered = inner.renderer.once(proxy);
        inner.encoded(&rendered)
    }

    /// Every connected stream, by proxy.
    #[must_use]
    pub fn proxies(&self) -> Vec<ProxyRecord> {
        let inner = self.lock();
        let mut proxies: Vec<_> = inner.streams.values().map(|s| s.record.clone()).collect();
        drop(inner);
        proxies.sort_by(|a, b| a.id.cmp(&b.id));
        proxies
    }

    /// The policies in force, with the number of streams that they match and that are current.
    #[must_use]
    pub fn claims(&self) -> BTreeMap<PolicyName, ClaimedPolicy> {
        let inner = self.lock();
        let mut current: BTreeMap<&str, usize> = BTreeMap::new();
        for stream in inner.streams.values() {
            if let Some(policy) = stream
                .record
                .policy
                .as_deref()
                .filter(|_| stream.record.is_current())
            {
                *current.entry(policy).or_default() += 1;
            }
        }
        let names = inner.renderer.policies().iter().map(|policy| policy.name());
        let claim = |name: &PolicyName| {
            let config = inner.renderer.config(name)?;
            let policy = ClaimedPolicy {
                version: config.version.clone(),
                digest: config.digest(),
                streams: inner.renderer.claimed_by(name).count(),
                current: current
                    .get(name.to_string().as_str())
                    .copied()
                    .unwrap_or_default(),
            };
            Some((name.clone(), policy))
        };
        names.filter_map(claim).collect()
    }

    /// Changes whenever anything in the registry changes.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Marks a change of something that is shown together with the registry.
    pub fn touch(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }

    fn lock(&self) -> MutexGuard<'_, FleetState> {
        // The data stays consistent even if a holder of the lock panics.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with_record(&self, id: StreamId, change: impl FnOnce(&mut ProxyRecord)) {
        if let Some(stream) = self.lock().streams.get_mut(&id) {
            change(&mut stream.record);
        }
        self.touch();
    }

    pub(super) fn disconnect(&self, id: StreamId, origin: &StreamOrigin) {
        let mut inner = self.lock();
        inner.renderer.disconnect(&id);
        if let Some(stream) = inner.streams.remove(&id) {
            inner.keep_rejections(stream.record);
        }
        drop(inner);
        self.report(FleetEvent::Disconnected {
            api: origin.api,
            dialect: origin.dialect,
        });
        self.touch();
    }
}

impl FleetState {
    fn encoded(&mut self, rendered: &Rendered) -> Arc<Desired> {
        let version = &rendered.version;
        if let Some(desired) = self.encoded.get(version) {
            return Arc::clone(desired);
        }
        let config = PluginConfig {
            config: Arc::clone(&rendered.config),
            version: version.clone(),
        };
        let desired = Arc::new(self.plugin.desired(&config));
        self.encoded.insert(version.clone(), Arc::clone(&desired));
        desired
    }

    fn reassign(&mut self, id: StreamId, changed_at: Instant, cause: &TraceParent) {
        let Some(rendered) = self.renderer.rendered(&id).cloned() else {
            return;
        };
        let desired = self.encoded(&rendered);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.record.label(&rendered);
            stream.record.want(&desired);
            stream.assignment.send_replace(Assignment {
                desired,
                changed_at,
                cause: cause.clone(),
            });
        }
    }

    /// Marks the streams whose proxies sent one of these keys, which the registry dropped but needs now.
    fn mark_outdated(&self, missing: &BTreeSet<u64>) {
        if missing.is_empty() {
            return;
        }
        for stream in self.streams.values() {
            if stream.dropped.has_any_of(missing) {
                stream.outdated.cancel();
            }
        }
    }

    fn relabel(&mut self, id: StreamId) {
        if let (Some(rendered), Some(stream)) =
            (self.renderer.rendered(&id), self.streams.get_mut(&id))
        {
            stream.record.label(rendered);
        }
    }

    fn forget_unused(&mut self) {
        self.encoded
            .retain(|_, desired| Arc::strong_count(desired) > 1);
    }

    fn keep_rejections(&mut self, record: ProxyRecord) {
        let (id, rejections) = record.into_rejections();
        if rejections.is_empty() {
            self.rejections.remove(&id);
        } else if self.rejections.len() < MAX_REMEMBERED || self.rejections.contains_key(&id) {
            self.rejections.insert(id, rejections);
        }
    }
}

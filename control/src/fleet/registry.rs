//! One lock around the [`Renderer`] and the records of all streams.
//!
//! The lock is held only while a change finds the streams that it affects. Each of those gets the newest assignment through a
//! cell of its own, so that a stream that does not read delays no other.
//!
//! A proxy may have several streams (two listeners with the filter, or a new stream before the old one is known to be dead), so
//! records are kept per stream.

mod claims;
mod rejections;
mod state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::info_span;

use super::event::FleetEvent;
use super::metadata::NamedKeys;
use super::origin::StreamOrigin;
use super::record::ProxyRecord;
use crate::event::EventSink;
use crate::policy::{Policies, ProxyNode};
use crate::render::Renderer;
use crate::telemetry::{TARGET, TraceParent};
use crate::xds::{Desired, PluginTemplate};

pub use claims::ClaimedPolicy;
pub use rejections::RejectedPolicy;
use state::{FleetState, ProxyStream};

/// Identifies a stream within this process.
pub type StreamId = u64;

/// Handle to the connected proxies; cheap to clone.
#[derive(Debug, Clone)]
pub struct ProxyFleet {
    inner: Arc<Mutex<FleetState>>,
    revision: Arc<watch::Sender<u64>>,
    events: EventSink<FleetEvent>,
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

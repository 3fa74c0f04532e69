//! The connected proxies: what each is to run, what it runs, and what it refused.
//!
//! One lock around the [`Renderer`] and the records. It is held for as long as a change takes to find the
//! streams that it touches; each of those is told through a cell of its own that holds the newest only, so
//! that a stream that does not look delays nobody.
//!
//! Edges: a proxy may have several streams (two listeners with the filter, or a new stream while the old one
//! is not known to be dead), so that records are kept by stream. A refusal outlives the stream: it is
//! remembered by the proxy's id, for a bounded number of proxies.

mod metadata;
mod record;
mod seat;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::info_span;

use metadata::{LeftOut, Named};
pub use record::{ProxyRecord, Refused, ResourceRecord};
pub use seat::{Api, Arrival, Assignment, Change, Seat};

use crate::metrics::Metrics;
use crate::policy::{Policies, PolicyName};
use crate::render::{PluginConfig, Proxy, Rendered, Renderer, Version as ConfigVersion};
use crate::telemetry::{Cause, TARGET};
use crate::xds::{Desired, Name, Plugin};

/// Proxies whose last refusal is remembered after they went away.
const MAX_REMEMBERED: usize = 1_000;

/// Tells one stream from all others of this process.
pub type StreamId = u64;

/// Handle to the connected proxies; cheap to clone.
#[derive(Debug, Clone)]
pub struct Fleet {
    inner: Arc<Mutex<Inner>>,
    revision: Arc<watch::Sender<u64>>,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct Inner {
    plugin: Plugin,
    renderer: Renderer<StreamId>,
    named: Named,
    // Encoded once for each configuration, shared by all proxies that run it.
    encoded: BTreeMap<ConfigVersion, Arc<Desired>>,
    streams: BTreeMap<StreamId, Stream>,
    refusals: BTreeMap<String, BTreeMap<Name, Refused>>,
    last_id: StreamId,
}

#[derive(Debug)]
struct Stream {
    record: ProxyRecord,
    left_out: LeftOut,
    outdated: CancellationToken,
    assignment: watch::Sender<Assignment>,
}

impl Fleet {
    /// No proxies, no policies.
    #[must_use]
    pub fn new(plugin: Plugin, metrics: Arc<Metrics>) -> Self {
        let inner = Inner {
            plugin,
            renderer: Renderer::default(),
            named: Named::default(),
            encoded: BTreeMap::new(),
            streams: BTreeMap::new(),
            refusals: BTreeMap::new(),
            last_id: 0,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            revision: Arc::new(watch::Sender::new(0)),
            metrics,
        }
    }

    /// Puts exactly these policies in force and tells the streams that this touches.
    pub fn replace(&self, policies: &Policies) {
        let now = Instant::now();
        let span = info_span!(target: TARGET, "render", policies = policies.len(), touched = Empty);
        let _entered = span.enter();
        let mut inner = self.lock();
        let named = Named::by(policies);
        let missed = named.beyond(&inner.named);
        inner.named = named;
        let changes = inner.renderer.replace(policies);
        span.record("touched", changes.pushed.len());
        let cause = Cause::current();
        for id in &changes.pushed {
            inner.reassign(*id, now, &cause);
        }
        for id in &changes.relabelled {
            inner.relabel(*id);
        }
        inner.call_again(&missed);
        inner.forget_unused();
        drop(inner);
        self.touch();
    }

    /// Takes a stream in.
    #[must_use]
    pub fn connect(&self, mut proxy: Proxy, arrival: Arrival) -> Seat {
        let mut inner = self.lock();
        let left_out = inner.named.trim(&mut proxy);
        inner.last_id += 1;
        let id = inner.last_id;
        let mut record = ProxyRecord::new(&proxy, &arrival);
        if let Some(refusals) = inner.refusals.get(&proxy.id) {
            record.remember(refusals);
        }
        let whose = proxy.id.clone();
        let rendered = inner.renderer.connect(id, proxy);
        record.label(&rendered);
        let assignment = Assignment {
            desired: inner.encoded(&rendered),
            changed_at: Instant::now(),
            cause: Cause::default(),
        };
        let outdated = CancellationToken::new();
        let (sender, receiver) = watch::channel(assignment);
        let stream = Stream {
            record,
            left_out,
            outdated: outdated.clone(),
            assignment: sender,
        };
        inner.streams.insert(id, stream);
        drop(inner);
        self.metrics.connected(&arrival, 1);
        self.touch();
        Seat::new(self.clone(), (id, whose), arrival, (receiver, outdated))
    }

    /// What a proxy would get that asks once and stays not.
    #[must_use]
    pub fn desired_once(&self, proxy: &Proxy) -> Arc<Desired> {
        let mut inner = self.lock();
        let rendered = crate::render::render(inner.renderer.policies(), proxy);
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

    /// For each policy in force the version that it gives, and how many streams run under it, or would but for
    /// others that win over it.
    #[must_use]
    pub fn claims(&self) -> BTreeMap<PolicyName, (ConfigVersion, usize)> {
        let inner = self.lock();
        let names = inner.renderer.policies().iter().map(|policy| policy.name());
        let claim = |name: &PolicyName| {
            let config = inner.renderer.config(name)?;
            let streams = inner.renderer.claimed_by(name).count();
            Some((name.clone(), (config.version.clone(), streams)))
        };
        names.filter_map(claim).collect()
    }

    /// Changes whenever anything here does.
    #[must_use]
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Says that something shown elsewhere has changed.
    pub fn touch(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // What is behind the lock is whole after each of its uses, even one that panicked.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_record(&self, id: StreamId, change: impl FnOnce(&mut ProxyRecord)) {
        if let Some(stream) = self.lock().streams.get_mut(&id) {
            change(&mut stream.record);
        }
        self.touch();
    }

    fn disconnect(&self, id: StreamId, arrival: &Arrival) {
        let mut inner = self.lock();
        inner.renderer.disconnect(&id);
        if let Some(stream) = inner.streams.remove(&id) {
            inner.keep_refusals(stream.record);
        }
        drop(inner);
        self.metrics.connected(arrival, -1);
        self.touch();
    }
}

impl Inner {
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

    fn reassign(&mut self, id: StreamId, changed_at: Instant, cause: &Cause) {
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

    /// Tells the streams of proxies that have said something which was left out and is asked for now.
    fn call_again(&self, missed: &BTreeSet<u64>) {
        if missed.is_empty() {
            return;
        }
        for stream in self.streams.values() {
            if stream.left_out.has_any_of(missed) {
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

    fn keep_refusals(&mut self, record: ProxyRecord) {
        let (id, refusals) = record.into_refusals();
        if refusals.is_empty() {
            self.refusals.remove(&id);
        } else if self.refusals.len() < MAX_REMEMBERED || self.refusals.contains_key(&id) {
            self.refusals.insert(id, refusals);
        }
    }
}

//! What the registry's lock protects: the renderer, the streams, and the rejections that outlive them.
//!
//! Rejections are remembered by the proxy's id, for a bounded number of proxies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Assignment, StreamId};
use crate::fleet::metadata::{DroppedKeys, NamedKeys};
use crate::fleet::record::{LastRejection, ProxyRecord};
use crate::render::{ConfigVersion, PluginConfig, Rendered, Renderer};
use crate::telemetry::TraceParent;
use crate::xds::{Desired, Name, PluginTemplate};

/// Proxies whose last rejections are remembered after they disconnect.
const MAX_REMEMBERED: usize = 1_000;

#[derive(Debug)]
pub(super) struct FleetState {
    pub(super) plugin: PluginTemplate,
    pub(super) renderer: Renderer<StreamId>,
    pub(super) named: NamedKeys,
    /// Encoded once per configuration and shared by all proxies that run it.
    pub(super) encoded: BTreeMap<ConfigVersion, Arc<Desired>>,
    pub(super) streams: BTreeMap<StreamId, ProxyStream>,
    pub(super) rejections: BTreeMap<String, BTreeMap<Name, LastRejection>>,
    pub(super) last_id: StreamId,
}

#[derive(Debug)]
pub(super) struct ProxyStream {
    pub(super) record: ProxyRecord,
    pub(super) dropped: DroppedKeys,
    pub(super) outdated: CancellationToken,
    pub(super) assignment: watch::Sender<Assignment>,
}

impl FleetState {
    pub(super) fn encoded(&mut self, rendered: &Rendered) -> Arc<Desired> {
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

    pub(super) fn reassign(&mut self, id: StreamId, changed_at: Instant, cause: &TraceParent) {
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
    pub(super) fn mark_outdated(&self, missing: &BTreeSet<u64>) {
        if missing.is_empty() {
            return;
        }
        for stream in self.streams.values() {
            if stream.dropped.has_any_of(missing) {
                stream.outdated.cancel();
            }
        }
    }

    pub(super) fn relabel(&mut self, id: StreamId) {
        if let (Some(rendered), Some(stream)) =
            (self.renderer.rendered(&id), self.streams.get_mut(&id))
        {
            stream.record.label(rendered);
        }
    }

    pub(super) fn forget_unused(&mut self) {
        self.encoded
            .retain(|_, desired| Arc::strong_count(desired) > 1);
    }

    pub(super) fn keep_rejections(&mut self, record: ProxyRecord) {
        let (id, rejections) = record.into_rejections();
        if rejections.is_empty() {
            self.rejections.remove(&id);
        } else if self.rejections.len() < MAX_REMEMBERED || self.rejections.contains_key(&id) {
            self.rejections.insert(id, rejections);
        }
    }
}

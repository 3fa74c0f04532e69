//! The way of one request to its worker.

#![expect(unsafe_code, reason = "a request points to its worker")]

use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use tidegate_core::config::LoadReports;
use tidegate_worker::plugin::{EndedRequest, PluginObject};
use tidegate_worker::stream::PluginAccess;

use super::{NativePlugin, Worker};
use crate::abi::{EnvoyPtr, attribute_id};
use crate::host::{self, NativeHost};
use crate::upstream_hosts::LateEnd;

/// The way of one request to its worker.
#[derive(Debug)]
pub(crate) struct WorkerAccess {
    plugin: Arc<NativePlugin>,
    /// In the plugin, which keeps it as long as itself.
    worker: NonNull<Worker>,
    stream: EnvoyPtr,
}

impl WorkerAccess {
    /// The way of this stream to the worker with this index; `None` if Envoy has more workers than it said.
    pub(crate) fn new(plugin: Arc<NativePlugin>, index: usize, stream: EnvoyPtr) -> Option<Self> {
        let worker = NonNull::from(plugin.worker(index)?);
        Some(Self {
            plugin,
            worker,
            stream,
        })
    }

    /// What happens to load reports in the response.
    pub(crate) fn load_reports(&self) -> LoadReports {
        self.plugin.orders.load_reports()
    }

    /// The upstream host of the request under way, if hosts are counted.
    #[cold]
    fn late_address(&self) -> Option<Box<[u8]>> {
        if self.plugin.orders.most_hosts.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // SAFETY: the hook under way is of this stream; the text is copied.
        let text = unsafe { host::attribute_text(self.stream, attribute_id::UPSTREAM_ADDRESS) };
        text.map(Into::into)
    }

    const fn worker(&self) -> &Worker {
        // SAFETY: the plugin lives as long as this, and never drops or moves a worker.
        unsafe { self.worker.as_ref() }
    }
}

impl PluginAccess for WorkerAccess {
    type Host = NativeHost;

    fn with<T>(&self, step: impl FnOnce(&mut PluginObject<NativeHost>) -> T) -> Option<T> {
        let Some(mut state) = self.plugin.take(self.worker(), self.stream) else {
            self.plugin.note_busy();
            return None;
        };
        let result = step(&mut state.object);
        state.object.host().attend(core::ptr::null_mut());
        Some(result)
    }

    fn complete(&self, ended: EndedRequest) {
        match self.plugin.take(self.worker(), self.stream) {
            Some(mut state) => state.complete(ended, None),
            None => {
                let address = self.late_address();
                self.worker().shard.ended.push(LateEnd { ended, address });
                self.worker().notice.leave();
            }
        }
    }
}

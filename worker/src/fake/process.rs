//! The process of a scripted proxy: what a test sets, and what it looks at afterwards.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use core::time::Duration;

use crate::api::{Headers, HostError, MetricId, SharedValue};

/// What the VMs of a process share, and what the next callback reads.
#[derive(Debug, Default)]
pub struct Process {
    pub(super) nanos: Cell<u64>,
    pub(super) attributes: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    pub(super) headers: RefCell<BTreeMap<(u8, String), Vec<u8>>>,
    pub(super) raw_map: RefCell<Option<Vec<u8>>>,
    pub(super) configuration: RefCell<Vec<u8>>,
    pub(super) calls: Cell<u64>,
    /// A bit for each [`Call`] that fails. It fails with `status`, or returns malformed data if `status` is 0.
    pub(super) failing: Cell<u16>,
    pub(super) status: Cell<u32>,
    pub(super) is_beaten: Cell<bool>,
    pub(super) reads: Cell<usize>,
    pub(super) shared_bytes: Cell<usize>,
    pub(super) shared: RefCell<BTreeMap<String, SharedValue>>,
    pub(super) shared_broken: Cell<bool>,
    pub(super) metric_names: RefCell<Vec<String>>,
    pub(super) metrics: RefCell<BTreeMap<String, u64>>,
    pub(super) metrics_rejected: Cell<bool>,
    pub(super) replies: RefCell<Vec<(u16, String)>>,
    pub(super) log: RefCell<Vec<String>>,
}

impl Process {
    pub fn advance(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap();
        self.nanos.set(self.nanos.get().saturating_add(nanos));
    }

    pub fn set_attribute(&self, path: &[u8], value: &[u8]) {
        self.attributes
            .borrow_mut()
            .insert(path.to_vec(), value.to_vec());
    }

    pub fn set_header(&self, map: Headers, name: &str, value: impl AsRef<[u8]>) {
        self.headers
            .borrow_mut()
            .insert((map as u8, name.to_owned()), value.as_ref().to_vec());
    }

    /// Sets the bytes that every header map is serialized to, instead of its entries.
    pub fn set_raw_map(&self, bytes: Option<Vec<u8>>) {
        *self.raw_map.borrow_mut() = bytes;
    }

    pub fn set_configuration(&self, bytes: &[u8]) {
        bytes.clone_into(&mut self.configuration.borrow_mut());
    }

    /// From now on exactly these calls fail with this status. `calls` has a bit for each [`Call`](super::Call).
    pub fn fail(&self, calls: u16, status: u32) {
        self.failing.set(calls);
        self.status.set(status);
    }

    /// Sets whether every write by compare and swap comes too late from now on.
    pub fn beat(&self, is_beaten: bool) {
        self.is_beaten.set(is_beaten);
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// Sets the clock.
    pub fn set_clock(&self, nanos: u64) {
        self.nanos.set(nanos);
    }

    /// Changes the value at a key, as another plugin of the process could.
    pub fn overwrite(&self, key: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut shared = self.shared.borrow_mut();
        let value = shared.entry(key.to_owned()).or_insert_with(|| SharedValue {
            bytes: Arc::default(),
            version: 0,
        });
        value.version += 1;
        change(Arc::make_mut(&mut value.bytes));
    }

    pub fn clear_attributes(&self) {
        self.attributes.borrow_mut().clear();
    }

    pub fn clear_headers(&self) {
        self.headers.borrow_mut().clear();
    }

    pub fn break_shared_data(&self) {
        self.shared_broken.set(true);
    }

    pub fn reject_metrics(&self) {
        self.metrics_rejected.set(true);
    }

    pub fn accept_metrics(&self) {
        self.metrics_rejected.set(false);
    }

    pub fn metric_value(&self, name: &str) -> Option<u64> {
        self.metrics.borrow().get(name).copied()
    }

    pub fn metric_names(&self) -> Vec<String> {
        self.metrics.borrow().keys().cloned().collect()
    }

    /// Reads of attributes and headers since the last call.
    pub fn take_reads(&self) -> usize {
        self.reads.take()
    }

    /// Bytes of shared data that were read or written since the last call.
    pub fn take_shared_bytes(&self) -> usize {
        self.shared_bytes.take()
    }

    pub fn replies(&self) -> Vec<(u16, String)> {
        self.replies.borrow().clone()
    }

    pub fn log_lines(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    pub(super) fn shared_data(&self) -> Result<(), HostError> {
        if self.shared_broken.get() {
            return Err(HostError::Status {
                call: "shared data",
                status: 10,
            });
        }
        Ok(())
    }

    pub(super) fn count_shared(&self, bytes: usize) {
        self.shared_bytes.set(self.shared_bytes.get() + bytes);
    }

    pub(super) fn name(&self, id: MetricId) -> String {
        self.metric_names.borrow()[id.0 as usize].clone()
    }
}

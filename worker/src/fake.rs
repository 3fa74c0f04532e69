//! A scripted proxy for tests.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "test support: names say what is scripted, and a wrong script ends the test"
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use core::time::Duration;

use tidegate_core::Instant;
use tidegate_core::reply::LocalReply;

use crate::api::{
    Expect, Headers, Host, HostError, LogLevel, MetricId, MetricKind, SharedValue, WriteResult,
};
use crate::pairs;

/// How far the wall clock is ahead of the monotonic clock.
pub const WALL_CLOCK_AHEAD: Duration = Duration::from_secs(1_000_000);

/// The status of calls from a VM that has trapped. Such calls do nothing.
const TRAPPED: u32 = 10;

/// One VM's access to its process. Each part of the VM has a clone.
#[derive(Clone, Debug, Default)]
pub struct FakeHost {
    process: Rc<Process>,
    has_trapped: Rc<Cell<bool>>,
}

impl Deref for FakeHost {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl FakeHost {
    /// The access of another VM to the same process.
    pub fn another_vm(&self) -> Self {
        Self {
            process: Rc::clone(&self.process),
            has_trapped: Rc::default(),
        }
    }

    /// The VM traps: calls from it do nothing from now on.
    pub fn trap(&self) {
        self.has_trapped.set(true);
    }

    fn call(&self, call: Call) -> Result<(), HostError> {
        self.calls.set(self.calls.get() + 1);
        let (name, status) = (call.name(), self.status.get());
        if self.has_trapped.get() {
            return Err(HostError::Status {
                call: name,
                status: TRAPPED,
            });
        }
        match self.failing.get() & (1 << call as u16) {
            0 => Ok(()),
            _ if status == 0 => Err(HostError::Malformed { call: name }),
            _ => Err(HostError::Status { call: name, status }),
        }
    }
}

/// The calls that the filter makes, and that can be made to fail.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Clock,
    Property,
    HeaderValue,
    HeaderPairs,
    LocalResponse,
    DefineMetric,
    IncrementMetric,
    RecordMetric,
    GetMetric,
    GetSharedData,
    SetSharedData,
    BufferBytes,
    TickPeriod,
    Log,
}

impl Call {
    const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock_time_get",
            Self::Property => "proxy_get_property",
            Self::HeaderValue => "proxy_get_header_map_value",
            Self::HeaderPairs => "proxy_get_header_map_pairs",
            Self::LocalResponse => "proxy_send_local_response",
            Self::DefineMetric => "proxy_define_metric",
            Self::IncrementMetric => "proxy_increment_metric",
            Self::RecordMetric => "proxy_record_metric",
            Self::GetMetric => "proxy_get_metric",
            Self::GetSharedData => "proxy_get_shared_data",
            Self::SetSharedData => "proxy_set_shared_data",
            Self::BufferBytes => "proxy_get_buffer_bytes",
            Self::TickPeriod => "proxy_set_tick_period_milliseconds",
            Self::Log => "proxy_log",
        }
    }
}

/// What the VMs of a process share, and what the next callback reads.
#[derive(Debug, Default)]
pub struct Process {
    nanos: Cell<u64>,
    attributes: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    headers: RefCell<BTreeMap<(u8, String), Vec<u8>>>,
    raw_map: RefCell<Option<Vec<u8>>>,
    configuration: RefCell<Vec<u8>>,
    calls: Cell<u64>,
    /// A bit for each [`Call`] that fails. It fails with `status`, or returns malformed data if `status` is 0.
    failing: Cell<u16>,
    status: Cell<u32>,
    is_beaten: Cell<bool>,
    reads: Cell<usize>,
    shared: RefCell<BTreeMap<String, SharedValue>>,
    shared_broken: Cell<bool>,
    metric_names: RefCell<Vec<String>>,
    metrics: RefCell<BTreeMap<String, u64>>,
    metrics_rejected: Cell<bool>,
    replies: RefCell<Vec<(u16, String)>>,
    log: RefCell<Vec<String>>,
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

    /// From now on exactly these calls fail with this status. `calls` has a bit for each [`Call`].
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

    pub fn replies(&self) -> Vec<(u16, String)> {
        self.replies.borrow().clone()
    }

    pub fn log_lines(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    fn shared_data(&self) -> Result<(), HostError> {
        if self.shared_broken.get() {
            return Err(HostError::Status {
                call: "shared data",
                status: 10,
            });
        }
        Ok(())
    }

    fn name(&self, id: MetricId) -> String {
        self.metric_names.borrow()[id.0 as usize].clone()
    }
}

impl Host for FakeHost {
    fn now(&self) -> Result<Instant, HostError> {
        self.call(Call::Clock)?;
        Ok(Instant::from_nanos(self.nanos.get()))
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        self.call(Call::Clock)?;
        Ok(Instant::from_nanos(self.nanos.get()) + WALL_CLOCK_AHEAD)
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Vec<u8>>, HostError> {
        self.call(Call::Property)?;
        self.reads.set(self.reads.get() + 1);
        let attributes = self.attributes.borrow();
        Ok(attributes
            .get(path)
            .filter(|value| !value.is_empty())
            .cloned())
    }

    fn header(&self, map: Headers, name: &str) -> Result<Option<Vec<u8>>, HostError> {
        self.call(Call::HeaderValue)?;
        self.reads.set(self.reads.get() + 1);
        let headers = self.headers.borrow();
        Ok(headers
            .get(&(map as u8, name.to_owned()))
            .filter(|value| !value.is_empty())
            .cloned())
    }

    fn header_map(&self, map: Headers) -> Result<Vec<u8>, HostError> {
        self.call(Call::HeaderPairs)?;
        self.reads.set(self.reads.get() + 1);
        if let Some(raw) = &*self.raw_map.borrow() {
            return Ok(raw.clone());
        }
        let headers = self.headers.borrow();
        let all: Vec<_> = headers
            .iter()
            .filter(|((number, _), _)| *number == map as u8)
            .map(|((_, name), value)| (name.as_str(), str::from_utf8(value).unwrap_or_default()))
            .collect();
        Ok(pairs::encode(&all))
    }

    fn send_local_reply(&self, reply: &LocalReply<'_>) -> Result<(), HostError> {
        self.call(Call::LocalResponse)?;
        self.replies
            .borrow_mut()
            .push((reply.status, reply.details.to_owned()));
        Ok(())
    }

    fn define_metric(&self, _kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        self.call(Call::DefineMetric)?;
        let mut names = self.metric_names.borrow_mut();
        names.push(name.to_owned());
        self.metrics
            .borrow_mut()
            .entry(name.to_owned())
            .or_default();
        Ok(MetricId(u32::try_from(names.len() - 1).unwrap()))
    }

    fn increment_metric(&self, id: MetricId, by: i64) -> Result<(), HostError> {
        self.call(Call::IncrementMetric)?;
        if !self.metrics_rejected.get() {
            let mut metrics = self.metrics.borrow_mut();
            let value = metrics.get_mut(&self.name(id)).unwrap();
            *value = value.wrapping_add_signed(by);
        }
        Ok(())
    }

    fn record_metric(&self, id: MetricId, value: u64) -> Result<(), HostError> {
        self.call(Call::RecordMetric)?;
        if !self.metrics_rejected.get() {
            self.metrics.borrow_mut().insert(self.name(id), value);
        }
        Ok(())
    }

    fn metric(&self, id: MetricId) -> Result<u64, HostError> {
        self.call(Call::GetMetric)?;
        Ok(self.metrics.borrow()[&self.name(id)])
    }

    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError> {
        self.call(Call::GetSharedData)?;
        self.shared_data()?;
        Ok(self.shared.borrow().get(key).cloned())
    }

    fn set_shared(
        &self,
        key: &str,
        value: &[u8],
        expect: Expect,
    ) -> Result<WriteResult, HostError> {
        self.call(Call::SetSharedData)?;
        self.shared_data()?;
        let mut shared = self.shared.borrow_mut();
        let version = shared.get(key).map(|value| value.version);
        let fits = match expect {
            Expect::Anything => true,
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
        };
        if !fits || self.is_beaten.get() && expect != Expect::Anything {
            return Ok(WriteResult::Beaten);
        }
        let value = SharedValue {
            bytes: Arc::new(value.to_vec()),
            version: version.unwrap_or_default() + 1,
        };
        shared.insert(key.to_owned(), value);
        Ok(WriteResult::Done)
    }

    fn configuration(&self) -> Result<Vec<u8>, HostError> {
        self.call(Call::BufferBytes)?;
        Ok(self.configuration.borrow().clone())
    }

    fn set_tick_period(&self, _period: Duration) -> Result<(), HostError> {
        self.call(Call::TickPeriod)?;
        Ok(())
    }

    fn log(&self, _level: LogLevel, line: &str) -> Result<(), HostError> {
        self.call(Call::Log)?;
        self.log.borrow_mut().push(line.to_owned());
        Ok(())
    }
}

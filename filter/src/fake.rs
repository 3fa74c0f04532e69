//! A scripted proxy for tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use core::time::Duration;

use tidegate_core::Instant;
use tidegate_core::reply::LocalReply;

use crate::api::{
    Expect, Headers, Host, HostError, LogLevel, MetricId, MetricKind, SharedValue, Stored,
};
use crate::pairs;

/// How much the wall clock is ahead of the monotonic one.
pub(crate) const WALL_CLOCK_AHEAD: Duration = Duration::from_secs(1_000_000);

/// One process; clones are its VMs' ways to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeHost(Rc<Process>);

impl Deref for FakeHost {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

/// What the VMs of a process share, and what the next callback will find.
#[derive(Debug, Default)]
pub(crate) struct Process {
    nanos: Cell<u64>,
    attributes: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    headers: RefCell<BTreeMap<(u8, String), String>>,
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
    pub(crate) fn advance(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap();
        self.nanos.set(self.nanos.get() + nanos);
    }

    pub(crate) fn set_attribute(&self, path: &[u8], value: &[u8]) {
        self.attributes
            .borrow_mut()
            .insert(path.to_vec(), value.to_vec());
    }

    pub(crate) fn set_header(&self, map: Headers, name: &str, value: &str) {
        self.headers
            .borrow_mut()
            .insert((map as u8, name.to_owned()), value.to_owned());
    }

    pub(crate) fn clear_attributes(&self) {
        self.attributes.borrow_mut().clear();
    }

    pub(crate) fn clear_headers(&self) {
        self.headers.borrow_mut().clear();
    }

    pub(crate) fn break_shared_data(&self) {
        self.shared_broken.set(true);
    }

    pub(crate) fn reject_metrics(&self) {
        self.metrics_rejected.set(true);
    }

    pub(crate) fn metric_value(&self, name: &str) -> Option<u64> {
        self.metrics.borrow().get(name).copied()
    }

    pub(crate) fn metric_names(&self) -> Vec<String> {
        self.metrics.borrow().keys().cloned().collect()
    }

    /// Reads of attributes and headers since the last call.
    pub(crate) fn take_reads(&self) -> usize {
        self.reads.take()
    }

    pub(crate) fn replies(&self) -> Vec<(u16, String)> {
        self.replies.borrow().clone()
    }

    pub(crate) fn log_lines(&self) -> Vec<String> {
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
        Ok(Instant::from_nanos(self.nanos.get()))
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        Ok(Instant::from_nanos(self.nanos.get()) + WALL_CLOCK_AHEAD)
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Vec<u8>>, HostError> {
        self.reads.set(self.reads.get() + 1);
        Ok(self.attributes.borrow().get(path).cloned())
    }

    fn header(&self, map: Headers, name: &str) -> Result<Option<Vec<u8>>, HostError> {
        self.reads.set(self.reads.get() + 1);
        let headers = self.headers.borrow();
        Ok(headers
            .get(&(map as u8, name.to_owned()))
            .map(|value| value.as_bytes().to_vec()))
    }

    fn header_map(&self, map: Headers) -> Result<Vec<u8>, HostError> {
        self.reads.set(self.reads.get() + 1);
        let headers = self.headers.borrow();
        let all: Vec<_> = headers
            .iter()
            .filter(|((number, _), _)| *number == map as u8)
            .map(|((_, name), value)| (name.as_str(), value.as_str()))
            .collect();
        Ok(pairs::encode(&all))
    }

    fn send_local_reply(&self, reply: &LocalReply<'_>) -> Result<(), HostError> {
        self.replies
            .borrow_mut()
            .push((reply.status, reply.details.to_owned()));
        Ok(())
    }

    fn define_metric(&self, _kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        let mut names = self.metric_names.borrow_mut();
        names.push(name.to_owned());
        self.metrics
            .borrow_mut()
            .entry(name.to_owned())
            .or_default();
        Ok(MetricId(u32::try_from(names.len() - 1).unwrap()))
    }

    fn increment_metric(&self, id: MetricId, by: i64) -> Result<(), HostError> {
        if !self.metrics_rejected.get() {
            let mut metrics = self.metrics.borrow_mut();
            let value = metrics.get_mut(&self.name(id)).unwrap();
            *value = value.wrapping_add_signed(by);
        }
        Ok(())
    }

    fn record_metric(&self, id: MetricId, value: u64) -> Result<(), HostError> {
        if !self.metrics_rejected.get() {
            self.metrics.borrow_mut().insert(self.name(id), value);
        }
        Ok(())
    }

    fn metric(&self, id: MetricId) -> Result<u64, HostError> {
        Ok(self.metrics.borrow()[&self.name(id)])
    }

    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError> {
        self.shared_data()?;
        Ok(self.shared.borrow().get(key).cloned())
    }

    fn set_shared(&self, key: &str, value: &[u8], expect: Expect) -> Result<Stored, HostError> {
        self.shared_data()?;
        let mut shared = self.shared.borrow_mut();
        let version = shared.get(key).map(|value| value.version);
        let fits = match expect {
            Expect::Anything => true,
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
        };
        if !fits {
            return Ok(Stored::Beaten);
        }
        let value = SharedValue {
            bytes: value.to_vec(),
            version: version.unwrap_or_default() + 1,
        };
        shared.insert(key.to_owned(), value);
        Ok(Stored::Done)
    }

    fn configuration(&self) -> Result<Vec<u8>, HostError> {
        Ok(Vec::new())
    }

    fn set_tick_period(&self, _period: Duration) -> Result<(), HostError> {
        Ok(())
    }

    fn log(&self, _level: LogLevel, line: &str) -> Result<(), HostError> {
        self.log.borrow_mut().push(line.to_owned());
        Ok(())
    }
}

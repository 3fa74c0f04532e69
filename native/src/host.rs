//! What the worker asks of its host, answered with calls into Envoy and with memory that workers share.

#![expect(unsafe_code, reason = "host functions are foreign functions")]

mod reads;
mod reply;

use core::cell::{Cell, RefCell};
use core::ptr;
use core::time::Duration;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use tidegate_core::reply::LocalReply;
use tidegate_core::{Engine, Instant, KeySource, classify};
use tidegate_worker::api::{
    Expect, Headers, Host, HostError, LogLevel, MetricId, MetricKind, SharedValue, WriteResult,
    attribute,
};

use crate::abi::{self, EnvoyPtr, attribute_id, header_type};
use crate::host_names::HostNames;
use crate::latencies::{Latencies, WorkerLatencies};
use crate::load_reports::{LoadReportCells, ReportText, WorkerLoadReports};
use crate::metrics::PluginMetrics;
use crate::shared::SharedValues;
use crate::shared_keys::SharedKeys;

pub(crate) use reads::attribute_text;
use reads::header_kind;

/// What the workers of one plugin share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) values: SharedValues,
    pub(crate) metrics: PluginMetrics,
    pub(crate) load_reports: LoadReportCells,
    pub(crate) latencies: Latencies,
    pub(crate) hosts: HostNames,
    pub(crate) keys: Arc<SharedKeys>,
}

/// Envoy, as one worker sees it.
#[derive(Debug)]
pub(crate) struct NativeHost {
    shared: Arc<Shared>,
    /// The stream of the hook under way; null on a tick.
    stream: Cell<EnvoyPtr>,
    /// Empty unless the configuration asks for reports.
    load_reports: RefCell<WorkerLoadReports>,
    /// Empty unless the configuration asks for histograms.
    latencies: RefCell<WorkerLatencies>,
}

// SAFETY: the pointer is used only while a hook of its stream runs, on the stream's own thread (see `shard`).
unsafe impl Send for NativeHost {}

impl NativeHost {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            stream: Cell::new(ptr::null_mut()),
            load_reports: RefCell::default(),
            latencies: RefCell::default(),
        }
    }

    /// Reads from this stream until the next call.
    pub(crate) fn attend(&self, stream: EnvoyPtr) {
        self.stream.set(stream);
    }

    /// On a tick: tells what the worker has counted, if reports are asked for.
    pub(crate) fn count_load(&self, engine: &Engine, is_asked: bool) {
        // Nothing else uses it: one thread at a time has the worker's state.
        let Ok(mut reports) = self.load_reports.try_borrow_mut() else {
            return;
        };
        if !is_asked {
            reports.stop();
        } else if let Ok(now) = self.now() {
            reports.count(engine, &self.shared.load_reports, now);
        }
    }

    /// The same for latencies.
    pub(crate) fn count_latencies(&self, engine: &Engine, is_asked: bool) {
        let Ok(mut latencies) = self.latencies.try_borrow_mut() else {
            return;
        };
        if !is_asked {
            latencies.stop();
        } else if let Ok(now) = self.now() {
            latencies.count(engine, &self.shared.latencies, now);
        }
    }

    /// The load report of an upstream, by the hash of its name.
    pub(crate) fn load_report(&self, upstream: u64) -> Option<ReportText> {
        self.load_reports.try_borrow().ok()?.text(upstream)
    }
}

/// The monotonic clock. It is read for each request: the standard library's takes four times the instructions, to check
/// and subtract what it gets.
fn monotonic_nanos() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a local. The call cannot fail: Linux always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let (seconds, nanos) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
}

const fn unknown(call: &'static str) -> HostError {
    HostError::Malformed { call }
}

impl Host for NativeHost {
    const READS_ARE_CHEAP: bool = true;

    fn now(&self) -> Result<Instant, HostError> {
        Ok(Instant::from_nanos(monotonic_nanos()))
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_err(|_| unknown("clock_gettime"))?.as_nanos();
        Ok(Instant::from_nanos(
            u64::try_from(since).unwrap_or(u64::MAX),
        ))
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        let value = match path {
            attribute::CLUSTER => self.cluster_name(),
            attribute::ROUTE => self.text(attribute_id::ROUTE_NAME),
            attribute::CLIENT_IDENTITY => self.text(attribute_id::URI_SAN_PEER_CERTIFICATE),
            attribute::CODE_DETAILS => self.text(attribute_id::CODE_DETAILS),
            // A waypoint's tunnel, which dynamic modules do not see.
            _ => None,
        };
        Ok(value.filter(|bytes| !bytes.is_empty()).map(Cow::Borrowed))
    }

    fn endpoints(&self) -> Result<Option<u64>, HostError> {
        Ok(self.host_count())
    }

    fn response_flags(&self) -> Result<Option<u64>, HostError> {
        Ok(self.flags())
    }

    fn header(&self, map: Headers, name: &str) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        let value = self.value(header_kind(map), name);
        Ok(value.filter(|bytes| !bytes.is_empty()).map(Cow::Borrowed))
    }

    fn cluster<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, HostError> {
        Ok(self.cluster_name().map(read))
    }

    fn status(&self) -> Result<Option<u16>, HostError> {
        let value = self.value(header_type::RESPONSE, ":status");
        Ok(value.and_then(classify::parse_status))
    }

    fn header_map(&self, _map: Headers) -> Result<Vec<u8>, HostError> {
        // Never asked for: single headers are cheap here.
        Ok(Vec::new())
    }

    fn send_local_reply(&self, reply: &LocalReply<'_>) -> Result<(), HostError> {
        self.send(reply, None)
    }

    fn shed(&self, upstream: u64, reply: &LocalReply<'_>) -> Result<(), HostError> {
        // No response of the upstream has the report while everything is shed.
        self.send(reply, self.load_report(upstream).as_ref())
    }

    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        let id = self.shared.metrics.define(kind, name);
        id.map(MetricId).ok_or_else(|| unknown("define_metric"))
    }

    fn increment_metric(&self, id: MetricId, by: i64) -> Result<(), HostError> {
        let done = self.shared.metrics.add(id.0, by);
        done.ok_or_else(|| unknown("increment_metric"))
    }

    fn raise_metric(&self, id: MetricId) -> Result<u64, HostError> {
        let value = self.shared.metrics.raise(id.0);
        value.ok_or_else(|| unknown("increment_metric"))
    }

    fn record_metric(&self, id: MetricId, value: u64) -> Result<(), HostError> {
        let done = self.shared.metrics.set(id.0, value);
        done.ok_or_else(|| unknown("record_metric"))
    }

    fn metric(&self, id: MetricId) -> Result<u64, HostError> {
        self.shared
            .metrics
            .get(id.0)
            .ok_or_else(|| unknown("metric"))
    }

    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError> {
        Ok(self.shared.values.get(key))
    }

    fn set_shared(
        &self,
        key: &str,
        value: &[u8],
        expect: Expect,
    ) -> Result<WriteResult, HostError> {
        Ok(self.shared.values.set(key, value, expect))
    }

    fn keys(&self) -> Option<Arc<dyn KeySource>> {
        let keys = Arc::clone(&self.shared.keys);
        Some(keys)
    }

    fn configuration(&self) -> Result<Vec<u8>, HostError> {
        // It comes with the hook.
        Ok(Vec::new())
    }

    fn set_tick_period(&self, _period: Duration) -> Result<(), HostError> {
        Ok(())
    }

    fn log(&self, level: LogLevel, line: &str) -> Result<(), HostError> {
        let level = match level {
            LogLevel::Info => abi::log_level::INFO,
            LogLevel::Warn => abi::log_level::WARN,
            LogLevel::Error => abi::log_level::ERROR,
        };
        abi::log(level, line);
        Ok(())
    }
}

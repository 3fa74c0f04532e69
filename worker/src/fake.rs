//! A scripted proxy for tests.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "test support: names say what is scripted, and a wrong script ends the test"
)]

mod call;
mod process;

use std::borrow::Cow;
use std::cell::Cell;
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

pub use call::Call;
pub use process::Process;

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

impl Host for FakeHost {
    fn now(&self) -> Result<Instant, HostError> {
        self.call(Call::Clock)?;
        Ok(Instant::from_nanos(self.nanos.get()))
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        self.call(Call::Clock)?;
        Ok(Instant::from_nanos(self.nanos.get()) + WALL_CLOCK_AHEAD)
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        self.call(Call::Property)?;
        self.reads.set(self.reads.get() + 1);
        let attributes = self.attributes.borrow();
        Ok(attributes
            .get(path)
            .filter(|value| !value.is_empty())
            .cloned()
            .map(Cow::Owned))
    }

    fn header(&self, map: Headers, name: &str) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        self.call(Call::HeaderValue)?;
        self.reads.set(self.reads.get() + 1);
        let headers = self.headers.borrow();
        Ok(headers
            .get(&(map as u8, name.to_owned()))
            .filter(|value| !value.is_empty())
            .cloned()
            .map(Cow::Owned))
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
        let value = self.shared.borrow().get(key).cloned();
        self.count_shared(value.as_ref().map_or(0, |value| value.bytes.len()));
        Ok(value)
    }

    fn set_shared(
        &self,
        key: &str,
        value: &[u8],
        expect: Expect,
    ) -> Result<WriteResult, HostError> {
        self.call(Call::SetSharedData)?;
        self.shared_data()?;
        self.count_shared(value.len());
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

//! One VM's way to the process, call by call.
//!
//! A VM runs the filter's own code. It is stopped at a call that others could see, and later continues: its callbacks are
//! played again from its birth with the answers that they got, and with one more. So any order of the calls of several
//! VMs can be had, and what a VM is follows from what it was asked and answered.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{Debug, Formatter};
use std::rc::Rc;
use std::time::Duration;

use tidegate_core::Instant;
use tidegate_core::reply::LocalReply;
use tidegate_worker::api::{
    Expect, Headers, Host, HostError, LogLevel, MetricId, MetricKind, SharedValue, WriteResult,
    attribute,
};
use tidegate_worker::pairs;

use crate::process::{Answer, Broken, Call, Process};

/// Thrown to stop a VM at its next call.
pub(crate) struct Stop;

/// What happens to a call that the script has no answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// There is none.
    Replays,
    /// It stops the VM.
    Stops,
    /// The process answers it.
    Live,
    /// It has no effect.
    Gone,
}

/// One VM during one play.
pub(crate) struct Seat {
    pub(crate) vm: usize,
    /// The wire version that it writes in its keys, when it is not this one's.
    pub(crate) version: u8,
    pub(crate) now: u64,
    pub(crate) status: &'static str,
    /// What it was answered before.
    pub(crate) script: VecDeque<Answer>,
    pub(crate) mode: Mode,
    /// The call at which it was stopped.
    pub(crate) call: Option<Call>,
    pub(crate) process: Rc<RefCell<Process>>,
    metrics: Vec<Rc<str>>,
    /// Under [`Broken::Directives`], those that it read first.
    stale: Option<Answer>,
}

/// The host of the VM in that seat.
#[derive(Clone)]
pub(crate) struct Way(pub(crate) Rc<RefCell<Seat>>);

impl Seat {
    pub(crate) fn new(vm: usize, version: u8, process: Rc<RefCell<Process>>) -> Self {
        Self {
            vm,
            version,
            now: 0,
            status: "200",
            script: VecDeque::new(),
            mode: Mode::Replays,
            call: None,
            process,
            metrics: Vec::new(),
            stale: None,
        }
    }

    fn key(&self, key: &str) -> Rc<str> {
        if self.version == tidegate_core::WIRE_VERSION {
            return Rc::from(key);
        }
        let own = format!("tidegate/{}/", tidegate_core::WIRE_VERSION);
        Rc::from(key.replace(&own, &format!("tidegate/{}/", self.version)))
    }

    /// What it reads and writes, where versions meet: it takes itself for this one, and this one for its own.
    fn bytes(&self, key: &str, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if key.contains("/versions/") {
            for version in bytes.iter_mut().step_by(9) {
                *version ^= self.version ^ tidegate_core::WIRE_VERSION;
            }
        }
        bytes
    }
}

/// What of it decides what the VM does next, between two callbacks: time and script are set again for each.
impl Debug for Way {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let seat = self.0.borrow();
        let place = (seat.vm, seat.version, seat.status);
        write!(out, "{:?}", (place, &seat.metrics, &seat.stale))
    }
}

impl Way {
    /// One call that others could see: answered as before, or now, or never.
    fn call(&self, call: Call) -> Option<Answer> {
        let mut seat = self.0.borrow_mut();
        if seat.mode == Mode::Gone {
            return None;
        }
        if let Some(answer) = seat.script.pop_front() {
            return Some(answer);
        }
        assert!(seat.mode != Mode::Replays, "not the same again");
        if seat.mode == Mode::Stops {
            (seat.mode, seat.call) = (Mode::Gone, Some(call));
            drop(seat);
            std::panic::resume_unwind(Box::new(Stop));
        }
        Some(seat.process.borrow_mut().answer(seat.vm, &call))
    }

    fn metric_name(&self, id: MetricId) -> Rc<str> {
        Rc::clone(&self.0.borrow().metrics[id.0 as usize])
    }
}

/// Whether workers count together in a metric.
fn is_common(name: &str) -> bool {
    name.ends_with("tidegate_in_flight") || name.ends_with("tidegate_grants_claimed")
}

impl Host for Way {
    fn now(&self) -> Result<Instant, HostError> {
        Ok(Instant::from_nanos(self.0.borrow().now))
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        Ok(Instant::from_nanos(self.0.borrow().now) + Duration::from_secs(1_000_000))
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        Ok(match path {
            attribute::CLUSTER => Some(Cow::Borrowed(b"web")),
            attribute::CODE_DETAILS => Some(Cow::Borrowed(b"via_upstream")),
            _ => None,
        })
    }

    fn header(&self, _map: Headers, name: &str) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        let status = self.0.borrow().status.as_bytes().to_vec();
        Ok((name == ":status").then_some(Cow::Owned(status)))
    }

    fn header_map(&self, _map: Headers) -> Result<Vec<u8>, HostError> {
        Ok(pairs::encode(&[]))
    }

    fn send_local_reply(&self, _reply: &LocalReply<'_>) -> Result<(), HostError> {
        Ok(())
    }

    fn define_metric(&self, _kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        let mut seat = self.0.borrow_mut();
        seat.metrics.push(Rc::from(name));
        Ok(MetricId(u32::try_from(seat.metrics.len() - 1).unwrap()))
    }

    fn increment_metric(&self, id: MetricId, by: i64) -> Result<(), HostError> {
        let name = self.metric_name(id);
        if is_common(&name) {
            self.call(Call::Count(name, by));
            return Ok(());
        }
        // What is not read during a run is not kept, except what the invariants need. What comes before an answer
        // that is in the script was kept when the VM got that far first.
        let seat = self.0.borrow();
        let mut process = seat.process.borrow_mut();
        let is_new = matches!(seat.mode, Mode::Stops | Mode::Live) && seat.script.is_empty();
        if is_new && name.ends_with("tidegate_requests_total") {
            let times = 1 + i64::from(process.broken == Broken::OnceCounted);
            *process.metrics.entry(name).or_default() += by * times;
        }
        Ok(())
    }

    fn record_metric(&self, _id: MetricId, _value: u64) -> Result<(), HostError> {
        Ok(())
    }

    fn metric(&self, id: MetricId) -> Result<u64, HostError> {
        let name = self.metric_name(id);
        Ok(match self.call(Call::Value(name)) {
            Some(Answer::Value(value)) => value,
            _ => 1,
        })
    }

    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError> {
        let key = self.0.borrow().key(key);
        let mut answer = self.call(Call::Read(Rc::clone(&key)));
        let mut seat = self.0.borrow_mut();
        let is_stuck = seat.process.borrow().broken == Broken::Directives;
        if is_stuck && seat.vm > 0 && key.ends_with("/directives") {
            if seat.stale.is_none() && matches!(answer, Some(Answer::Shared(Some(_)))) {
                seat.stale.clone_from(&answer);
            }
            answer = seat.stale.clone().or(answer);
        }
        Ok(match answer {
            Some(Answer::Shared(Some((bytes, version)))) => Some(SharedValue {
                bytes: seat.bytes(&key, &bytes).into(),
                version,
            }),
            _ => None,
        })
    }

    fn set_shared(
        &self,
        key: &str,
        value: &[u8],
        expect: Expect,
    ) -> Result<WriteResult, HostError> {
        let seat = self.0.borrow();
        let key = seat.key(key);
        let value = Rc::from(seat.bytes(&key, value));
        drop(seat);
        Ok(match self.call(Call::Write(key, value, expect)) {
            Some(Answer::Written(false)) => WriteResult::Beaten,
            _ => WriteResult::Done,
        })
    }

    fn configuration(&self) -> Result<Vec<u8>, HostError> {
        Ok(Vec::new())
    }

    fn set_tick_period(&self, _period: Duration) -> Result<(), HostError> {
        Ok(())
    }

    fn log(&self, _level: LogLevel, _line: &str) -> Result<(), HostError> {
        Ok(())
    }
}

//! What the VMs of a process share, and one VM's way to it, call by call.
//!
//! A VM runs the filter's own code. It is stopped between two calls that others could see, and later goes on: its callbacks
//! are played again from its birth with the answers that they got, and the next call is a live one. So any order of the
//! calls of several VMs can be had, and what a VM is follows from what it was asked and answered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tidegate_core::Instant;
use tidegate_core::reply::LocalReply;
use tidegate_filter::api::{
    Expect, Headers, Host, HostError, LogLevel, MetricId, MetricKind, SharedValue, Stored,
    attribute,
};
use tidegate_filter::pairs;

/// What a model breaks on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    Nothing,
    /// The lease is written without compare.
    LeaseCompare,
    /// What all but one VM write as lease is lost, and they are told that it stands.
    LeaseAnswer,
    /// The table of places is never written.
    Places,
    /// The count of VMs is written without compare.
    SerialCompare,
    /// A count that is lowered while another VM counts stays as it was.
    AtomicGauge,
    /// Directives once read never change again.
    Directives,
    /// What a metric grew by is added twice.
    OnceCounted,
    /// No version of the module knows of another.
    Versions,
    /// A gauge that is wrong cannot be put right.
    Correction,
}

/// What all VMs share. Cheap to hash, so that states can be compared.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Process {
    pub(crate) broken: Broken,
    pub(crate) shared: BTreeMap<Rc<str>, (Rc<[u8]>, u32)>,
    /// Counts that workers share, and what metrics say of requests.
    pub(crate) metrics: BTreeMap<Rc<str>, i64>,
    /// Who changed the shared counts last.
    counted_by: usize,
    /// By VM: what it added to the count of requests in flight, the corrections of others' left out.
    pub(crate) counted: BTreeMap<usize, i64>,
    /// What happened since somebody looked.
    pub(crate) events: Vec<Event>,
}

/// What the invariants speak of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// `vm` wrote the lease over that one.
    Lease {
        vm: usize,
        before: Option<[u64; 2]>,
        after: [u64; 2],
    },
    /// It published what holds for all.
    Decided { vm: usize },
}

/// An answer of the process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Shared(Option<(Rc<[u8]>, u32)>),
    Written(bool),
    Value(u64),
    Changed,
}

/// Thrown to stop a VM before its next call.
pub(crate) struct Stop;

/// One VM during one play.
pub(crate) struct Seat {
    pub(crate) vm: usize,
    /// The wire version that it writes in its keys, when it is not this one's.
    pub(crate) version: u8,
    pub(crate) now: u64,
    pub(crate) status: &'static str,
    /// What it was answered before.
    pub(crate) script: VecDeque<Answer>,
    /// What it is answered now.
    pub(crate) answers: Vec<Answer>,
    /// Calls until it is stopped.
    pub(crate) calls: usize,
    pub(crate) is_live: bool,
    pub(crate) is_stopped: bool,
    pub(crate) process: Rc<RefCell<Process>>,
    metrics: Vec<Rc<str>>,
    /// Under [`Broken::Directives`], those that it read first.
    stale: Option<Answer>,
}

/// The host of the VM in that seat.
#[derive(Clone)]
pub(crate) struct Way(pub(crate) Rc<RefCell<Seat>>);

impl Process {
    pub(crate) fn new(broken: Broken) -> Self {
        Self {
            broken,
            shared: BTreeMap::new(),
            metrics: BTreeMap::new(),
            counted_by: usize::MAX,
            counted: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn metric(&self, name: &str) -> i64 {
        let found = self.metrics.iter().find(|(key, _)| key.ends_with(name));
        found.map_or(0, |(_, value)| *value)
    }

    fn write(&mut self, seat: &Seat, key: &str, bytes: &[u8], expect: Expect) -> bool {
        let before = self.shared.get(key);
        let version = before.map(|(_, version)| *version);
        let is_compared = match self.broken {
            Broken::LeaseCompare => !key.ends_with("/lease"),
            Broken::SerialCompare => !key.ends_with("/serial"),
            Broken::Versions if key.contains("/versions/") => return true,
            Broken::LeaseAnswer if seat.vm > 0 && key.ends_with("/lease") => return true,
            Broken::Places if key.ends_with("/workers") => return true,
            _ => true,
        };
        let fits = match expect {
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(expected),
            Expect::Anything => true,
        };
        if is_compared && !fits {
            return false;
        }
        if key.ends_with("/lease") {
            let before = before.and_then(|(bytes, _)| words(bytes));
            self.events.extend(words(bytes).map(|after| Event::Lease {
                vm: seat.vm,
                before,
                after,
            }));
        } else if key.ends_with("/directives") {
            self.events.push(Event::Decided { vm: seat.vm });
        }
        let value = (Rc::from(bytes), version.unwrap_or_default() + 1);
        self.shared.insert(Rc::from(key), value);
        true
    }

    fn count(&mut self, seat: &Seat, name: &Rc<str>, by: i64) {
        let is_raced = by < 0 && self.counted_by != seat.vm;
        self.counted_by = seat.vm;
        let mut is_correction = false;
        if name.ends_with("tidegate_in_flight") {
            let own = self.counted.entry(seat.vm).or_default();
            is_correction = *own + by < 0;
            *own += if is_correction { 0 } else { by };
        }
        let is_lost = match self.broken {
            Broken::AtomicGauge => is_raced,
            Broken::Correction => is_correction,
            _ => false,
        };
        if !is_lost {
            *self.metrics.entry(Rc::clone(name)).or_default() += by;
        }
    }
}

/// The two numbers of a lease: holder and end.
fn words(bytes: &[u8]) -> Option<[u64; 2]> {
    let (chunks, _) = bytes.as_chunks::<8>();
    let words: Vec<u64> = chunks
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    words.try_into().ok()
}

impl Seat {
    pub(crate) fn new(vm: usize, version: u8, process: Rc<RefCell<Process>>) -> Self {
        Self {
            vm,
            version,
            now: 0,
            status: "200",
            script: VecDeque::new(),
            answers: Vec::new(),
            calls: 0,
            is_live: false,
            is_stopped: false,
            process,
            metrics: Vec::new(),
            stale: None,
        }
    }

    fn key(&self, key: &str) -> String {
        let own = format!("tidegate/{}/", tidegate_core::WIRE_VERSION);
        key.replace(&own, &format!("tidegate/{}/", self.version))
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

impl Way {
    /// One call that others could see: answered as before, or now, or never.
    fn call(&self, act: impl FnOnce(&Seat, &mut Process) -> Answer) -> Option<Answer> {
        let mut seat = self.0.borrow_mut();
        if seat.is_stopped {
            return None;
        }
        if let Some(answer) = seat.script.pop_front() {
            return Some(answer);
        }
        if seat.calls == 0 {
            seat.is_stopped = true;
            drop(seat);
            std::panic::resume_unwind(Box::new(Stop));
        }
        seat.calls = seat.calls.saturating_sub(1);
        seat.is_live = true;
        let process = Rc::clone(&seat.process);
        let answer = act(&seat, &mut process.borrow_mut());
        seat.answers.push(answer.clone());
        Some(answer)
    }

    fn metric_name(&self, id: MetricId) -> Rc<str> {
        Rc::clone(&self.0.borrow().metrics[id.0 as usize])
    }
}

/// Whether workers count together in a metric.
fn is_common(name: &str) -> bool {
    name.ends_with("tidegate_in_flight") || name.ends_with("tidegate_probes_claimed")
}

impl Host for Way {
    fn now(&self) -> Result<Instant, HostError> {
        Ok(Instant::from_nanos(self.0.borrow().now))
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        Ok(Instant::from_nanos(self.0.borrow().now) + Duration::from_secs(1_000_000))
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Vec<u8>>, HostError> {
        Ok(match path {
            attribute::CLUSTER => Some(b"web".to_vec()),
            attribute::CODE_DETAILS => Some(b"via_upstream".to_vec()),
            _ => None,
        })
    }

    fn header(&self, _map: Headers, name: &str) -> Result<Option<Vec<u8>>, HostError> {
        let status = self.0.borrow().status.as_bytes().to_vec();
        Ok((name == ":status").then_some(status))
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
            self.call(|seat, process| {
                process.count(seat, &name, by);
                Answer::Changed
            });
            return Ok(());
        }
        // What nobody reads during a run, apart from what the invariants need, is not kept.
        let seat = self.0.borrow();
        let mut process = seat.process.borrow_mut();
        if seat.is_live && !seat.is_stopped && name.ends_with("tidegate_requests_total") {
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
        let answer = self.call(|_, process| {
            let value = process.metrics.get(&name).copied().unwrap_or_default();
            Answer::Value(value.cast_unsigned())
        });
        Ok(match answer {
            Some(Answer::Value(value)) => value,
            _ => 1,
        })
    }

    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError> {
        let key = self.0.borrow().key(key);
        let mut answer =
            self.call(|_, process| Answer::Shared(process.shared.get(key.as_str()).cloned()));
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
                bytes: seat.bytes(&key, &bytes),
                version,
            }),
            _ => None,
        })
    }

    fn set_shared(&self, key: &str, value: &[u8], expect: Expect) -> Result<Stored, HostError> {
        let key = self.0.borrow().key(key);
        let answer = self.call(|seat, process| {
            let value = seat.bytes(&key, value);
            Answer::Written(process.write(seat, &key, &value, expect))
        });
        Ok(match answer {
            Some(Answer::Written(false)) => Stored::Beaten,
            _ => Stored::Done,
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

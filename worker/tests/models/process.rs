//! What the VMs of a process share, and what it answers to a call of theirs.

use std::collections::BTreeMap;
use std::rc::Rc;

use tidegate_worker::api::Expect;

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
    /// Who changed the shared counts last, for [`Broken::AtomicGauge`]; kept otherwise, it would tell equal states apart.
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

/// A call that other VMs can see, or whose answer they decide.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Read(Rc<str>),
    Write(Rc<str>, Rc<[u8]>, Expect),
    /// Adds to a count.
    Count(Rc<str>, i64),
    /// Reads a count.
    Value(Rc<str>),
}

/// An answer of the process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Shared(Option<(Rc<[u8]>, u32)>),
    Written(bool),
    Value(u64),
    Changed,
}

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

    /// The answer to a call that changes nothing.
    pub(crate) fn look(&self, call: &Call) -> Option<Answer> {
        match call {
            Call::Read(key) => Some(Answer::Shared(self.shared.get(key).cloned())),
            Call::Value(name) => {
                let value = self.metrics.get(name).copied().unwrap_or_default();
                Some(Answer::Value(value.cast_unsigned()))
            }
            Call::Write(..) | Call::Count(..) => None,
        }
    }

    /// What comes of a VM's call.
    pub(crate) fn answer(&mut self, vm: usize, call: &Call) -> Answer {
        if let Some(answer) = self.look(call) {
            return answer;
        }
        match call {
            Call::Write(key, bytes, expect) => Answer::Written(self.write(vm, key, bytes, *expect)),
            Call::Count(name, by) => {
                self.count(vm, name, *by);
                Answer::Changed
            }
            Call::Read(_) | Call::Value(_) => unreachable!("it was answered"),
        }
    }

    fn write(&mut self, vm: usize, key: &Rc<str>, bytes: &Rc<[u8]>, expect: Expect) -> bool {
        let before = self.shared.get(key);
        let version = before.map(|(_, version)| *version);
        let is_compared = match self.broken {
            Broken::LeaseCompare => !key.ends_with("/lease"),
            Broken::SerialCompare => !key.ends_with("/serial"),
            Broken::Versions if key.contains("/versions/") => return true,
            Broken::LeaseAnswer if vm > 0 && key.ends_with("/lease") => return true,
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
            self.events
                .extend(words(bytes).map(|after| Event::Lease { vm, before, after }));
        } else if key.ends_with("/directives") {
            self.events.push(Event::Decided { vm });
        }
        let value = (Rc::clone(bytes), version.unwrap_or_default() + 1);
        self.shared.insert(Rc::clone(key), value);
        true
    }

    fn count(&mut self, vm: usize, name: &Rc<str>, by: i64) {
        let is_raced = by < 0 && self.counted_by != vm;
        if self.broken == Broken::AtomicGauge {
            self.counted_by = vm;
        }
        let mut is_correction = false;
        if name.ends_with("tidegate_in_flight") {
            let own = self.counted.entry(vm).or_default();
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

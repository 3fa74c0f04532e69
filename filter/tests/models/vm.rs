//! One VM of the filter: what was asked of it since its birth, and what it was answered.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::LazyLock;

use tidegate_core::classify::Length;
use tidegate_core::config::Config;
use tidegate_filter::plugin::Plugin;
use tidegate_filter::stream::{Next, Stream};

use crate::process::{Answer, Process, Seat, Stop, Way};

/// Quick to open and to try again.
static CONFIG: LazyLock<Config> = LazyLock::new(|| {
    config(
        r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"breaker":{"minOpen":"200ms","maxOpen":"400ms"}}"#,
    )
});
/// What is pushed.
static PUSHED: LazyLock<Config> = LazyLock::new(|| {
    config(
        r#"{"slo":{"latency":{"quantile":0.99,"target":"200ms"}},"breaker":{"minOpen":"100ms","maxOpen":"300ms"},"stance":"throughput"}"#,
    )
});

/// What is asked of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    /// To start.
    Start,
    /// A tick.
    Tick,
    /// A request comes.
    Arrive,
    /// Its oldest request is answered with this status.
    Answer(&'static str),
    /// The caller of its oldest request leaves.
    Leave,
    /// Another configuration.
    Push,
}

/// A callback, and what the process answered in it.
#[derive(Clone, Debug)]
struct Call {
    ask: Ask,
    at: u64,
    answers: Vec<Answer>,
}

/// One VM.
#[derive(Clone, Debug)]
pub(crate) struct Vm {
    pub(crate) number: usize,
    pub(crate) version: u8,
    calls: Vec<Rc<Call>>,
    /// Of all calls and answers.
    hash: u64,
    /// Whether the last callback returned.
    pub(crate) is_idle: bool,
    pub(crate) is_dead: bool,
    /// Requests that it let in and that have not ended.
    pub(crate) held: usize,
    /// Requests that it shed.
    pub(crate) shed: usize,
}

/// The VM at work.
pub(crate) struct Replica {
    way: Way,
    plugin: Option<Rc<RefCell<Plugin<Way>>>>,
    streams: VecDeque<Stream<Way>>,
    pub(crate) shed: usize,
    root: u32,
}

impl Vm {
    /// Nothing was asked of it yet.
    pub(crate) const fn new(number: usize, version: u8) -> Self {
        Self {
            number,
            version,
            calls: Vec::new(),
            hash: 0,
            is_idle: true,
            is_dead: false,
            held: 0,
            shed: 0,
        }
    }

    /// A number that differs for VMs that differ.
    pub(crate) fn key(&self, hasher: &mut DefaultHasher) {
        (self.number, self.hash, self.is_idle, self.is_dead).hash(hasher);
    }

    /// What its callback under way is, or its last.
    pub(crate) fn ask(&self) -> Option<Ask> {
        self.calls.last().map(|call| call.ask)
    }

    /// When that began.
    pub(crate) fn began(&self) -> u64 {
        self.calls.last().map_or(0, |call| call.at)
    }

    /// Begins a callback, and goes on with it for as many calls of the process.
    pub(crate) fn begin(&mut self, ask: Ask, at: u64, calls: usize, process: &mut Process) {
        assert!(self.is_idle && !self.is_dead, "one callback at a time");
        self.calls.push(Rc::new(Call {
            ask,
            at,
            answers: Vec::new(),
        }));
        self.hash = hash_of(&(self.hash, ask, at));
        self.go_on(calls, process);
    }

    /// Goes on with the callback under way.
    pub(crate) fn go_on(&mut self, calls: usize, process: &mut Process) {
        let shared = Rc::new(RefCell::new(std::mem::replace(
            process,
            Process::new(process.broken),
        )));
        let mut replica = Replica::new(self, Rc::clone(&shared));
        let Some((last, before)) = self.calls.split_last() else {
            return;
        };
        before.iter().for_each(|call| replica.replay(call));
        self.is_idle = replica.play(last, calls);
        let new: Vec<Answer> = replica.way.0.borrow_mut().answers.drain(..).collect();
        self.hash = hash_of(&(self.hash, &new));
        (self.held, self.shed) = (replica.streams.len(), replica.shed);
        let mut call = Call::clone(last);
        call.answers.extend(new);
        if let Some(place) = self.calls.last_mut() {
            *place = Rc::new(call);
        }
        replica.stop();
        *process = shared.replace(Process::new(process.broken));
    }

    /// The VM at work, idle, with all further calls live.
    pub(crate) fn wake(&self, process: Rc<RefCell<Process>>) -> Replica {
        let mut replica = Replica::new(self, process);
        self.calls.iter().for_each(|call| replica.replay(call));
        let mut seat = replica.way.0.borrow_mut();
        (seat.calls, seat.is_live) = (usize::MAX, true);
        drop(seat);
        replica
    }
}

impl Replica {
    fn new(vm: &Vm, process: Rc<RefCell<Process>>) -> Self {
        let seat = Seat::new(vm.number, vm.version, process);
        Self {
            way: Way(Rc::new(RefCell::new(seat))),
            plugin: None,
            streams: VecDeque::new(),
            shed: 0,
            root: 1,
        }
    }

    /// Plays a callback that returned.
    fn replay(&mut self, call: &Call) {
        {
            let mut seat = self.way.0.borrow_mut();
            seat.script = call.answers.iter().cloned().collect();
            seat.is_live = false;
        }
        self.ask(call.ask, call.at);
        assert!(self.way.0.borrow().script.is_empty(), "not the same again");
    }

    /// Plays what was done of a callback, and so many calls more. Answers whether it has returned then.
    fn play(&mut self, call: &Call, calls: usize) -> bool {
        {
            let mut seat = self.way.0.borrow_mut();
            seat.script = call.answers.iter().cloned().collect();
            seat.is_live = call.answers.is_empty();
            seat.calls = calls;
        }
        let (ask, at) = (call.ask, call.at);
        match catch_unwind(AssertUnwindSafe(|| self.ask(ask, at))) {
            Ok(()) => true,
            Err(stop) if stop.is::<Stop>() => false,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Does what is asked.
    pub(crate) fn ask(&mut self, ask: Ask, at: u64) {
        {
            let mut seat = self.way.0.borrow_mut();
            seat.now = at;
            if let Ask::Answer(status) = ask {
                seat.status = status;
            }
        }
        if ask == Ask::Start {
            let plugin = Plugin::new(self.way.clone(), "tidegate", CONFIG.clone(), self.root);
            self.plugin = Some(Rc::new(RefCell::new(plugin)));
            return;
        }
        let Some(plugin) = &self.plugin else {
            return;
        };
        match ask {
            Ask::Start => {}
            Ask::Tick => plugin.borrow_mut().tick(self.root),
            Ask::Arrive => {
                let mut stream = Stream::new(Rc::clone(plugin));
                match stream.on_request_headers(Length::HeadersOnly) {
                    Next::Continue => self.streams.push_back(stream),
                    Next::Answered => self.shed += 1,
                }
            }
            Ask::Answer(_) => {
                if let Some(mut stream) = self.streams.pop_front() {
                    stream.on_response_headers(Length::HeadersOnly);
                }
            }
            Ask::Leave => drop(self.streams.pop_front()),
            Ask::Push => {
                self.root += 1;
                plugin.borrow_mut().reconfigure(PUSHED.clone(), self.root);
            }
        }
    }

    /// How many requests it has.
    pub(crate) fn held(&self) -> usize {
        self.streams.len()
    }

    /// Lets nothing of it be seen from now on: a VM that is gone ends no request.
    pub(crate) fn stop(self) {
        self.way.0.borrow_mut().is_stopped = true;
    }
}

fn config(text: &str) -> Config {
    Config::from_json(text.as_bytes()).unwrap()
}

pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

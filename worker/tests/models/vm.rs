//! One VM of the filter at work: its callbacks are played again from its birth, with the answers that it got.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::LazyLock;

use tidegate_core::classify::Length;
use tidegate_core::config::Config;
use tidegate_worker::plugin::PluginObject;
use tidegate_worker::stream::{Next, Stream};

use crate::process::{Answer, Call, Process};
use crate::way::{Mode, Seat, Stop, Way};

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
pub(crate) struct Callback {
    pub(crate) ask: Ask,
    pub(crate) at: u64,
    pub(crate) answers: Vec<Answer>,
}

/// The VM at work.
pub(crate) struct Replica {
    way: Way,
    plugin: Option<Rc<RefCell<PluginObject<Way>>>>,
    streams: VecDeque<Stream<Rc<RefCell<PluginObject<Way>>>>>,
    pub(crate) shed: usize,
    root: u32,
}

impl Replica {
    /// Nothing was asked of it yet.
    pub(crate) fn new(vm: usize, version: u8, process: Rc<RefCell<Process>>) -> Self {
        let seat = Seat::new(vm, version, process);
        Self {
            way: Way(Rc::new(RefCell::new(seat))),
            plugin: None,
            streams: VecDeque::new(),
            shed: 0,
            root: 1,
        }
    }

    /// Plays a callback that returned.
    pub(crate) fn replay(&mut self, callback: &Callback) {
        self.way.0.borrow_mut().script = callback.answers.iter().cloned().collect();
        self.ask(callback.ask, callback.at);
        assert!(self.way.0.borrow().script.is_empty(), "not the same again");
    }

    /// Plays a callback up to the call that was not answered yet. Answers that call; nothing when the callback returns.
    pub(crate) fn play(&mut self, callback: &Callback) -> Option<Call> {
        {
            let mut seat = self.way.0.borrow_mut();
            seat.script = callback.answers.iter().cloned().collect();
            seat.mode = Mode::Stops;
        }
        let (ask, at) = (callback.ask, callback.at);
        match catch_unwind(AssertUnwindSafe(|| self.ask(ask, at))) {
            Ok(()) => None,
            Err(stop) if stop.is::<Stop>() => self.way.0.borrow_mut().call.take(),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// From now on the process answers all calls.
    pub(crate) fn live(&mut self) {
        self.way.0.borrow_mut().mode = Mode::Live;
    }

    /// Everything that decides what it does, between two callbacks: equal for replicas that do the same from then on.
    /// Requests that it shed are left out, as only how their number grows is looked at.
    pub(crate) fn shows(&self) -> String {
        let Self {
            way,
            plugin,
            streams,
            shed: _,
            root,
        } = self;
        format!("{:?}", (way, plugin, streams, root))
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
            let plugin = PluginObject::new(self.way.clone(), "tidegate", CONFIG.clone(), self.root);
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
        self.way.0.borrow_mut().mode = Mode::Gone;
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

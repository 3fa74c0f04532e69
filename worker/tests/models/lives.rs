//! All that VMs can come to, each life played once.
//!
//! What a VM does next follows from what it was asked and answered. States differ mostly in the order in which VMs were
//! answered, so few lives are met in many states: a life is played when it is first met, and looked up from then on.
//! Lives of a VM between two callbacks are one when the plugin and its requests are the same to the last field.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::process::{Answer, Broken, Call, Process};
use crate::vm::{Ask, Callback, Replica, hash_of};

/// What a VM is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Heard {
    /// A callback, at this time.
    Ask(Ask, u64),
    /// The answer to its call.
    Answer(Answer),
}

/// What a VM has come to.
#[derive(Debug)]
pub(crate) struct Life {
    /// What it was before, and was told then. Nothing for one of which nothing was asked yet.
    from: Option<(usize, Heard)>,
    vm: usize,
    version: u8,
    /// The call that it waits to be answered. Nothing between callbacks.
    pub(crate) call: Option<Call>,
    /// When the callback under way began, or the last.
    pub(crate) began: u64,
    /// Requests that it admitted and that have not ended.
    pub(crate) held: usize,
}

impl Life {
    pub(crate) const fn is_idle(&self) -> bool {
        self.call.is_none()
    }

    pub(crate) const fn is_started(&self) -> bool {
        self.from.is_some()
    }
}

/// What comes of telling a VM something.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// The number of the life that it has then.
    pub(crate) life: usize,
    /// What it added to metrics that no VM reads.
    pub(crate) metrics: Vec<(Rc<str>, i64)>,
}

/// The lives met so far, by their number.
#[derive(Debug)]
pub(crate) struct Lives {
    broken: Broken,
    /// Whether those that are the same count as one.
    merges: bool,
    lives: Vec<Life>,
    turns: HashMap<(usize, Heard), Turn>,
    /// By what shows of them, those between callbacks.
    idle: HashMap<u64, usize>,
}

impl Lives {
    /// Of VMs of these versions, of which nothing was asked yet: the first lives are theirs.
    pub(crate) fn new(versions: &[u8], broken: Broken, merges: bool) -> Self {
        let unborn = versions.iter().enumerate().map(|(vm, version)| Life {
            from: None,
            vm,
            version: *version,
            call: None,
            began: 0,
            held: 0,
        });
        Self {
            broken,
            merges,
            lives: unborn.collect(),
            turns: HashMap::new(),
            idle: HashMap::new(),
        }
    }

    pub(crate) fn get(&self, life: usize) -> &Life {
        &self.lives[life]
    }

    /// A callback begins.
    pub(crate) fn ask(&mut self, life: usize, ask: Ask, at: u64) -> Turn {
        assert!(self.get(life).is_idle(), "one callback at a time");
        self.hear(life, Heard::Ask(ask, at))
    }

    /// The call that it waits for is answered.
    pub(crate) fn answer(&mut self, life: usize, answer: Answer) -> Turn {
        self.hear(life, Heard::Answer(answer))
    }

    fn hear(&mut self, life: usize, heard: Heard) -> Turn {
        let told = (life, heard);
        if let Some(turn) = self.turns.get(&told) {
            return turn.clone();
        }
        let turn = self.play(told.clone());
        self.turns.insert(told, turn.clone());
        turn
    }

    fn play(&mut self, told: (usize, Heard)) -> Turn {
        let Life { vm, version, .. } = self.lives[told.0];
        let mut callbacks = self.callbacks(told.0);
        let began = match &told.1 {
            Heard::Ask(_, at) => *at,
            Heard::Answer(_) => self.get(told.0).began,
        };
        add(&mut callbacks, &told.1);
        // Of its own: nothing is called, and what it adds to metrics is looked at.
        let process = Rc::new(RefCell::new(Process::new(self.broken)));
        let mut replica = Replica::new(vm, version, Rc::clone(&process));
        let Some((last, before)) = callbacks.split_last() else {
            unreachable!("it was told something");
        };
        before.iter().for_each(|callback| replica.replay(callback));
        let call = replica.play(last);
        let number = self.lives.len();
        let life = if call.is_none() && self.merges {
            *self.idle.entry(hash_of(&replica.shows())).or_insert(number)
        } else {
            number
        };
        if life == number {
            self.lives.push(Life {
                from: Some(told),
                vm,
                version,
                call,
                began,
                held: replica.held(),
            });
        }
        replica.stop();
        let metrics = std::mem::take(&mut process.borrow_mut().metrics);
        Turn {
            life,
            metrics: metrics.into_iter().collect(),
        }
    }

    /// The VM at work, between callbacks, with all further calls live.
    pub(crate) fn wake(&self, life: usize, process: Rc<RefCell<Process>>) -> Replica {
        let Life { vm, version, .. } = self.lives[life];
        let mut replica = Replica::new(vm, version, process);
        let callbacks = self.callbacks(life);
        callbacks
            .iter()
            .for_each(|callback| replica.replay(callback));
        replica.live();
        replica
    }

    /// What it was asked and answered.
    fn callbacks(&self, life: usize) -> Vec<Callback> {
        let mut told = Vec::new();
        let mut next = &self.get(life).from;
        while let Some((life, heard)) = next {
            told.push(heard);
            next = &self.get(*life).from;
        }
        let mut callbacks = Vec::new();
        told.iter()
            .rev()
            .for_each(|heard| add(&mut callbacks, heard));
        callbacks
    }
}

fn add(callbacks: &mut Vec<Callback>, heard: &Heard) {
    match heard {
        Heard::Ask(ask, at) => callbacks.push(Callback {
            ask: *ask,
            at: *at,
            answers: Vec::new(),
        }),
        Heard::Answer(answer) => {
            if let Some(last) = callbacks.last_mut() {
                last.answers.push(answer.clone());
            }
        }
    }
}

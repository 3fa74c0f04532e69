//! Workers of one proxy: any order of their calls of the process, with crashes, new VMs, pushes, and time.

use std::cell::RefCell;
use std::rc::Rc;

use crate::explore::Model;
use crate::lives::{Life, Lives, Turn};
use crate::process::{Broken, Process};
use crate::rest::Rest;
use crate::vm::{Ask, hash_of};
use crate::watch::Watch;

pub(crate) const MILLI: u64 = 1_000_000;

/// How much of everything may happen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// Callbacks of each kind, by VM.
    pub(crate) asks: Vec<Vec<(Ask, u8)>>,
    /// Steps of time that may be taken, milliseconds, in any order.
    pub(crate) times: Vec<(u64, u8)>,
    /// VMs that may crash.
    pub(crate) crashes: u8,
}

/// Some workers.
pub(crate) struct Workers {
    pub(crate) broken: Broken,
    /// The wire version of each.
    pub(crate) versions: Vec<u8>,
    /// What happened before, undisturbed: milliseconds, VM, callback.
    pub(crate) before: Vec<(u64, usize, Ask)>,
    pub(crate) bounds: Bounds,
    /// What is asked of a state in which no callback is under way.
    pub(crate) rest: Rest,
    /// Whether lives that are the same count as one.
    pub(crate) merges: bool,
    /// What the VMs can come to.
    pub(crate) lives: RefCell<Lives>,
}

/// A moment of them.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) now: u64,
    pub(crate) vms: Vec<Vm>,
    /// Shared by states between which there was no write.
    pub(crate) process: Rc<Process>,
    /// Of the process.
    hash: u64,
    left: Rc<Bounds>,
    watch: Watch,
}

/// A VM in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Vm {
    /// What it has come to, by its number among the lives.
    Alive(usize),
    /// What it had come to plays no part any more.
    Dead,
}

/// What can happen.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A callback begins; with its first call of the process.
    Begin(usize, Ask),
    /// The one under way continues, by one call.
    GoOn(usize),
    Crash(usize),
    /// Milliseconds pass.
    Pass(u64),
}

impl Moment {
    /// What the process keeps of a VM's turn. Answers the life that the VM has then.
    fn take(&mut self, turn: Turn) -> usize {
        for (name, by) in turn.metrics {
            *Rc::make_mut(&mut self.process)
                .metrics
                .entry(name)
                .or_default() += by;
            self.hash = hash_of(&self.process);
        }
        turn.life
    }
}

impl Workers {
    /// Begins a callback, or continues with the one under way, for as many calls of the process.
    fn perform(&self, moment: &mut Moment, number: usize, ask: Option<Ask>, calls: usize) {
        let Vm::Alive(mut life) = moment.vms[number] else {
            return;
        };
        let mut lives = self.lives.borrow_mut();
        if let Some(ask) = ask {
            moment.watch.arrived += i64::from(ask == Ask::Arrive);
            let turn = lives.ask(life, ask, moment.now);
            life = moment.take(turn);
        }
        for _ in 0..calls {
            let Life { call, began, .. } = lives.get(life);
            let Some(call) = call else {
                break;
            };
            let answer = moment.process.look(call).unwrap_or_else(|| {
                let process = Rc::make_mut(&mut moment.process);
                let answer = process.answer(number, call);
                for event in std::mem::take(&mut process.events) {
                    moment.watch.see(&event, self.versions[number], *began);
                }
                moment.hash = hash_of(&moment.process);
                answer
            });
            life = moment.take(lives.answer(life, answer));
        }
        moment.vms[number] = Vm::Alive(life);
    }

    /// A number that is equal for states in which the same can be seen from outside of the VMs: what they share, which call
    /// each waits for, and what it holds.
    pub(crate) fn outside(&self, moment: &Moment) -> u64 {
        let lives = self.lives.borrow();
        let vms = Self::alive(moment).map(|(number, life)| {
            let life = lives.get(life);
            (number, format!("{:?}", life.call), life.held)
        });
        let vms: Vec<_> = vms.collect();
        let shared = (moment.now, moment.hash, &moment.left, &moment.watch);
        hash_of(&(shared, vms))
    }

    /// The numbers of the VMs that did not crash, and their lives.
    pub(crate) fn alive(moment: &Moment) -> impl Iterator<Item = (usize, usize)> {
        let vms = moment.vms.iter().enumerate();
        vms.filter_map(|(number, vm)| match vm {
            Vm::Alive(life) => Some((number, *life)),
            Vm::Dead => None,
        })
    }
}

impl Model for Workers {
    type State = Moment;
    type Action = Action;

    fn first(&self) -> Moment {
        *self.lives.borrow_mut() = Lives::new(&self.versions, self.broken, self.merges);
        let process = Rc::new(Process::new(self.broken));
        let mut moment = Moment {
            now: 0,
            hash: hash_of(&process),
            process,
            left: Rc::new(self.bounds.clone()),
            watch: Watch::new(self.versions.len()),
            vms: (0..self.versions.len()).map(Vm::Alive).collect(),
        };
        for (millis, number, ask) in &self.before {
            moment.now = millis * MILLI;
            self.perform(&mut moment, *number, Some(*ask), usize::MAX);
        }
        moment
    }

    fn actions(&self, moment: &Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        let lives = self.lives.borrow();
        for (number, life) in Self::alive(moment) {
            let life = lives.get(life);
            if life.is_idle() {
                let asks = moment.left.asks[number]
                    .iter()
                    .filter(|(_, left)| *left > 0);
                let asks = asks.map(|(ask, _)| *ask).filter(|ask| match ask {
                    Ask::Start => !life.is_started(),
                    Ask::Answer(_) | Ask::Leave => life.held > 0,
                    Ask::Tick | Ask::Arrive | Ask::Push => life.is_started(),
                });
                actions.extend(asks.map(|ask| Action::Begin(number, ask)));
            } else {
                actions.push(Action::GoOn(number));
            }
            if moment.left.crashes > 0 && life.is_started() {
                actions.push(Action::Crash(number));
            }
        }
        let times = moment.left.times.iter().filter(|(_, left)| *left > 0);
        actions.extend(times.map(|(millis, _)| Action::Pass(*millis)));
        actions
    }

    fn step(&self, moment: &Moment, action: &Action) -> Moment {
        let mut next = moment.clone();
        match *action {
            Action::Begin(number, ask) => {
                let asks = &mut Rc::make_mut(&mut next.left).asks[number];
                if let Some((_, left)) = asks.iter_mut().find(|(other, _)| *other == ask) {
                    *left -= 1;
                }
                self.perform(&mut next, number, Some(ask), 1);
            }
            Action::GoOn(number) => self.perform(&mut next, number, None, 1),
            Action::Crash(number) => {
                let left = Rc::make_mut(&mut next.left);
                left.crashes -= 1;
                // What can no longer happen or is not read any more does not tell states apart.
                left.asks[number].clear();
                next.vms[number] = Vm::Dead;
                next.watch.late[number] = 0;
                Rc::make_mut(&mut next.process).counted.remove(&number);
                next.hash = hash_of(&next.process);
            }
            Action::Pass(millis) => {
                next.now += millis * MILLI;
                let times = &mut Rc::make_mut(&mut next.left).times;
                if let Some((_, left)) = times.iter_mut().find(|(other, _)| *other == millis) {
                    *left -= 1;
                }
            }
        }
        next
    }

    fn key(&self, moment: &Moment) -> u64 {
        let Moment {
            now,
            vms,
            process: _,
            hash,
            left,
            watch,
        } = moment;
        hash_of(&(now, vms, hash, left, watch))
    }

    fn check(&self, moment: &Moment) -> Result<(), String> {
        let watch = &moment.watch;
        if let Some(wrong) = &watch.wrong {
            return Err(wrong.clone());
        }
        let published = moment.process.metric("tidegate_requests_total");
        if published > watch.arrived {
            return Err(format!(
                "{published} of {} requests were counted",
                watch.arrived
            ));
        }
        let lives = self.lives.borrow();
        let mut is_still = true;
        for (number, life) in Self::alive(moment) {
            let life = lives.get(life);
            if !life.is_idle() {
                is_still = false;
                continue;
            }
            let counted = moment.process.counted.get(&number);
            let counted = counted.copied().unwrap_or_default();
            if counted != i64::try_from(life.held).unwrap_or(i64::MAX) {
                let held = life.held;
                return Err(format!(
                    "vm {number} has {held} requests and counts {counted}"
                ));
            }
        }
        drop(lives);
        if is_still {
            self.check_rest(moment)?;
        }
        Ok(())
    }
}

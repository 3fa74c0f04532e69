//! Workers of one proxy: any order of their calls of the process, with crashes, new VMs, pushes, and time.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use tidegate_core::{Slice, WIRE_VERSION};

use crate::explore::Model;
use crate::process::{Broken, Event, Process};
use crate::vm::{Ask, Replica, Vm, hash_of};

const MILLI: u64 = 1_000_000;
/// So long does a lease last after each tick of its holder.
const LEASE: u64 = 500 * MILLI;
const TICK: u64 = 100 * MILLI;

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
}

/// What must come of a state when nothing more goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Rounds until there is one leader, each worker is heard, and no gate is closed without a reason.
    pub(crate) rounds: u32,
    /// Rounds until a gauge is right that a dead VM left wrong.
    pub(crate) reconciled: u32,
}

/// A moment of them.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    now: u64,
    vms: Vec<Vm>,
    process: Process,
    left: Bounds,
    watch: Watch,
}

/// What can happen.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A callback begins; with its first call of the process.
    Begin(usize, Ask),
    /// The one under way goes on, by one call.
    GoOn(usize),
    Crash(usize),
    /// Milliseconds pass.
    Pass(u64),
}

/// What the invariants need to remember.
#[derive(Clone, Debug, Default, Hash)]
struct Watch {
    /// The holder of the lease of each version, by VM.
    holders: Vec<(u8, usize)>,
    /// By VM: decisions since it lost the lease; one that never had it has made all it may.
    late: Vec<u8>,
    arrived: i64,
    wrong: Option<String>,
}

impl Watch {
    fn see(&mut self, event: &Event, vm: &Vm, began: u64) {
        match event {
            Event::Lease {
                vm: number,
                before,
                after,
            } => {
                let [holder, _] = *after;
                if let Some([other, until]) = before
                    && *other != holder
                    && began < *until
                    && until - began <= LEASE
                {
                    self.wrong = Some(format!("vm {number} took a lease that another held"));
                }
                let held = self
                    .holders
                    .iter_mut()
                    .find(|(version, _)| *version == vm.version);
                match held {
                    Some(held) => held.1 = *number,
                    None => self.holders.push((vm.version, *number)),
                }
                self.late[*number] = 0;
            }
            Event::Decided { vm: number } => {
                if !self.holders.contains(&(vm.version, *number)) {
                    self.late[*number] += 1;
                }
                if self.late[*number] > 1 {
                    self.wrong = Some(format!("vm {number} decides again although another leads"));
                }
            }
        }
    }
}

impl Workers {
    fn perform(&self, moment: &mut Moment, number: usize, ask: Option<Ask>, calls: usize) {
        let Moment {
            now,
            vms,
            process,
            watch,
            ..
        } = moment;
        let vm = &mut vms[number];
        match ask {
            Some(ask) => {
                watch.arrived += i64::from(ask == Ask::Arrive);
                vm.begin(ask, *now, calls, process);
            }
            None => vm.go_on(calls, process),
        }
        let began = vm.began();
        for event in std::mem::take(&mut process.events) {
            watch.see(&event, vm, began);
        }
    }

    /// The VMs at work on one process.
    fn wake(&self, moment: &Moment) -> (Rc<RefCell<Process>>, Vec<(usize, Replica)>) {
        let process = Rc::new(RefCell::new(moment.process.clone()));
        let live = moment
            .vms
            .iter()
            .filter(|vm| !vm.is_dead && vm.ask().is_some());
        let awake = live.map(|vm| (vm.number, vm.wake(Rc::clone(&process))));
        let awake = awake.collect();
        (process, awake)
    }

    /// One tick of all, and, if asked for, a good request each. Answers who decided, and who shed.
    fn round(
        &self,
        awake: &mut [(usize, Replica)],
        process: &Rc<RefCell<Process>>,
        now: u64,
        has_traffic: bool,
    ) -> (Vec<usize>, Vec<usize>) {
        let mut shedding = Vec::new();
        for (number, replica) in awake.iter_mut() {
            if has_traffic {
                let shed = replica.shed;
                let held = replica.held();
                replica.ask(Ask::Arrive, now);
                while replica.held() > held {
                    replica.ask(Ask::Answer("200"), now + MILLI);
                }
                shedding.extend((replica.shed > shed).then_some(*number));
            }
            replica.ask(Ask::Tick, now + 2 * MILLI);
        }
        let events = std::mem::take(&mut process.borrow_mut().events);
        let deciding = events.iter().filter_map(|event| match event {
            Event::Decided { vm } => Some(*vm),
            _ => None,
        });
        (deciding.collect(), shedding)
    }

    fn check_rest(&self, moment: &Moment) -> Result<(), String> {
        let (process, mut awake) = self.wake(moment);
        if awake.is_empty() {
            return Ok(());
        }
        let mut now = moment.now;
        let mut last = (Vec::new(), Vec::new());
        let mut decisions = 0;
        for round in 0..self.rest.rounds {
            now += TICK;
            last = self.round(&mut awake, &process, now, true);
            let is_settled = round + 5 >= self.rest.rounds;
            decisions += usize::from(is_settled) * last.0.len();
            let versions = self.versions_awake(&awake);
            if is_settled && last.0.len() > versions {
                return Err(format!("vms {:?} decide in one round", last.0));
            }
        }
        if decisions == 0 {
            return Err(format!("nobody decides after {} rounds", self.rest.rounds));
        }
        if !last.1.is_empty() {
            let rounds = self.rest.rounds;
            return Err(format!(
                "vms {:?} shed a good upstream's requests after {rounds} rounds",
                last.1
            ));
        }
        self.check_places(&process.borrow(), awake.len())?;
        let is_right = |held: usize| {
            let count = process.borrow().metric("tidegate_in_flight");
            if i64::try_from(held) == Ok(count) {
                return Ok(());
            }
            Err(format!(
                "{held} requests are in flight, and the count says {count}"
            ))
        };
        let held = awake.iter().map(|(_, replica)| replica.held()).sum();
        if moment.vms.iter().any(|vm| vm.is_dead) {
            for _ in 0..self.rest.reconciled {
                if is_right(held).is_ok() {
                    break;
                }
                now += TICK;
                self.round(&mut awake, &process, now, false);
            }
        }
        is_right(held)?;
        for (_, replica) in &mut awake {
            while replica.held() > 0 {
                replica.ask(Ask::Leave, now + 3 * MILLI);
            }
        }
        is_right(0)?;
        for (_, replica) in awake {
            replica.stop();
        }
        Ok(())
    }

    fn versions_awake(&self, awake: &[(usize, Replica)]) -> usize {
        let mut versions: Vec<u8> = awake.iter().map(|(vm, _)| self.versions[*vm]).collect();
        versions.sort_unstable();
        versions.dedup();
        versions.len()
    }

    /// Every worker has a place, and one only; where it is, its slice is.
    fn check_places(&self, process: &Process, workers: usize) -> Result<(), String> {
        let mut placed = 0;
        for version in [WIRE_VERSION, WIRE_VERSION + 1] {
            let prefix = format!("tidegate/{version}/");
            let own = |ending: &str| {
                let mut shared = process.shared.iter();
                let found =
                    shared.find(|(key, _)| key.starts_with(&prefix) && key.ends_with(ending));
                found.map(|(_, (bytes, _))| Rc::clone(bytes))
            };
            let table = own("/workers").unwrap_or_default();
            let (places, _) = table.as_chunks::<8>();
            let mut seen = Vec::new();
            for (place, worker) in places.iter().enumerate() {
                let worker = u64::from_le_bytes(*worker);
                let slice = own(&format!("/slice/{place}")).unwrap_or_default();
                let Ok(slice) = Slice::decode(&*slice) else {
                    continue;
                };
                if worker == slice.worker && !seen.contains(&worker) {
                    seen.push(worker);
                }
            }
            placed += seen.len();
        }
        if placed < workers {
            return Err(format!(
                "{placed} of {workers} workers have a place of their own"
            ));
        }
        Ok(())
    }
}

impl Model for Workers {
    type State = Moment;
    type Action = Action;

    fn first(&self) -> Moment {
        let vms: Vec<Vm> = self
            .versions
            .iter()
            .enumerate()
            .map(|(number, version)| Vm::new(number, *version))
            .collect();
        let mut moment = Moment {
            now: 0,
            process: Process::new(self.broken),
            left: self.bounds.clone(),
            watch: Watch {
                late: vec![1; vms.len()],
                ..Watch::default()
            },
            vms,
        };
        for (millis, number, ask) in &self.before {
            moment.now = millis * MILLI;
            self.perform(&mut moment, *number, Some(*ask), usize::MAX);
        }
        moment
    }

    fn actions(&self, moment: &Moment) -> Vec<Action> {
        let mut actions = Vec::new();
        for vm in moment.vms.iter().filter(|vm| !vm.is_dead) {
            let number = vm.number;
            if !vm.is_idle {
                actions.push(Action::GoOn(number));
            } else {
                let asks = moment.left.asks[number]
                    .iter()
                    .filter(|(_, left)| *left > 0);
                let asks = asks.map(|(ask, _)| *ask).filter(|ask| match ask {
                    Ask::Start => vm.ask().is_none(),
                    Ask::Answer(_) | Ask::Leave => vm.held > 0,
                    Ask::Tick | Ask::Arrive | Ask::Push => vm.ask().is_some(),
                });
                actions.extend(asks.map(|ask| Action::Begin(number, ask)));
            }
            if moment.left.crashes > 0 && vm.ask().is_some() {
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
                let asks = &mut next.left.asks[number];
                if let Some((_, left)) = asks.iter_mut().find(|(other, _)| *other == ask) {
                    *left -= 1;
                }
                self.perform(&mut next, number, Some(ask), 1);
            }
            Action::GoOn(number) => self.perform(&mut next, number, None, 1),
            Action::Crash(number) => {
                next.left.crashes -= 1;
                next.vms[number].is_dead = true;
            }
            Action::Pass(millis) => {
                next.now += millis * MILLI;
                let times = &mut next.left.times;
                if let Some((_, left)) = times.iter_mut().find(|(other, _)| *other == millis) {
                    *left -= 1;
                }
            }
        }
        next
    }

    fn key(&self, moment: &Moment) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Moment {
            now,
            vms,
            process,
            left,
            watch,
        } = moment;
        vms.iter().for_each(|vm| vm.key(&mut hasher));
        hash_of(&(now, process, left, watch, hasher.finish()))
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
        let live = || moment.vms.iter().filter(|vm| !vm.is_dead);
        for vm in live().filter(|vm| vm.is_idle) {
            let counted = moment.process.counted.get(&vm.number);
            let counted = counted.copied().unwrap_or_default();
            if counted != i64::try_from(vm.held).unwrap_or(i64::MAX) {
                let held = vm.held;
                return Err(format!(
                    "vm {} has {held} requests and counts {counted}",
                    vm.number
                ));
            }
        }
        if live().all(|vm| vm.is_idle) {
            self.check_rest(moment)?;
        }
        Ok(())
    }
}

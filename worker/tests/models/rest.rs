//! What must come of a state in which no callback is under way, when nothing more goes wrong.

use std::cell::RefCell;
use std::rc::Rc;

use tidegate_core::{Slice, WIRE_VERSION};

use crate::process::{Event, Process};
use crate::vm::{Ask, Replica};
use crate::workers::{MILLI, Moment, Vm, Workers};

const TICK: u64 = 100 * MILLI;

/// What must come of a state when nothing more goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Rounds until there is one leader, each worker is heard, and no gate is closed without a reason.
    pub(crate) rounds: u32,
    /// Rounds until a gauge is right that a dead VM left wrong.
    pub(crate) reconciled: u32,
}

impl Workers {
    /// The VMs at work on one process.
    fn wake(&self, moment: &Moment) -> (Rc<RefCell<Process>>, Vec<(usize, Replica)>) {
        let process = Rc::new(RefCell::new(Process::clone(&moment.process)));
        let lives = self.lives.borrow();
        let started = Self::alive(moment).filter(|(_, life)| lives.get(*life).is_started());
        let awake = started.map(|(number, life)| (number, lives.wake(life, Rc::clone(&process))));
        let awake = awake.collect();
        (process, awake)
    }

    /// One tick of all, and, if asked for, a good request each. Returns which workers decided, and which shed.
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

    /// Plays the rounds, and says what is wrong after them.
    pub(crate) fn check_rest(&self, moment: &Moment) -> Result<(), String> {
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
            return Err(format!(
                "no worker decides after {} rounds",
                self.rest.rounds
            ));
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
        if moment.vms.contains(&Vm::Dead) {
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

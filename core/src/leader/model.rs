//! Plays every order in which two workers can ask, publish and crash, and two leaders can merge: no leader counts a request
//! twice, and no published request is lost.

use core::time::Duration;

use super::{Leader, MergedReports};
use crate::config::{Config, MINIMAL_EXAMPLE};
use crate::counters::Unshared;
use crate::engine::{Decision, Engine};
use crate::exchange::Slice;
use crate::outcome::Outcome;
use crate::request::GivenRequest;
use crate::time::Instant;

/// Actions in a story.
const LENGTH: u32 = 6;
/// Time between two actions: some rounds wait for late workers, some do not.
const STEP: Duration = Duration::from_millis(90);

#[derive(Clone, Copy, Debug)]
enum Action {
    /// A worker serves a request.
    Ask(usize),
    /// It overwrites its slice.
    Publish(usize),
    /// A leader merges the published slices.
    Merge(usize),
    /// A worker's VM crashes, and another one takes its place.
    Crash(usize),
}

const ACTIONS: [Action; 7] = [
    Action::Ask(0),
    Action::Ask(1),
    Action::Publish(0),
    Action::Publish(1),
    Action::Merge(0),
    Action::Merge(1),
    Action::Crash(1),
];

struct World {
    now: Instant,
    workers: Vec<Engine>,
    born: u64,
    slices: Vec<Slice<'static>>,
    leaders: [Leader; 2],
    counted: [u64; 2],
    asked: u64,
    /// Of those, not published yet, by worker; lost when the worker crashes.
    unpublished: [u64; 2],
    lost: u64,
    /// A deliberate fault: leaders forget earlier reports.
    forgets: bool,
}

impl World {
    fn new(forgets: bool) -> Self {
        let now = Instant::ZERO;
        let mut world = Self {
            now,
            workers: vec![engine(1, now), engine(2, now)],
            born: 2,
            slices: Vec::new(),
            leaders: [Leader::new(now), Leader::new(now)],
            counted: [0; 2],
            asked: 0,
            unpublished: [0; 2],
            lost: 0,
            forgets,
        };
        world.now = now + STEP;
        world.publish(0);
        world.publish(1);
        world
    }

    fn act(&mut self, action: Action) {
        self.now = self.now + STEP;
        match action {
            Action::Ask(worker) => self.ask(worker),
            Action::Publish(worker) => self.publish(worker),
            Action::Merge(leader) => self.merge(leader),
            Action::Crash(worker) => {
                self.born += 1;
                self.workers[worker] = engine(self.born, self.now);
                self.lost += core::mem::take(&mut self.unpublished[worker]);
            }
        }
    }

    fn ask(&mut self, worker: usize) {
        let engine = &mut self.workers[worker];
        let upstream = engine.upstream("web", None, self.now);
        let decision = engine.admit(
            upstream,
            &mut GivenRequest::default(),
            &mut Unshared,
            self.now,
        );
        let Decision::Admit(permit) = decision else {
            panic!("there is room");
        };
        engine.complete(permit, Outcome::Success, &mut Unshared, self.now);
        self.asked += 1;
        self.unpublished[worker] += 1;
    }

    fn publish(&mut self, worker: usize) {
        let engine = &mut self.workers[worker];
        engine.tick(&mut Unshared, self.now);
        let slice = engine.slice(self.now);
        self.slices.retain(|other| other.worker != slice.worker);
        self.slices.push(slice);
        self.unpublished[worker] = 0;
    }

    fn merge(&mut self, number: usize) {
        let leader = &mut self.leaders[number];
        let Some(mut walk) = leader.begin(&self.slices, self.now) else {
            return;
        };
        while let Some(upstream) = walk.next() {
            if self.forgets {
                let led = leader.led.values_mut();
                led.for_each(|place| place.led.controller.seen.clear());
            }
            let mut round = MergedReports::empty();
            if leader.merge((&mut walk, &mut round), upstream, 10, || None) {
                self.counted[number] += round.arrivals();
            }
        }
    }

    /// Publishes and merges everything; then the counts must match the requests.
    fn settle(&mut self) -> Result<(), String> {
        for worker in 0..2 {
            self.publish(worker);
        }
        self.now = self.now + Duration::from_millis(300);
        for leader in 0..2 {
            self.merge(leader);
            let counted = self.counted[leader];
            let Self { asked, lost, .. } = *self;
            if counted > asked || counted < asked - lost {
                return Err(format!(
                    "leader {leader} counted {counted} of {asked}, {lost} lost"
                ));
            }
        }
        Ok(())
    }
}

fn engine(number: u64, now: Instant) -> Engine {
    let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
    Engine::of_many(config, now, number)
}

/// Plays all stories. Returns their number, or the first story that fails.
fn play_all(forgets: bool) -> Result<usize, String> {
    let stories = ACTIONS.len().pow(LENGTH);
    for story in 0..stories {
        let mut world = World::new(forgets);
        let mut rest = story;
        let actions = (0..LENGTH).map(|_| {
            let action = ACTIONS[rest % ACTIONS.len()];
            rest /= ACTIONS.len();
            action
        });
        let actions: Vec<Action> = actions.collect();
        actions.iter().for_each(|action| world.act(*action));
        world
            .settle()
            .map_err(|what| format!("{what}: {actions:?}"))?;
    }
    Ok(stories)
}

#[test]
fn no_leader_counts_a_request_twice_or_loses_a_published_one() {
    let stories = play_all(false).unwrap_or_else(|what| panic!("{what}"));
    println!("counts: {stories} stories of {LENGTH} actions");
}

#[test]
fn a_forgetting_leader_is_detected() {
    let what = play_all(true).unwrap_err();
    assert!(what.contains("counted"), "{what}");
}

//! Stories of faults: a service under a steady load, and what can go wrong with it and its proxies, drawn from a seed and
//! the story's number.
//!
//! ```text
//! 0 s          8 s           22 s             30 s           40 s
//!  | no faults  |   faults    | time to recover |   judged    |
//! ```
//!
//! The story is played again without its faults, and [`judge`] compares.

pub mod judge;

use std::collections::BTreeMap;
use std::time::Duration;

use super::rounded;
use super::service::{self, DrawnService};
use super::uniform::Uniform;
use super::{ProxySpread, QUANTILE};
use crate::fault::ProxyFault;
use crate::profile::{Change, Errors, UpstreamMode};
use crate::scenario::{
    ClientProfile, Counting, Incident, LatencyUntil, LoadPoint, RequestSpread, STANDARD_UPSTREAM,
    Scenario, ScenarioSlo, TimedChange, UpstreamProfile,
};

/// Faults begin here, ...
pub const FAULTS_FROM: Duration = Duration::from_secs(8);
/// ... are over here, ...
pub const FAULTS_TO: Duration = Duration::from_secs(22);
/// ... and from here on all must be as without faults.
pub const RECOVERED_AT: Duration = Duration::from_secs(30);
const LENGTH: Duration = Duration::from_secs(40);
/// Parts of the time for faults, one after the other.
const PARTS: u32 = 3;
/// Most faults of proxies in one part.
const PER_PART: u32 = 3;
/// Capacity of services, requests a second: fast to play, and fast enough to recover in time.
const CAPACITY: std::ops::Range<f64> = 50.0..400.0;
const SLOWEST: Duration = Duration::from_millis(100);

/// The story `number` of a seed.
#[must_use]
pub fn story(seed: u64, number: u32) -> Scenario {
    let mut uniform = Uniform::of_chaos(seed, number);
    let spread = ProxySpread {
        proxies: uniform.one_of(1, &[1, 2, 3]),
        workers: uniform.one_of(1, &[2, 2, 4]),
        endpoints: uniform.one_of(1, &[1, 2, 4]),
    };
    let service = quick(&mut uniform, spread);
    let x = if uniform.happens(0.5) {
        rounded::hundredths(uniform.between(0.4, 0.85))
    } else {
        rounded::hundredths(uniform.scale(1.2, 3.0))
    };
    let mut faults = StoryFaults {
        spread,
        timeline: Vec::new(),
        incidents: Vec::new(),
        words: Vec::new(),
    };
    for part in 0..PARTS {
        faults.draw(&mut uniform, part, &service);
    }
    if faults.words.is_empty() {
        faults.draw_fault(&mut uniform, FAULTS_FROM, FAULTS_TO);
    }
    faults.timeline.sort_by_key(|change| change.at);
    faults.incidents.sort_by_key(|incident| incident.at);
    Scenario {
        name: format!("c{seed}-{number:05}"),
        title: format!(
            "{}, {}, load {x}: {}",
            service.words(),
            spread.words(),
            faults.words.join(", ")
        ),
        prose: format!("Drawn by `tidegate-sim chaos`: story {number} of seed {seed}."),
        seed: uniform.seed(),
        duration: LENGTH,
        warmup: Duration::from_secs(4),
        workers: spread.workers,
        proxies: spread.proxies,
        callers: None,
        spread: RequestSpread::default(),
        counting: Counting::default(),
        network: None,
        incidents: faults.incidents,
        slo: ScenarioSlo {
            latency: service.objective,
            quantile: QUANTILE,
            until: LatencyUntil::Headers,
        },
        upstreams: vec![UpstreamProfile {
            behaviour: service.behaviour,
            timeline: faults.timeline,
            ..UpstreamProfile::named(STANDARD_UPSTREAM)
        }],
        clients: vec![ClientProfile {
            deadline: service.deadline,
            ..ClientProfile::sending(vec![LoadPoint {
                at: Duration::ZERO,
                x: Some(x),
                rps: None,
                ramp: false,
            }])
        }],
        adversaries: Vec::new(),
        inner: Vec::new(),
        marks: Vec::new(),
        expect: BTreeMap::new(),
        expect_sim: BTreeMap::new(),
    }
}

/// The same story without its faults.
#[must_use]
pub fn undisturbed(story: &Scenario) -> Scenario {
    let mut story = story.clone();
    story.incidents.clear();
    for upstream in &mut story.upstreams {
        upstream.timeline.clear();
    }
    story
}

fn quick(uniform: &mut Uniform, spread: ProxySpread) -> DrawnService {
    loop {
        let service = DrawnService::drawn(uniform, spread);
        let behaviour = &service.behaviour;
        if CAPACITY.contains(&behaviour.capacity()) && behaviour.service.mean() <= SLOWEST {
            return service;
        }
    }
}

/// What goes wrong.
struct StoryFaults {
    spread: ProxySpread,
    timeline: Vec<TimedChange>,
    incidents: Vec<Incident>,
    words: Vec<String>,
}

/// What happens to the service.
#[derive(Clone, Copy)]
enum Trouble {
    Down(UpstreamMode),
    Slow,
    Errors,
}

/// What happens to proxies.
#[derive(Clone, Copy)]
enum Mess {
    Crash,
    CrashAll,
    LeaderCrash,
    LeaderChanged,
    Push,
    PushRejected,
    PushOther,
    Late,
    ClockStep,
    Leaves,
}

impl StoryFaults {
    /// What happens in one part of the time for faults.
    fn draw(&mut self, uniform: &mut Uniform, part: u32, service: &DrawnService) {
        let span = (FAULTS_TO - FAULTS_FROM) / PARTS;
        let from = FAULTS_FROM + span * part;
        if uniform.happens(0.5) {
            self.draw_trouble(uniform, from, from + span, service);
        }
        for _ in 0..rounded::count(uniform.between(-0.5, f64::from(PER_PART) + 0.5)) {
            self.draw_fault(uniform, from, from + span);
        }
    }

    fn draw_trouble(
        &mut self,
        uniform: &mut Uniform,
        from: Duration,
        to: Duration,
        service: &DrawnService,
    ) {
        let (begin, end) = within(uniform, from, to);
        let trouble = uniform.one_of(
            Trouble::Down(UpstreamMode::Fail),
            &[
                Trouble::Down(UpstreamMode::Hang),
                Trouble::Down(UpstreamMode::Refuse),
                Trouble::Down(UpstreamMode::Reset),
                Trouble::Slow,
                Trouble::Errors,
            ],
        );
        let law = service.behaviour.service;
        let (change, back, words) = match trouble {
            Trouble::Down(mode) => {
                let words = format!("{mode:?}").to_lowercase();
                (Change::mode(mode), Change::mode(UpstreamMode::Serve), words)
            }
            Trouble::Slow => {
                let factor = rounded::hundredths(uniform.between(2.0, 10.0));
                let to = |service| Change {
                    service: Some(service),
                    ..Change::default()
                };
                let slower = to(service::slower(&law, factor));
                (slower, to(law), format!("{factor} x slower"))
            }
            Trouble::Errors => {
                let share = rounded::hundredths(uniform.between(0.2, 0.9));
                let to = |share| Change {
                    errors: Some(Errors { share, status: 500 }),
                    ..Change::default()
                };
                (to(share), to(0.0), format!("errors {share}"))
            }
        };
        self.words.push(format!("{words} {}", seconds(begin, end)));
        let timed = |at, change| TimedChange { at, change };
        self.timeline
            .extend([timed(begin, change), timed(end, back)]);
    }

    fn draw_fault(&mut self, uniform: &mut Uniform, from: Duration, to: Duration) {
        let (begin, end) = within(uniform, from, to);
        let proxy = (self.spread.proxies > 1 && uniform.happens(0.5))
            .then(|| rounded::count(uniform.between(-0.5, f64::from(self.spread.proxies) - 0.51)));
        let worker = rounded::count(uniform.between(-0.5, f64::from(self.spread.workers) - 0.51));
        let mess = uniform.one_of(
            Mess::Crash,
            &[
                Mess::CrashAll,
                Mess::LeaderCrash,
                Mess::LeaderChanged,
                Mess::Push,
                Mess::PushRejected,
                Mess::PushOther,
                Mess::Late,
                Mess::ClockStep,
                Mess::Leaves,
            ],
        );
        let (faults, words) = match mess {
            Mess::Crash => (vec![(begin, ProxyFault::WorkerCrash { worker })], "crash"),
            Mess::CrashAll => {
                let workers = 0..self.spread.workers;
                let crashes = workers.map(|worker| (begin, ProxyFault::WorkerCrash { worker }));
                let leader = [(begin, ProxyFault::LeaderCrash)];
                (crashes.chain(leader).collect(), "all crash")
            }
            Mess::LeaderCrash => (vec![(begin, ProxyFault::LeaderCrash)], "leader crashes"),
            Mess::LeaderChanged => (vec![(begin, ProxyFault::LeaderChanged)], "leader changes"),
            Mess::Push => (vec![(begin, ProxyFault::Push)], "push"),
            Mess::PushRejected => (vec![(begin, ProxyFault::PushRejected)], "push rejected"),
            Mess::PushOther => {
                let back = (end, ProxyFault::Push);
                (vec![(begin, ProxyFault::PushOther), back], "other push")
            }
            Mess::Late => {
                let lasts = end - begin;
                let late = ProxyFault::WorkerLate { worker, lasts };
                (vec![(begin, late)], "late worker")
            }
            Mess::ClockStep => {
                let millis = uniform.one_of(-2_000, &[-300, 300, 2_000, 60_000]);
                (
                    vec![(begin, ProxyFault::ClockStep { millis })],
                    "clock step",
                )
            }
            Mess::Leaves => {
                let joins = (end, ProxyFault::ProxyJoins);
                (
                    vec![(begin, ProxyFault::ProxyLeaves), joins],
                    "proxy replaced",
                )
            }
        };
        let of = proxy.map_or_else(String::new, |proxy| format!(" of proxy {proxy}"));
        self.words
            .push(format!("{words}{of} {}", seconds(begin, end)));
        let incidents = faults
            .into_iter()
            .map(|(at, what)| Incident { at, proxy, what });
        self.incidents.extend(incidents);
    }
}

/// A beginning and an end that is 0.2 s to 4 s later, in whole milliseconds.
fn within(uniform: &mut Uniform, from: Duration, to: Duration) -> (Duration, Duration) {
    let span = (to - from).as_secs_f64();
    let lasts = uniform.between(0.2, 4.0).min(span);
    let begin = from + rounded::millis(uniform.between(0.0, span - lasts) * 1_000.0);
    (begin, (begin + rounded::millis(lasts * 1_000.0)).min(to))
}

fn seconds(begin: Duration, end: Duration) -> String {
    format!("({:.1}-{:.1} s)", begin.as_secs_f64(), end.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_story_makes_sense_and_reads_back() {
        for number in 0..200 {
            let story = story(1, number);
            let checked = story.clone().checked(&story.name);
            assert!(checked.is_ok(), "{checked:?}");
            let read = Scenario::parse(&story.text().unwrap(), &story.name).unwrap();
            assert_eq!(read, story);
            assert!(undisturbed(&story).incidents.is_empty());
            let ends = story.incidents.iter().map(|incident| incident.at);
            let changes = story.upstreams[0].timeline.iter().map(|change| change.at);
            assert!(
                ends.chain(changes)
                    .all(|at| (FAULTS_FROM..=FAULTS_TO).contains(&at))
            );
        }
    }

    #[test]
    fn every_fault_is_drawn() {
        let words: Vec<String> = (0..200).map(|number| story(1, number).title).collect();
        for fault in [
            "fail",
            "hang",
            "refuse",
            "reset",
            "slower",
            "errors",
            " crash",
            "all crash",
            "leader crashes",
            "leader changes",
            " push (",
            "push rejected",
            "other push",
            "late worker",
            "clock step",
            "proxy replaced",
            "of proxy 1",
        ] {
            let found = words.iter().filter(|title| title.contains(fault)).count();
            assert!(found > 10, "{fault}: {found}");
        }
    }
}

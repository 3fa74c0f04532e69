//! Random services and stories: laws may be overfitted to hand-written scenarios.
//!
//! Those of `scenarios/` have one service (16 slots, 40 ms) and a few objectives. Here slots, pace, spread, objective,
//! deadline, load, incident, workers and retries of a story are drawn from a seed and the story's number alone, so that
//! stories are the same on every machine. Each is an ordinary [`Scenario`], with times in whole milliseconds (service times:
//! microseconds), so that its file holds all of it. [`standing`] sums up the results, and [`behind`] shows the stories in
//! which we were behind. Stories of [`Axes::All`] have the same and up to three things more (bodies, uploads,
//! stalls, crowds, callers without value), and some have an adversary or a cold start. [`labels`] says which of them any
//! scenario has.
//!
//! Edges: with more proxies or endpoints a story is that of the same number with one proxy, as far as slots can be divided;
//! an endpoint has at least one slot.

pub mod axes;
pub mod behind;
pub mod chaos;
pub mod labels;
pub mod played;
pub mod standing;

mod accept;
mod adversary;
mod callers;
mod cold;
mod extra;
mod incident;
mod load;
mod responses;
mod rounded;
mod service;
mod spread;
mod uniform;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scenario::{
    ClientProfile, Counting, LatencyUntil, RequestSpread, Retries, STANDARD_UPSTREAM, Scenario,
    ScenarioSlo, UpstreamProfile,
};
use incident::DrawnIncident;
use load::DrawnLoad;
use service::DrawnService;
use spread::ProxySpread;
use uniform::Uniform;

pub use played::PlayedStory;
pub use spread::Proxies;
pub use standing::SweepStanding;

/// A run lasts as long as this many requests take at the capacity ...
const REQUESTS: f64 = 3_000.0;
/// ... within these bounds, s.
const SHORTEST_S: f64 = 30.0;
const LONGEST_S: f64 = 150.0;
/// Share of a run that is not scored.
const WARMUP: f64 = 0.1;
/// Share of the answers for which the objective holds.
const QUANTILE: f64 = 0.99;

/// What stories are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axes {
    /// Size, pace, objective, load, incident, workers and retries.
    #[default]
    Classic,
    /// Also what responses, requests, endpoints and callers can be like beyond that.
    All,
}

/// The story `number` of a seed, of [`Axes::Classic`].
#[must_use]
pub fn story(seed: u64, number: u32, proxies: Proxies) -> Scenario {
    let mut uniform = Uniform::of(seed, number);
    let spread = ProxySpread::drawn(&mut uniform, proxies);
    told(seed, number, proxies, spread, uniform)
}

/// The story `number` of a seed, made of some axes.
#[must_use]
pub fn story_of(axes: Axes, seed: u64, number: u32, proxies: Proxies) -> Scenario {
    if axes == Axes::Classic {
        return story(seed, number, proxies);
    }
    let mut uniform = Uniform::of(seed, number);
    let mut more = Uniform::of_axes(seed, number);
    let spread = ProxySpread::drawn(&mut uniform, proxies).of_all_axes(&mut more, proxies);
    let mut story = told(seed, number, proxies, spread, uniform);
    story.name = story.name.replacen('-', "-all-", 1);
    story.prose =
        format!("Drawn by `tidegate-sim sweep --axes all`: story {number} of seed {seed}.");
    extra::add(&mut story, &mut more);
    adversary::add(&mut story, &mut more);
    cold::add(&mut story, &mut more);
    story.cast()
}

fn told(
    seed: u64,
    number: u32,
    proxies: Proxies,
    spread: ProxySpread,
    mut uniform: Uniform,
) -> Scenario {
    let service = DrawnService::drawn(&mut uniform, spread);
    let seconds = (REQUESTS / service.behaviour.capacity()).clamp(SHORTEST_S, LONGEST_S);
    let length = rounded::millis(seconds * 1_000.0);
    let load = DrawnLoad::drawn(&mut uniform, length);
    let incident = DrawnIncident::drawn(&mut uniform, &service, length);
    let retries = retries(&mut uniform);
    let kind = match proxies {
        Proxies::One => "",
        Proxies::Some => "some-",
    };
    Scenario {
        name: format!("s{seed}-{kind}{number:05}"),
        title: title(&service, spread, &load, &incident, retries),
        prose: format!("Drawn by `tidegate-sim sweep`: story {number} of seed {seed}."),
        seed: uniform.seed(),
        duration: length,
        warmup: rounded::part(length, WARMUP),
        workers: spread.workers,
        proxies: spread.proxies,
        callers: None,
        spread: RequestSpread::default(),
        counting: Counting::default(),
        network: None,
        incidents: Vec::new(),
        slo: ScenarioSlo {
            latency: service.objective,
            quantile: QUANTILE,
            until: LatencyUntil::Headers,
        },
        upstreams: vec![UpstreamProfile {
            behaviour: service.behaviour,
            timeline: incident.timeline,
            ..UpstreamProfile::named(STANDARD_UPSTREAM)
        }],
        clients: vec![ClientProfile {
            bursts: load.bursts,
            deadline: service.deadline,
            retries,
            ..ClientProfile::sending(load.points)
        }],
        adversaries: Vec::new(),
        inner: Vec::new(),
        marks: Vec::new(),
        expect: BTreeMap::new(),
        expect_sim: BTreeMap::new(),
    }
}

/// Callers of one story in five retry.
fn retries(uniform: &mut Uniform) -> Option<Retries> {
    if !uniform.one_of(true, &[false; 4]) {
        return None;
    }
    Some(Retries {
        max: uniform.one_of(1, &[2, 3]),
        backoff: Duration::from_millis(uniform.one_of(25, &[100])),
        steady: false,
        stubborn: false,
        untold: false,
    })
}

/// The story in one line.
fn title(
    service: &DrawnService,
    spread: ProxySpread,
    load: &DrawnLoad,
    incident: &DrawnIncident,
    retries: Option<Retries>,
) -> String {
    let retries = retries.map(|Retries { max, backoff, .. }| {
        let what = if max == 1 { "retry" } else { "retries" };
        format!("{max} {what} after {} ms", backoff.as_millis())
    });
    let happens = [Some(load.words.clone()), incident.words.clone(), retries];
    let happens: Vec<String> = happens.into_iter().flatten().collect();
    format!(
        "{}, {}: {}",
        service.words(),
        spread.words(),
        happens.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const BOTH: [Proxies; 2] = [Proxies::One, Proxies::Some];

    #[test]
    fn a_story_depends_on_seed_and_number() {
        let one = story(1, 7, Proxies::One);
        assert_eq!(one, story(1, 7, Proxies::One));
        for other in [story(1, 8, Proxies::One), story(2, 7, Proxies::One)] {
            assert_ne!(one.title, other.title);
            assert_ne!(one.seed, other.seed);
        }
    }

    #[test]
    fn every_story_makes_sense() {
        for (number, proxies) in (0..300).flat_map(|n| BOTH.map(|proxies| (n, proxies))) {
            for axes in [Axes::Classic, Axes::All] {
                let story = story_of(axes, 1, number, proxies);
                let name = story.name.clone();
                let checked = story.checked(&name);
                assert!(checked.is_ok(), "{checked:?}");
            }
        }
    }

    #[test]
    fn stories_of_all_axes_are_those_of_before_with_something_more() {
        let count = 300;
        let plain = (0..count).filter(|number| {
            let more = story_of(Axes::All, 1, *number, Proxies::One);
            let before = story(1, *number, Proxies::One);
            assert_eq!((more.seed, more.workers), (before.seed, before.workers));
            assert_ne!(more.name, before.name);
            more.upstreams == before.upstreams
                && more.clients == before.clients
                && more.slo == before.slo
        });
        // 0.65 of a sixth have nothing more; the standard deviation is 5.4.
        let plain = plain.count();
        assert!((12..60).contains(&plain), "{plain}");
        let many = (0..count).map(|number| story_of(Axes::All, 1, number, Proxies::Some));
        let counts = many.map(|story| (story.proxies, story.upstreams[0].behaviour.endpoints));
        let (proxies, endpoints): (BTreeSet<u32>, BTreeSet<u32>) = counts.unzip();
        assert_eq!((proxies.first(), proxies.last()), (Some(&1), Some(&20)));
        assert_eq!(endpoints, (1..=8).collect());
    }

    #[test]
    fn some_stories_of_all_axes_have_an_adversary_of_each_kind() {
        let drawn = (0..600).map(|number| story_of(Axes::All, 1, number, Proxies::One));
        let adversaries = drawn.filter_map(|story| {
            let index = story.clients.len().checked_sub(1)?;
            story.adversary(index)
        });
        let found: Vec<_> = adversaries.collect();
        // A fifth of them; the standard deviation is 10.
        assert!((80..160).contains(&found.len()), "{}", found.len());
        let kinds: BTreeSet<_> = found.into_iter().collect();
        assert_eq!(kinds.len(), 12, "{kinds:?}");
    }

    #[test]
    fn a_story_reads_back_from_its_file() {
        for (number, proxies) in (0..300).flat_map(|n| BOTH.map(|proxies| (n, proxies))) {
            for axes in [Axes::Classic, Axes::All] {
                let story = story_of(axes, 1, number, proxies);
                let text = story.text().unwrap();
                let read = Scenario::parse(&text, &story.name).unwrap();
                assert_eq!(read, story, "{text}");
            }
        }
    }

    #[test]
    fn more_proxies_leave_the_story_as_it_is() {
        let (one, some) = (story(1, 2, Proxies::One), story(1, 2, Proxies::Some));
        assert_eq!(some.slo, one.slo);
        assert_eq!(some.workers, one.workers);
        assert_eq!(some.seed, one.seed);
        let drawn = (0..100).map(|number| story(1, number, Proxies::Some));
        let most = drawn.map(|story| story.proxies).max();
        assert_eq!(most, Some(20));
        assert_eq!(one.proxies, 1);
    }

    #[test]
    fn a_title_says_everything() {
        let story = story(1, 1, Proxies::One);
        assert_eq!(
            story.title,
            "4 slots, 81.8 ms (sigma 0.63), 49/s, objective 504 ms, deadline 941 ms, 4 workers: \
             bursts of 247 in 1917 ms to 3.51, 2 retries after 25 ms"
        );
        let drawn = (0..100).map(|number| self::story(1, number, Proxies::Some).title);
        let mut of_many = drawn.filter(|title| title.contains(" 20 proxies of "));
        assert!(of_many.any(|title| title.starts_with("8 x ")));
    }
}

//! Random services and stories: Tidegate is also ahead in stories that it was not developed with.
//!
//! A small part of what `make sim-sweep` plays, and of these only services that are quickly played.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::thread;

use tidegate_sim::compare::OURS;
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::roster;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::sweep::{Axes, PlayedStory, Proxies, SweepStanding, story, story_of};
use tidegate_sim::world;

const STORIES: usize = 24;
/// Capacity of the services played is below this, in requests a second: larger ones take longer to play.
const SMALL: f64 = 400.0;
/// Not the seed of `make sim-sweep`.
const SEED: u64 = 2;

fn kind(name: &str) -> ContenderKind {
    let known = roster::all();
    *known.iter().find(|kind| kind.name == name).unwrap()
}

fn stories() -> Vec<Scenario> {
    let drawn = (0..).map(|number| story(SEED, number, Proxies::One));
    let is_small = |story: &Scenario| {
        let mut upstreams = story.upstreams.iter();
        upstreams.all(|upstream| upstream.behaviour.capacity() < SMALL)
    };
    drawn.filter(is_small).take(STORIES).collect()
}

fn played(story: &Scenario, kinds: &[ContenderKind]) -> PlayedStory {
    let score = |kind: &ContenderKind| {
        let run = world::play(story, kind).unwrap();
        (kind.name, run.figures.score)
    };
    PlayedStory::of(&story.name, &story.title, kinds.iter().map(score))
}

#[test]
fn ahead_on_services_that_nobody_chose() {
    let kinds = [OURS, "adaptive-concurrency", "none"].map(kind);
    let stories = stories();
    let played: Vec<PlayedStory> = thread::scope(|scope| {
        let halves = stories.chunks(STORIES.div_ceil(2));
        let work = |half| move || -> Vec<PlayedStory> { half_of(half, &kinds) };
        let threads: Vec<_> = halves.map(|half| scope.spawn(work(half))).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.flatten().collect()
    });
    let mean = |name| SweepStanding::of(name, &played).unwrap().mean;
    let ours = mean(OURS);
    assert!(ours >= 0.9, "{ours}");
    for other in ["adaptive-concurrency", "none"] {
        assert!(ours > mean(other), "{ours}, {other} {}", mean(other));
    }
}

fn half_of(stories: &[Scenario], kinds: &[ContenderKind]) -> Vec<PlayedStory> {
    stories.iter().map(|story| played(story, kinds)).collect()
}

#[test]
fn a_story_plays_the_same_again_and_from_its_file() {
    let classic = (0..3).map(|number| story(SEED, number, Proxies::One));
    let all = (0..12).map(|number| story_of(Axes::All, SEED, number, Proxies::Some));
    let is_small = |story: &Scenario| story.upstreams[0].behaviour.capacity() < SMALL;
    for drawn in classic.chain(all.filter(is_small)) {
        let text = drawn.text().unwrap();
        let read = Scenario::parse(&text, &drawn.name).unwrap();
        let digest = |story: &Scenario| world::play(story, &kind(OURS)).unwrap().digest;
        assert_eq!(digest(&drawn), digest(&read), "{}", drawn.title);
    }
}

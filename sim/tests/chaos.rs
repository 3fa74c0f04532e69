//! Stories of faults: some of those that `make sim-chaos` plays, and a judge that finds violations.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use tidegate_sim::compare::OURS;
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::roster;
use tidegate_sim::run::Run;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::sweep::chaos::judge::{self, faults};
use tidegate_sim::sweep::chaos::{story, undisturbed};
use tidegate_sim::world;

/// Not the seed of `make sim-chaos`.
const SEED: u64 = 2;
const STORIES: u32 = 20;

fn ours() -> ContenderKind {
    let known = roster::all();
    *known.iter().find(|kind| kind.name == OURS).unwrap()
}

fn play(story: &Scenario) -> Run {
    world::play(story, &ours()).unwrap()
}

#[test]
fn all_is_as_before_after_faults() {
    for number in 0..STORIES {
        let story = story(SEED, number);
        let faults = judge::judge(&story, &ours()).unwrap();
        assert!(
            faults.is_empty(),
            "{}: {}: {faults:?}",
            story.name,
            story.title
        );
    }
}

#[test]
fn a_story_is_the_same_each_time() {
    let story = story(SEED, 3);
    assert_eq!(play(&story).digest, play(&story).digest);
}

/// Requests whose bodies are under way do not count as in flight. A crash once subtracted them with their worker anyway: the
/// count fell below zero, and half of all later requests were shed.
#[test]
fn a_crash_takes_off_what_counts_and_no_more() {
    let text = r#"
        name = "t"
        title = "t"
        prose = "p"
        seed = 7
        duration = "12s"
        clients = [{ load = [{ at = "0s", x = 0.7 }], deadline = "6s" }]
        incidents = [{ at = "6s", kind = "worker-crash", worker = 0 }]
        [[upstreams]]
        name = "main"
        behaviour = { body = { duration = { kind = "constant", mean = "1s" } } }"#;
    let run = play(&Scenario::parse(text, "test").unwrap());
    assert_eq!((run.leaked, run.sheds.len()), (Some(0), 0));
}

#[test]
fn what_is_wrong_is_found() {
    let mut numbers = (0..).map(|number| story(SEED, number));
    let overloaded = |story: &Scenario| {
        judge::is_band_judged(story) && story.clients[0].load[0].x.is_some_and(|x| x > 1.5)
    };
    let story = numbers.find(overloaded).unwrap();
    let (run, other) = (play(&story), play(&undisturbed(&story)));
    let found = |change: &dyn Fn(&mut Run)| {
        let mut run = run.clone();
        change(&mut run);
        faults(&story, &run, &other).join("; ")
    };
    assert_eq!(found(&|_| {}), "");
    assert!(found(&|run| run.leaked = Some(1)).contains("in flight at the end"));
    assert!(found(&|run| run.admitted += 1).contains("admitted"));
    assert!(found(&|run| run.records[0].sheds += 1).contains("callers heard of"));
    let bad = found(&|run| {
        run.records
            .iter_mut()
            .for_each(|record| record.latency *= 100)
    });
    assert!(bad.contains("good answers"), "{bad}");
    let wide = found(&|run| {
        let samples = run.samples.iter_mut();
        samples.for_each(|sample| sample.limit = sample.limit.map(|limit| limit * 100 + 100));
    });
    assert!(wide.contains("limit"), "{wide}");
    let open = found(&|run| {
        let samples = run.samples.iter_mut();
        samples.for_each(|sample| sample.breaker = Some(2));
    });
    assert!(open.contains("a breaker was not closed"), "{open}");
}

//! How much a browser has to do for a minute of story.
//!
//! A minute of a tested run is to be played within two seconds. Chromium played half a million events a second on a busy machine with
//! two cores. Seconds depend on the machine; events do not, so they are what is bounded here.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use tidegate_playground::settings::Settings;
use tidegate_sim::{tidegate, world};

/// Of the runs that are tested in the browser: the greatest has 550,000, a chain of services.
const MOST_OF_THE_TESTED: f64 = 600_000.0;
/// Of a story of one's own: the greatest has 1,500,000, with as many requests as a run may have.
const MOST_OF_ITS_OWN: f64 = 1_600_000.0;

/// Events for a minute of a run, of Tidegate or of the rival beside it, whichever has more.
fn events_a_minute(fragment: &str) -> f64 {
    let settings = Settings::parse(fragment).unwrap();
    let scenario = settings.scenario().unwrap();
    let minutes = scenario.duration.as_secs_f64() / 60.0;
    let kinds = [tidegate::KIND, settings.rival()];
    let events = kinds.map(|kind| world::play(&scenario, &kind).unwrap().events);
    f64::from(u32::try_from(events.into_iter().max().unwrap()).unwrap()) / minutes
}

#[test]
fn a_minute_of_the_tested_runs_is_played_in_few_events() {
    let page_test = include_str!("../../ci/playground_test.py");
    let runs = page_test.lines().filter_map(|line| {
        let run = line.strip_prefix("    \"")?.strip_suffix("\",")?;
        run.starts_with("story=").then_some(run)
    });
    let runs: Vec<&str> = runs.collect();
    assert!(runs.len() >= 10, "{runs:?}");
    for run in runs {
        let found = events_a_minute(run);
        assert!(found <= MOST_OF_THE_TESTED, "{run}: {found}");
    }
}

#[test]
fn a_minute_of_the_greatest_story_of_its_own_is_played_in_few_events() {
    for run in [
        "story=own&load=10",
        "story=own&load=1.7&retries=5&stubborn=yes",
    ] {
        let found = events_a_minute(run);
        assert!(found <= MOST_OF_ITS_OWN, "{run}: {found}");
    }
}

//! A run as the fragment of an address: `story=step&rival=bbr&seed=7&slo=200&push=12:150`.
//!
//! `story` is the name of a story, or `own`, which has the settings of [`crate::table`] and a `load`. Every run may have a `seed`,
//! a latency objective `slo` in milliseconds, and changes of it during the run: `push=12:150,20.5:300` is 150 ms from second 12
//! on, and 300 ms from second 20.5 on. `rival` is the contender beside Tidegate. Missing settings keep the story's
//! values.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_sim::digest::Digest;
use tidegate_sim::kind::ContenderKind;
use tidegate_sim::roster;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::tidegate;

use crate::load::{LoadCurve, LoadUnit};
use crate::objective::{self, OBJECTIVES, ObjectivePush};
use crate::own::{self, OwnStory};
use crate::stories;
use crate::table;
use crate::values::FieldValues;

/// The name of a custom story.
pub const OWN: &str = "own";
/// The default rival.
pub const FIRST_RIVAL: &str = "none";
/// Seeds are below this, so that a number of JavaScript holds them exactly.
const SEEDS_BELOW: u64 = 1 << 53;

/// A run.
#[derive(Debug, Clone)]
pub struct Settings {
    story: StoryChoice,
    seed: Option<u64>,
    objective_ms: Option<u32>,
    pushes: Vec<ObjectivePush>,
    rival: ContenderKind,
}

#[derive(Debug, Clone)]
enum StoryChoice {
    Told(Box<Scenario>),
    Own(OwnStory),
}

impl Settings {
    /// Reads a fragment, without its `#`.
    ///
    /// # Errors
    /// With everything that is wrong.
    pub fn parse(fragment: &str) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let mut given = BTreeMap::new();
        for part in fragment.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((key, value)) => {
                    given.insert(key, value);
                }
                None => faults.push(format!("{part}: expected key=value")),
            }
        }
        let mut kept = |fault: String| faults.push(fault);
        let seed = given.remove("seed").and_then(|text| {
            let seed = text.parse().ok().filter(|seed| *seed < SEEDS_BELOW);
            if seed.is_none() {
                kept(format!(
                    "seed: found {text}, expected a whole number below {SEEDS_BELOW}"
                ));
            }
            seed
        });
        let objective_ms = given.remove("slo").and_then(|text| {
            let found = objective::latency_ms(text);
            if found.is_none() {
                let [least, most] = OBJECTIVES;
                kept(format!(
                    "slo: found {text}, expected whole milliseconds from {least} to {most}"
                ));
            }
            found
        });
        let pushes = given
            .remove("push")
            .map_or_else(|| Ok(Vec::new()), objective::pushes);
        let rival = rival(given.remove("rival").unwrap_or(FIRST_RIVAL));
        let story = story(given);
        let (pushes, rival, story) = match (pushes, rival, story) {
            (Ok(pushes), Ok(rival), Ok(story)) if faults.is_empty() => (pushes, rival, story),
            (pushes, rival, story) => {
                faults.extend(pushes.err());
                faults.extend(rival.err());
                faults.extend(story.err().into_iter().flatten());
                return Err(faults);
            }
        };
        let settings = Self {
            story,
            seed,
            objective_ms,
            pushes,
            rival,
        };
        match settings.scenario() {
            Ok(_) => Ok(settings),
            Err(fault) => Err(vec![fault]),
        }
    }

    /// The shortest fragment that reads back as these settings.
    #[must_use]
    pub fn fragment(&self) -> String {
        let mut parts = Vec::new();
        match &self.story {
            StoryChoice::Told(scenario) => parts.push(("story", scenario.name.clone())),
            StoryChoice::Own(own) => {
                parts.push(("story", OWN.to_owned()));
                parts.push(("load", own.load.text()));
                parts.extend(own.values.changed());
            }
        }
        parts.extend(self.seed.map(|seed| ("seed", seed.to_string())));
        parts.extend(self.objective_ms.map(|ms| ("slo", ms.to_string())));
        if !self.pushes.is_empty() {
            let pushes = self.pushes.iter();
            let pushes = pushes.map(|push| format!("{}:{}", push.at_s, push.latency_ms));
            parts.push(("push", pushes.collect::<Vec<_>>().join(",")));
        }
        if self.rival.name != FIRST_RIVAL {
            parts.push(("rival", self.rival.name.to_owned()));
        }
        let parts = parts.iter().map(|(key, value)| format!("{key}={value}"));
        parts.collect::<Vec<_>>().join("&")
    }

    /// The scenario, as a file of it would be read.
    ///
    /// # Errors
    /// With the faults of the scenario.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let mut scenario = match &self.story {
            StoryChoice::Told(told) => Scenario::clone(told),
            StoryChoice::Own(own) => own.scenario(),
        };
        let told = matches!(self.story, StoryChoice::Told(_)).then(|| scenario.clone());
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        if let Some(ms) = self.objective_ms {
            scenario.slo.latency = Duration::from_millis(ms.into());
        }
        let pushes = self.pushes.iter().map(ObjectivePush::incident);
        scenario.incidents.extend(pushes);
        if told.as_ref() != Some(&scenario) {
            // The expected ranges apply only to the unchanged story.
            scenario.expect.clear();
            scenario.expect_sim.clear();
            scenario.name = self.name();
        }
        let name = scenario.name.clone();
        let checked = scenario.checked(&name);
        checked.map_err(|refused| refused.to_string())
    }

    /// The contender beside Tidegate.
    #[must_use]
    pub const fn rival(&self) -> ContenderKind {
        self.rival
    }

    /// The changes of the objective.
    #[must_use]
    pub fn pushes(&self) -> &[ObjectivePush] {
        &self.pushes
    }

    /// The settings of a custom story.
    #[must_use]
    pub const fn own(&self) -> Option<&OwnStory> {
        match &self.story {
            StoryChoice::Own(own) => Some(own),
            StoryChoice::Told(_) => None,
        }
    }

    /// The name of the story.
    #[must_use]
    pub fn told(&self) -> &str {
        match &self.story {
            StoryChoice::Told(scenario) => &scenario.name,
            StoryChoice::Own(_) => OWN,
        }
    }

    /// A name that no other run has, because a file has the name of its scenario. It does not depend on the rival.
    fn name(&self) -> String {
        let story = match &self.story {
            StoryChoice::Told(scenario) => scenario.name.as_str(),
            StoryChoice::Own(_) => "playground",
        };
        let mut digest = Digest::default();
        let mut plain = self.clone();
        plain.rival = tidegate::KIND;
        digest.feed_bytes(plain.fragment().as_bytes());
        let text = digest.to_string();
        format!("{story}-{}", text.get(..8).unwrap_or(&text))
    }
}

fn rival(name: &str) -> Result<ContenderKind, String> {
    let kinds = roster::all();
    let found = kinds.iter().find(|kind| kind.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        format!("rival: found {name}, expected one of {}", names.join(", "))
    })
}

fn story(mut given: BTreeMap<&str, &str>) -> Result<StoryChoice, Vec<String>> {
    let name = given.remove("story").unwrap_or(stories::FIRST);
    let mut faults = Vec::new();
    let mut choice = None;
    if name == OWN {
        let mut values = FieldValues::start();
        for field in table::all() {
            match given.remove(field.key).map(|text| field.parse(text)) {
                Some(Ok(value)) => values.set(field.key, value),
                Some(Err(fault)) => faults.push(fault),
                None => {}
            }
        }
        // Links without a unit are in multiples of the capacity.
        let unit = LoadUnit::named(values.choice("unit")).unwrap_or(LoadUnit::Capacity);
        let load = given
            .remove("load")
            .unwrap_or_else(|| own::first_load(unit));
        match LoadCurve::parse(load, unit) {
            Ok(load) => {
                let own = OwnStory { load, values };
                faults.extend(own.fault());
                choice = Some(StoryChoice::Own(own));
            }
            Err(fault) => faults.push(fault),
        }
    } else {
        match stories::named(name) {
            Some(Ok(scenario)) => choice = Some(StoryChoice::Told(Box::new(scenario))),
            Some(Err(error)) => faults.push(error.to_string()),
            None => faults.push(format!(
                "story: found {name}, expected {OWN} or the name of a story"
            )),
        }
    }
    let unknown = given.keys();
    faults.extend(
        unknown.map(|key| format!("{key}: found with story={name}, which has no such setting")),
    );
    match choice {
        Some(choice) if faults.is_empty() => Ok(choice),
        _ => Err(faults),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::scenario::AdversaryKind;

    use super::*;

    fn faults(fragment: &str) -> String {
        Settings::parse(fragment).unwrap_err().join("; ")
    }

    #[test]
    fn a_fragment_reads_back() {
        for fragment in [
            "story=step",
            "story=step&seed=7&slo=200&push=12:150,20.5:300&rival=bbr",
            "story=own&load=0.7*10,3&adversary=flood&harm=1.5&len=30&slots=8",
            "story=own&load=280*10,1200*5&service=20&unit=rps",
        ] {
            assert_eq!(Settings::parse(fragment).unwrap().fragment(), fragment);
        }
        assert_eq!(Settings::parse("").unwrap().fragment(), "story=step");
        let long = "story=own&load=0.7*10,2.5*10,0.7*10&slots=16&rival=none";
        let short = Settings::parse(long).unwrap().fragment();
        assert_eq!(
            short, "story=own&load=0.7*10,2.5*10,0.7*10",
            "what goes without saying"
        );
    }

    #[test]
    fn a_story_as_it_is_told_is_the_scenario_itself() {
        let told = Settings::parse("story=outage&rival=bbr").unwrap();
        let told = told.scenario().unwrap();
        assert_eq!(told, stories::named("outage").unwrap().unwrap());
        let other = Settings::parse("story=outage&seed=3").unwrap();
        let other = other.scenario().unwrap();
        assert!(other.name.starts_with("outage-") && other.expect.is_empty());
    }

    #[test]
    fn every_run_reads_back_from_its_file_and_plays_the_same() {
        for fragment in [
            "story=adversary-crash&seed=7&push=2:150",
            "story=chain-last-2x&slo=400",
            "story=own&len=10&body=500&holds=yes&incident=hang&from=2&lasts=3&proxies=2&retries=2&stubborn=yes&batch=30",
        ] {
            let scenario = Settings::parse(fragment).unwrap().scenario().unwrap();
            let again = Scenario::parse(&scenario.text().unwrap(), "file").unwrap();
            assert_eq!(again, scenario, "{fragment}");
        }
    }

    #[test]
    fn every_adversary_and_incident_makes_a_scenario() {
        let adversaries = AdversaryKind::ALL.map(|kind| format!("adversary={}", kind.name()));
        let incidents = ["slow", "half", "fail", "hang", "refuse"];
        let incidents = incidents.map(|kind| format!("incident={kind}"));
        for one in adversaries.iter().chain(&incidents) {
            let settings = Settings::parse(&format!("story=own&{one}"));
            let scenario = settings.unwrap_or_else(|faults| panic!("{one}: {faults:?}"));
            let scenario = scenario.scenario().unwrap();
            let plain = Settings::parse("story=own").unwrap().scenario().unwrap();
            assert!(
                scenario.clients != plain.clients || scenario.upstreams != plain.upstreams,
                "{one}"
            );
        }
    }

    #[test]
    fn a_rate_in_requests_a_second_stays_where_the_service_becomes_faster() {
        let rates = |fragment: &str| {
            let scenario = Settings::parse(fragment).unwrap().scenario().unwrap();
            let client = scenario.clients.first().unwrap().clone();
            let capacity = scenario.capacity_for(&client);
            let rate = tidegate_sim::arrivals::rate_at(&client, capacity, Duration::from_secs(30));
            (capacity, rate)
        };
        assert_eq!(rates("story=own&unit=rps"), (400.0, 1_000.0));
        assert_eq!(rates("story=own&unit=rps&service=20"), (800.0, 1_000.0));
        assert_eq!(rates("story=own&service=20"), (800.0, 2_000.0));
        assert!(faults("story=own&unit=rps&load=10001").contains("0 to 10000"));
        assert!(faults("story=own&load=280").contains("0 to 10,"));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let found = faults("story=own&slots=0&speed=9&seed=-1&slo=0&push=9:1,3:1&rival=me");
        for part in ["slots:", "speed:", "seed:", "slo:", "push:", "rival:"] {
            assert!(found.contains(part), "{part} is missing in {found}");
        }
        assert!(faults("story=nowhere").contains("nowhere"));
        assert!(faults("story=step&slots=3").contains("no such setting"));
        assert!(faults("what").contains("key=value"));
        assert!(faults("story=step&push=31:100").contains("expected < duration"));
        assert!(faults("story=own&slots=64&service=2").contains("requests, expected at most"));
    }

    #[test]
    fn a_push_changes_what_is_promised_from_then_on() {
        let scenario = Settings::parse("story=step&push=12:150").unwrap();
        let scenario = scenario.scenario().unwrap();
        let at = |second| scenario.latency_at(Duration::from_secs(second)).as_millis();
        assert_eq!([at(11), at(12)], [300, 150]);
    }
}

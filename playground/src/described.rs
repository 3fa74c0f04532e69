//! The settings of a fragment, for the page, and the load before the run is played.

use std::time::Duration;

use serde::Serialize;
use tidegate_sim::arrivals;
use tidegate_sim::number;
use tidegate_sim::scenario::Scenario;

use crate::objective::ObjectivePush;
use crate::settings::Settings;
use crate::values::FieldValues;

/// Points of the load over time.
const POINTS: u32 = 240;

/// A parsed fragment, or its faults.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Described {
    /// The fragment is a run.
    Run(Box<DescribedRun>),
    /// The fragment is invalid.
    Faults {
        /// Everything that is wrong.
        faults: Vec<String>,
    },
}

/// What a run is about.
#[derive(Debug, Serialize)]
pub struct DescribedRun {
    fragment: String,
    /// The choice of the story, and the name of the file.
    story: String,
    name: String,
    title: String,
    prose: String,
    seed: u64,
    duration_s: f64,
    /// Capacity of the first caller's upstream, in answers a second.
    capacity: f64,
    objective_ms: f64,
    quantile: f64,
    pushes: Vec<ObjectivePush>,
    rival: &'static str,
    rival_title: &'static str,
    proxies: u32,
    upstreams: Vec<String>,
    /// Settings and load of a custom story.
    values: Option<FieldValues>,
    load: Option<Vec<f64>>,
    /// Requests a second of callers at even distances; empty where callers in a closed loop send as they are answered.
    offered: Vec<f64>,
    /// The same of adversaries.
    harmful: Vec<f64>,
}

impl Described {
    /// Reads a fragment.
    #[must_use]
    pub fn of(fragment: &str) -> Self {
        let settings = match Settings::parse(fragment) {
            Ok(settings) => settings,
            Err(faults) => return Self::Faults { faults },
        };
        match settings.scenario() {
            Ok(scenario) => Self::Run(Box::new(DescribedRun::of(&settings, scenario))),
            Err(fault) => Self::Faults {
                faults: vec![fault],
            },
        }
    }
}

impl DescribedRun {
    fn of(settings: &Settings, scenario: Scenario) -> Self {
        let own = settings.own();
        let first = scenario.clients.first();
        let rate = |harmful: bool| {
            (0..POINTS)
                .map(|point| load_at(&scenario, scenario.duration * point / POINTS, harmful))
                .collect()
        };
        Self {
            fragment: settings.fragment(),
            story: settings.told().to_owned(),
            seed: scenario.seed,
            duration_s: scenario.duration.as_secs_f64(),
            capacity: first.map_or(0.0, |client| scenario.capacity_for(client)),
            objective_ms: number::millis(scenario.slo.latency),
            quantile: scenario.slo.quantile,
            pushes: settings.pushes().to_vec(),
            rival: settings.rival().name,
            rival_title: settings.rival().title,
            proxies: scenario.proxies,
            upstreams: scenario
                .upstreams
                .iter()
                .map(|one| one.name.clone())
                .collect(),
            values: own.map(|own| own.values.clone()),
            load: own.map(|own| own.load.levels().to_vec()),
            offered: if scenario.has_closed_loops() {
                Vec::new()
            } else {
                rate(false)
            },
            harmful: rate(true),
            prose: scenario
                .prose
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            name: scenario.name,
            title: scenario.title,
        }
    }
}

fn load_at(scenario: &Scenario, at: Duration, harmful: bool) -> f64 {
    let clients = scenario.clients.iter();
    let clients = clients.filter(|client| client.adversary.is_some() == harmful);
    clients
        .map(|client| arrivals::rate_at(client, scenario.capacity_for(client), at))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_a_closed_loop_is_not_known_before() {
        let Described::Run(run) = Described::of("story=closed-loop") else {
            panic!("a run");
        };
        assert!(run.offered.is_empty());
        assert!((run.capacity - 400.0).abs() < 1e-9);
    }

    #[test]
    fn the_load_of_a_story_is_known_before_it_is_played() {
        let Described::Run(run) = Described::of("story=step&rival=bbr") else {
            panic!("a run");
        };
        assert_eq!((run.story.as_str(), run.rival), ("step", "bbr"));
        assert!((run.capacity - 400.0).abs() < 1e-9);
        let third = run.offered.len() / 3;
        assert!((run.offered[third - 1] - 280.0).abs() < 1e-9);
        assert!((run.offered[third] - 1_200.0).abs() < 1e-9);
        assert!(run.harmful.iter().all(|rate| rate.abs() < 1e-9));
    }

    #[test]
    fn an_adversary_is_told_apart() {
        let Described::Run(run) = Described::of("story=own&adversary=flood&harm=2") else {
            panic!("a run");
        };
        assert!((run.harmful.last().unwrap() - 800.0).abs() < 1e-9);
        assert!(run.harmful[0].abs() < 1e-9, "it begins later");
    }

    #[test]
    fn faults_are_told() {
        let Described::Faults { faults } = Described::of("story=own&slots=0") else {
            panic!("faults");
        };
        assert_eq!(faults.len(), 1);
    }
}

//! A custom story: settings become a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_sim::number;
use tidegate_sim::profile::{
    Behaviour, Body, Change, Errors, HeaderTiming, ServiceTime, UpstreamMode,
};
use tidegate_sim::scenario::{
    Adversary, AdversaryKind, ClientProfile, Retries, STANDARD_UPSTREAM, Scenario, ScenarioSlo,
    TimedChange, UpstreamProfile,
};

use crate::load::{LoadCurve, LoadUnit};
use crate::values::FieldValues;

/// The default seed.
pub const SEED: u64 = 1;
/// The default load of each unit: below the capacity, far above it, and below it again.
#[must_use]
pub const fn first_load(unit: LoadUnit) -> &'static str {
    match unit {
        LoadUnit::Capacity => "0.7*10,2.5*10,0.7*10",
        LoadUnit::Rate => "280*10,1000*10,280*10",
    }
}
/// Requests of a run, retries included, that a browser plays within a few seconds.
pub const MOST_REQUESTS: f64 = 250_000.0;
/// Pause before the first retry.
const BACKOFF: Duration = Duration::from_millis(100);
/// How many times as long a slower service takes.
const SLOWER: f64 = 3.0;
/// The adversary begins after this share of the run, so that the run also shows the time before it.
const ADVERSARY_FROM: f64 = 0.2;
/// Time that is not scored, as a share of the run and at most.
const WARMUP_SHARE: f64 = 0.1;
const MOST_WARMUP: Duration = Duration::from_secs(2);

/// The settings of such a story in a link.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnStory {
    /// The load over time.
    pub load: LoadCurve,
    /// Everything else.
    pub values: FieldValues,
}

impl OwnStory {
    /// The scenario, without the settings that every story has; not checked yet.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let duration = self.seconds("len");
        let values = &self.values;
        let kind = AdversaryKind::ALL
            .into_iter()
            .find(|kind| kind.name() == values.choice("adversary"));
        let adversaries = kind.map(|kind| Adversary {
            start: duration.mul_f64(ADVERSARY_FROM),
            ..Adversary::of(kind, values.number("harm"))
        });
        Scenario {
            name: "playground".to_owned(),
            title: "A story of your own".to_owned(),
            prose: "Made in the playground.".to_owned(),
            seed: SEED,
            duration,
            warmup: duration.mul_f64(WARMUP_SHARE).min(MOST_WARMUP),
            workers: self.count("workers"),
            proxies: self.count("proxies"),
            callers: None,
            spread: Default::default(),
            counting: Default::default(),
            network: None,
            incidents: Vec::new(),
            slo: ScenarioSlo {
                quantile: values.choice("quantile").parse().unwrap_or(0.99),
                ..ScenarioSlo::default()
            },
            upstreams: vec![UpstreamProfile {
                behaviour: self.behaviour(),
                timeline: self.timeline(duration),
                ..UpstreamProfile::named(STANDARD_UPSTREAM)
            }],
            clients: vec![self.callers(duration)],
            adversaries: adversaries.into_iter().collect(),
            inner: Vec::new(),
            marks: Vec::new(),
            expect: BTreeMap::new(),
            expect_sim: BTreeMap::new(),
        }
    }

    /// Rejects runs that are too large for a browser.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let capacity = self.behaviour().capacity();
        let rate = self.load.mean_rate(capacity) * self.values.number("scale");
        let adversary = match self.values.choice("adversary") {
            "none" => 0.0,
            _ => capacity * self.values.number("harm") * (1.0 - ADVERSARY_FROM),
        };
        let attempts = 1.0 + self.values.number("retries");
        let found = self.values.number("len") * (rate * attempts + adversary);
        (found > MOST_REQUESTS).then(|| {
            format!(
                "load: found up to {found:.0} requests, expected at most {MOST_REQUESTS}: fewer slots, a slower service, \
                 less load, fewer retries or a shorter run make less"
            )
        })
    }

    fn behaviour(&self) -> Behaviour {
        let values = &self.values;
        let errors = values.number("errors") / 100.0;
        let body = self.millis("body");
        let body = (!body.is_zero()).then(|| Body {
            duration: ServiceTime::constant(body),
            holds_slot: values.choice("holds") == "yes",
            bytes: 0,
        });
        Behaviour {
            endpoints: self.count("endpoints"),
            slots: self.count("slots"),
            service: self.service(1.0),
            body,
            headers: HeaderTiming::AfterWork,
            errors: (errors > 0.0).then_some(Errors {
                share: errors,
                status: 500,
            }),
            ..Behaviour::default()
        }
    }

    fn service(&self, factor: f64) -> ServiceTime {
        let mean = self.millis("service").mul_f64(factor);
        let sigma = self.values.number("spread");
        if sigma > 0.0 {
            ServiceTime::Lognormal { mean, sigma }
        } else {
            ServiceTime::constant(mean)
        }
    }

    /// What happens to the service, and its return.
    fn timeline(&self, duration: Duration) -> Vec<TimedChange> {
        let slots = self.count("slots");
        let serving = Change::mode(UpstreamMode::Serve);
        let slow = |factor| Change {
            service: Some(self.service(factor)),
            ..Change::default()
        };
        let (bad, good) = match self.values.choice("incident") {
            "slow" => (slow(SLOWER), slow(1.0)),
            "half" => (Change::slots((slots / 2).max(1)), Change::slots(slots)),
            "fail" => (Change::mode(UpstreamMode::Fail), serving),
            "hang" => (Change::mode(UpstreamMode::Hang), serving),
            "refuse" => (Change::mode(UpstreamMode::Refuse), serving),
            _ => return Vec::new(),
        };
        let from = self.seconds("from");
        let changes = [(from, bad), (from + self.seconds("lasts"), good)];
        let changes = changes.into_iter().filter(|(at, _)| *at < duration);
        changes
            .map(|(at, change)| TimedChange { at, change })
            .collect()
    }

    fn callers(&self, duration: Duration) -> ClientProfile {
        let values = &self.values;
        let points = self.load.points(duration, values.number("scale"));
        let retries = self.count("retries");
        let batch = values.number("batch") / 100.0;
        let mut criticality = BTreeMap::new();
        if batch > 0.0 {
            criticality.insert("sheddable".to_owned(), batch);
            criticality.insert("critical".to_owned(), 1.0 - batch);
        }
        ClientProfile {
            deadline: self.millis("deadline"),
            retries: (retries > 0).then(|| Retries {
                max: retries,
                backoff: BACKOFF,
                steady: false,
                stubborn: values.choice("stubborn") == "yes",
                untold: false,
            }),
            criticality,
            ..ClientProfile::sending(points)
        }
    }

    fn count(&self, key: &str) -> u32 {
        u32::try_from(number::floor(self.values.number(key))).unwrap_or(u32::MAX)
    }

    fn millis(&self, key: &str) -> Duration {
        number::seconds(self.values.number(key) / 1_000.0)
    }

    fn seconds(&self, key: &str) -> Duration {
        number::seconds(self.values.number(key))
    }
}

//! The stories that a fleet plays.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::plan::{Fleet, FleetPhase, FleetSize, FleetTopology};
use crate::number;
use crate::profile::{Behaviour, Change, ServiceTime, UpstreamMode};
use crate::scenario::{
    Balancing, Callers, ClientProfile, Counting, HeavyCallers, LoadPoint, Network, RequestSpread,
    STANDARD_UPSTREAM, Scenario, ScenarioSlo, TimedChange, UpstreamProfile,
};

/// What happens to the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetStory {
    /// 0.7 x the capacity throughout.
    Steady,
    /// 0.7 x, then 2 x, then 0.7 x.
    Overload,
    /// The whole service answers 500 for a sixth of the time.
    Outage,
    /// Half of the endpoints leave and come back.
    HalfLost,
    /// As [`FleetStory::Overload`], but a tenth of the callers send ten times as much as the others.
    Unequal,
}

/// One way.
const DELAY: Duration = Duration::from_micros(500);
/// Mean service time, approximately: the capacity is exact, and slots are whole.
const SERVICE: Duration = Duration::from_millis(40);
/// Width of the log-normal service time.
const SIGMA: f64 = 0.5;
/// The phase in which there is too much load.
const OVERLOAD: &str = "overload";
/// Loads, as multiples of the capacity.
const USUAL: f64 = 0.7;
const TOO_MUCH: f64 = 2.0;
/// Seconds that proxies get to learn a change before they are judged, at most one `SETTLING_SHARE`th of the phase.
const SETTLING_S: u32 = 5;
const SETTLING_SHARE: u32 = 3;

impl FleetStory {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] = [
        Self::Steady,
        Self::Overload,
        Self::Outage,
        Self::HalfLost,
        Self::Unequal,
    ];

    /// Name on the command line, kebab-case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Overload => "overload",
            Self::Outage => "outage",
            Self::HalfLost => "half-lost",
            Self::Unequal => "unequal",
        }
    }

    /// What happens, in a sentence.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Steady => "0.7 x the capacity throughout",
            Self::Overload => "0.7 x, then 2 x, then 0.7 x the capacity",
            Self::Outage => "0.7 x the capacity; the whole service answers 500 for a while",
            Self::HalfLost => "0.7 x the capacity; half of the endpoints leave and come back",
            Self::Unequal => {
                "0.7 x, then 2 x, then 0.7 x; a tenth of the callers send ten times as much as the others"
            }
        }
    }

    /// Phases as names with their ends, in twelfths of the run.
    const fn twelfths(self) -> &'static [(&'static str, u32)] {
        match self {
            Self::Steady => &[("steady", 12)],
            Self::Overload | Self::Unequal => &[("before", 3), (OVERLOAD, 8), ("after", 12)],
            Self::Outage => &[("before", 4), ("outage", 6), ("after", 12)],
            Self::HalfLost => &[("before", 4), ("half lost", 8), ("after", 12)],
        }
    }

    fn phases(self, seconds: u32) -> Vec<FleetPhase> {
        let mut from_s = 0;
        let phase = |(name, end): &(&'static str, u32)| {
            let to_s = (seconds * end / 12).max(from_s + 1);
            let settling = SETTLING_S.min((to_s - from_s) / SETTLING_SHARE);
            let phase = FleetPhase {
                name,
                from_s,
                to_s,
                settled_s: from_s + settling,
            };
            from_s = to_s;
            phase
        };
        self.twelfths().iter().map(phase).collect()
    }

    fn load(self, phase: &FleetPhase) -> f64 {
        if phase.name == OVERLOAD {
            TOO_MUCH
        } else {
            USUAL
        }
    }

    /// The fleet that plays this story.
    #[must_use]
    pub fn fleet(self, size: &FleetSize, topology: FleetTopology) -> Fleet {
        let phases = self.phases(size.seconds.max(1));
        Fleet {
            scenario: self.scenario(size, topology, &phases),
            topology,
            phases,
            is_protected: true,
            knows_endpoints: true,
        }
    }

    fn scenario(
        self,
        size: &FleetSize,
        topology: FleetTopology,
        phases: &[FleetPhase],
    ) -> Scenario {
        let heavy = HeavyCallers {
            one_in: 10,
            times: 10,
        };
        let callers = Callers {
            count: size.callers.max(1),
            heavy: (self == Self::Unequal).then_some(heavy),
        };
        let seconds = f64::from(size.seconds.max(1));
        let weighed = |phase: &FleetPhase| f64::from(phase.to_s - phase.from_s) * self.load(phase);
        let mean_load = phases.iter().map(weighed).sum::<f64>() / seconds;
        let load = |phase: &FleetPhase| LoadPoint {
            at: Duration::from_secs(u64::from(phase.from_s)),
            x: Some(self.load(phase)),
            rps: None,
            ramp: false,
        };
        Scenario {
            name: format!("fleet-{}", self.name()),
            title: self.title().to_owned(),
            prose: self.title().to_owned(),
            seed: size.seed,
            duration: Duration::from_secs(u64::from(size.seconds.max(1))),
            warmup: Duration::ZERO,
            workers: 1,
            proxies: topology.proxies(callers.count),
            callers: Some(callers),
            spread: RequestSpread::default(),
            counting: Counting::Shared,
            network: Some(Network {
                delay: DELAY,
                jitter: Duration::ZERO,
            }),
            incidents: Vec::new(),
            slo: ScenarioSlo::default(),
            upstreams: vec![self.service(size, size.rps / mean_load, phases)],
            clients: vec![ClientProfile::sending(phases.iter().map(load).collect())],
            adversaries: Vec::new(),
            inner: Vec::new(),
            marks: Vec::new(),
            expect: BTreeMap::new(),
            expect_sim: BTreeMap::new(),
        }
    }

    fn service(self, size: &FleetSize, capacity: f64, phases: &[FleetPhase]) -> UpstreamProfile {
        let endpoints = size.endpoints.max(1);
        let each = capacity / f64::from(endpoints);
        let slots = (each * SERVICE.as_secs_f64())
            .round()
            .clamp(1.0, 1_000_000.0);
        let behaviour = Behaviour {
            endpoints,
            slots: u32::try_from(number::floor(slots)).unwrap_or(1),
            service: ServiceTime::Lognormal {
                mean: number::seconds(slots / each),
                sigma: SIGMA,
            },
            ..Behaviour::default()
        };
        let (there, gone) = match self {
            Self::Outage => (
                Change::mode(UpstreamMode::Serve),
                Change::mode(UpstreamMode::Fail),
            ),
            Self::HalfLost => (
                self::endpoints(endpoints),
                self::endpoints(endpoints.div_ceil(2)),
            ),
            Self::Steady | Self::Overload | Self::Unequal => (Change::default(), Change::default()),
        };
        let mut timeline = Vec::new();
        if let [_, middle, after] = phases
            && there != gone
        {
            for (phase, change) in [(middle, gone), (after, there)] {
                let at = Duration::from_secs(u64::from(phase.from_s));
                timeline.push(TimedChange { at, change });
            }
        }
        UpstreamProfile {
            behaviour,
            timeline,
            // Envoy's default in a mesh.
            balancing: Balancing::LeastRequest,
            ..UpstreamProfile::named(STANDARD_UPSTREAM)
        }
    }
}

fn endpoints(count: u32) -> Change {
    Change {
        endpoints: Some(count),
        ..Change::default()
    }
}

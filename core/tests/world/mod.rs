//! A small discrete-event world around the engine: open-loop callers, one upstream with slots and a queue, several
//! workers that exchange by tick. Enough to judge the control laws in milliseconds; one seed, one outcome.

mod oracle;
mod report;
mod run;

use std::collections::BTreeMap;

use tidegate_core::config::MINIMAL_EXAMPLE;

pub(crate) use report::Report;

/// What the upstream does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// Serves.
    Serve,
    /// Answers 500 at once.
    Fail,
    /// Never answers.
    Hang,
    /// Serves, but a share of the answers are errors and another share is delayed by 500 ms.
    Brownout { errors: f64, delayed: f64 },
}

/// A stretch of time with its own load and upstream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    /// Seconds.
    pub(crate) until: f64,
    /// Requests a second.
    pub(crate) rate: f64,
    /// Requests that the upstream works on at a time.
    pub(crate) slots: u32,
    /// Endpoints as the proxy knows them, 0 when unknown.
    pub(crate) endpoints: u32,
    pub(crate) behaviour: Behaviour,
}

impl Stage {
    /// A healthy upstream of 16 slots: 400 requests a second in the default world.
    pub(crate) const fn healthy(until: f64, rate: f64) -> Self {
        Self {
            until,
            rate,
            slots: 16,
            endpoints: 0,
            behaviour: Behaviour::Serve,
        }
    }
}

/// Something that happens to the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Incident {
    /// A worker's VM crashes: its requests are lost, a fresh one starts from what was learned.
    Crash { worker: usize },
    /// The leader is gone; nobody takes its place.
    LeaderLost,
    /// The leader resigns, a worker takes over.
    LeaderChanged,
}

/// Whether the workers can count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    Shared,
    Unshared,
}

/// Bursts on top of the rate; the rest of the period is idle enough to keep the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bursts {
    /// Seconds.
    pub(crate) period: f64,
    /// Seconds.
    pub(crate) length: f64,
    /// Of the mean rate.
    pub(crate) factor: f64,
}

/// How long the upstream works on a request: lognormal, in two kinds of request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// Seconds.
    pub(crate) mean: f64,
    pub(crate) sigma: f64,
    /// Share of requests of the slow kind, and their mean in seconds.
    pub(crate) slow_share: f64,
    pub(crate) slow_mean: f64,
}

/// A world to run.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) config: String,
    pub(crate) stages: Vec<Stage>,
    /// By second.
    pub(crate) incidents: Vec<(f64, Incident)>,
    pub(crate) workers: usize,
    pub(crate) counting: Counting,
    pub(crate) service: Service,
    /// Beyond this many waiting, the upstream answers 500 at once.
    pub(crate) queue: usize,
    /// A caller goes away after this many seconds.
    pub(crate) deadline: f64,
    /// A good answer comes within this many seconds.
    pub(crate) target: f64,
    pub(crate) retries: u32,
    /// Share of requests that are critical where not all are; 0 for all.
    pub(crate) critical_share: f64,
    pub(crate) bursts: Option<Bursts>,
    pub(crate) seed: u64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            config: MINIMAL_EXAMPLE.to_owned(),
            stages: Vec::new(),
            incidents: Vec::new(),
            workers: 2,
            counting: Counting::Shared,
            service: Service {
                mean: 0.040,
                sigma: 0.5,
                slow_share: 0.0,
                slow_mean: 0.0,
            },
            queue: usize::MAX,
            deadline: 1.0,
            target: 0.3,
            retries: 0,
            critical_share: 0.0,
            bursts: None,
            seed: 1,
        }
    }
}

impl World {
    /// The same world with each of the seeds that every law is judged by.
    pub(crate) fn run_all(&self) -> Vec<Report> {
        (1..=3)
            .map(|seed| {
                Self {
                    seed,
                    ..self.clone()
                }
                .run()
            })
            .collect()
    }

    fn end(&self) -> f64 {
        self.stages.last().map_or(0.0, |stage| stage.until)
    }

    fn stage(&self, now: f64) -> Stage {
        let current = self.stages.iter().find(|stage| now < stage.until);
        *current.or_else(|| self.stages.last()).unwrap()
    }

    fn mean_service(&self) -> f64 {
        let Service {
            mean,
            slow_share,
            slow_mean,
            ..
        } = self.service;
        mean * (1.0 - slow_share) + slow_mean * slow_share
    }
}

/// Sheds by reason.
pub(crate) type Sheds = BTreeMap<&'static str, u32>;

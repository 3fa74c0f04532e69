//! The simulated upstream: endpoints with slots, a waiting line in front of them, and stages of their life.
//!
//! What a request meets is decided when it arrives: its errors and delays, and how long it will hold a slot. A
//! change of the service time is for requests to come, as in the testbed's server.

use std::collections::VecDeque;
use std::time::Duration;

use crate::profile::{Behaviour, Mode};
use crate::rng::{self, Generator};
use crate::scenario::{Balancing, Stages, UpstreamProfile};

/// What an upstream sends back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reply {
    /// 200.
    #[default]
    Ok,
    /// Another status.
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// The connection is refused or breaks.
    Reset,
}

/// A request with what it needs of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) attempt: usize,
    pub(crate) service: Duration,
    /// Its answer comes so much later than the slot is free.
    pub(crate) delay: Duration,
}

/// What becomes of a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reception {
    /// It is answered at once.
    Answer(Reply),
    /// It takes a slot.
    Start(Job),
    /// It waits for a slot.
    Wait,
    /// It is never answered.
    Swallow,
}

/// One service.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) balancing: Balancing,
    whole: Life,
    rng: Generator,
    pub(crate) received: u64,
    pub(crate) received_while_down: u64,
}

/// A life in stages, and which one it is.
#[derive(Debug)]
struct Life {
    stages: Stages,
    current: usize,
}

impl Life {
    const fn new(stages: Stages) -> Self {
        Self { stages, current: 0 }
    }

    fn behaviour(&self) -> Option<&Behaviour> {
        self.stages
            .get(self.current)
            .map(|(_, behaviour)| behaviour)
    }

    /// Goes to the stage that holds at a time.
    fn follow(&mut self, at: Duration) {
        let next = self.stages.partition_point(|(from, _)| *from <= at);
        self.current = next.saturating_sub(1);
    }

    fn is_up(&self) -> bool {
        self.behaviour().is_some_and(|now| now.mode.is_up())
    }
}

impl Upstream {
    pub(crate) fn new(profile: &UpstreamProfile, rng: Generator) -> Self {
        let endpoints = 0..profile.max_endpoints();
        Self {
            endpoints: endpoints
                .map(|index| Endpoint {
                    life: Life::new(profile.stages_of(index)),
                    busy: 0,
                    line: VecDeque::new(),
                })
                .collect(),
            balancing: profile.balancing,
            whole: Life::new(profile.stages()),
            rng,
            received: 0,
            received_while_down: 0,
        }
    }

    /// Endpoints in rotation, at least 1.
    pub(crate) fn in_rotation(&self) -> u32 {
        self.whole.behaviour().map_or(1, |now| now.endpoints.max(1))
    }

    /// A request for `path` arrives at an endpoint.
    pub(crate) fn receive(&mut self, endpoint: usize, attempt: usize, path: &str) -> Reception {
        self.received += 1;
        self.received_while_down += u64::from(!self.whole.is_up());
        match self.endpoints.get_mut(endpoint) {
            Some(endpoint) => endpoint.receive(attempt, path, &mut self.rng),
            None => Reception::Swallow,
        }
    }

    /// An endpoint enters the stage of `at`; answers with the requests that get a slot by it, and whether it now
    /// breaks every connection.
    pub(crate) fn enter_stage(&mut self, endpoint: usize, at: Duration) -> (Vec<Job>, bool) {
        self.whole.follow(at);
        let Some(endpoint) = self.endpoints.get_mut(endpoint) else {
            return (Vec::new(), false);
        };
        let was_refusing = endpoint.is_refusing();
        endpoint.life.follow(at);
        let started = std::iter::from_fn(|| endpoint.start_next()).collect();
        (started, endpoint.is_refusing() && !was_refusing)
    }

    /// Requests in slots and in lines.
    pub(crate) fn occupancy(&self) -> (u64, u64) {
        let count = |len| u64::try_from(len).unwrap_or(u64::MAX);
        self.endpoints.iter().fold((0, 0), |(busy, waiting), e| {
            (busy + u64::from(e.busy), waiting + count(e.line.len()))
        })
    }
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    life: Life,
    busy: u32,
    line: VecDeque<Job>,
}

impl Endpoint {
    fn receive(&mut self, attempt: usize, path: &str, rng: &mut Generator) -> Reception {
        let Some(now) = self.life.behaviour() else {
            return Reception::Swallow;
        };
        match now.mode {
            Mode::Serve => {}
            Mode::Fail => return Reception::Answer(plain(500)),
            Mode::Hang => return Reception::Swallow,
            Mode::Refuse | Mode::Reset => return Reception::Answer(Reply::Reset),
        }
        let mut happens = |share: f64| share > 0.0 && rng::unit(rng) < share;
        if let Some(errors) = now.errors.filter(|errors| happens(errors.share)) {
            return Reception::Answer(plain(errors.status));
        }
        let late = now.delay.filter(|delay| happens(delay.share));
        let job = Job {
            attempt,
            service: now.service_for(path).sample(rng),
            delay: late.map_or(Duration::ZERO, |delay| delay.by),
        };
        if self.busy < now.slots {
            self.busy += 1;
            return Reception::Start(job);
        }
        let waiting = u32::try_from(self.line.len()).unwrap_or(u32::MAX);
        match now.queue.filter(|queue| waiting >= queue.max) {
            Some(queue) => Reception::Answer(Reply::Status {
                status: queue.status,
                retry_after: queue
                    .retry_after
                    .map(|seconds| Duration::from_secs(u64::from(seconds))),
            }),
            None => {
                self.line.push_back(job);
                Reception::Wait
            }
        }
    }

    /// A slot is free; answers with who gets it.
    pub(crate) fn release(&mut self) -> Option<Job> {
        self.busy = self.busy.saturating_sub(1);
        self.start_next()
    }

    fn start_next(&mut self) -> Option<Job> {
        let slots = self.life.behaviour().map_or(0, |now| now.slots);
        if self.busy >= slots {
            return None;
        }
        let job = self.line.pop_front()?;
        self.busy += 1;
        Some(job)
    }

    /// Whether a request of a caller that went away leaves at once.
    pub(crate) fn skips_abandoned(&self) -> bool {
        let now = self.life.behaviour();
        now.is_some_and(|now| now.abandoned == crate::profile::Abandoned::Skip)
    }

    /// Takes a request out of the line.
    pub(crate) fn forget(&mut self, attempt: usize) {
        self.line.retain(|job| job.attempt != attempt);
    }

    fn is_refusing(&self) -> bool {
        let now = self.life.behaviour();
        now.is_some_and(|now| now.mode == Mode::Refuse)
    }
}

const fn plain(status: u16) -> Reply {
    Reply::Status {
        status,
        retry_after: None,
    }
}

//! One endpoint: its connections, its line, its slots, and the stages of its life.
//!
//! A request's errors, delay and work are decided when it is complete at the endpoint. Only the slowdown by other requests
//! is computed when it gets its slot.

use std::collections::VecDeque;
use std::time::Duration;

use super::reception::{Acceptance, Flow, Job, Reception, UpstreamReply};
use crate::profile::{Abandoned, Behaviour, Lie, PauseClock, UpstreamMode};
use crate::rng::{self, Generator};
use crate::scenario::Stages;

/// The stages of an endpoint, and the current one.
#[derive(Debug)]
pub(super) struct Life {
    stages: Stages,
    current: usize,
}

impl Life {
    pub(super) const fn new(stages: Stages) -> Self {
        Self { stages, current: 0 }
    }

    pub(super) fn behaviour(&self) -> Option<&Behaviour> {
        self.stages
            .get(self.current)
            .map(|(_, behaviour)| behaviour)
    }

    /// Goes to the stage that holds at a time.
    pub(super) fn follow(&mut self, at: Duration) {
        let next = self.stages.partition_point(|(from, _)| *from <= at);
        self.current = next.saturating_sub(1);
    }

    pub(super) fn is_up(&self) -> bool {
        self.behaviour().is_some_and(|now| now.mode.is_up())
    }
}

/// One endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    life: Life,
    /// Its index, and the number of endpoints.
    place: (u32, u32),
    pauses: Option<PauseClock>,
    busy: u32,
    line: VecDeque<Job>,
    /// Requests that are accepted and have not ended.
    accepted: u32,
    /// Requests that wait to be accepted.
    backlog: VecDeque<usize>,
}

impl Endpoint {
    /// An idle endpoint, number `place.0` of `place.1`.
    pub(super) fn new(stages: Stages, place: (u32, u32)) -> Self {
        let mut endpoint = Self {
            life: Life::new(stages),
            place,
            pauses: None,
            busy: 0,
            line: VecDeque::new(),
            accepted: 0,
            backlog: VecDeque::new(),
        };
        endpoint.follow(Duration::ZERO);
        endpoint
    }

    /// Goes to the stage that holds at a time.
    pub(super) fn follow(&mut self, at: Duration) {
        self.life.follow(at);
        let pauses = self.behaviour().and_then(|now| now.pauses);
        let (index, count) = self.place;
        self.pauses = pauses.and_then(|pauses| pauses.clock(index, count));
    }

    pub(super) fn behaviour(&self) -> Option<&Behaviour> {
        self.life.behaviour()
    }

    /// When it stands still; none where it never does.
    pub(super) const fn pauses(&self) -> Option<PauseClock> {
        self.pauses
    }

    /// Requests in slots.
    pub(super) const fn busy(&self) -> u32 {
        self.busy
    }

    /// Requests in the line or not accepted.
    pub(super) fn waiting(&self) -> usize {
        self.line.len() + self.backlog.len()
    }

    /// Accepts or refuses a connection, or lets it wait.
    pub(super) fn accept(&mut self, attempt: usize) -> Acceptance {
        if self.is_refusing() {
            return Acceptance::Refused;
        }
        let limit = self.behaviour().and_then(|now| now.connections);
        match limit.filter(|limit| self.accepted >= limit.max) {
            Some(limit) if len(&self.backlog) >= limit.backlog => Acceptance::Refused,
            Some(_) => {
                self.backlog.push_back(attempt);
                Acceptance::Wait
            }
            None => {
                self.accepted += 1;
                Acceptance::Accepted
            }
        }
    }

    /// Accepts the next request that waits for it, if there is room.
    pub(super) fn accept_next(&mut self) -> Option<usize> {
        let limit = self.behaviour().and_then(|now| now.connections);
        if limit.is_some_and(|limit| self.accepted >= limit.max) {
            return None;
        }
        let attempt = self.backlog.pop_front()?;
        self.accepted += 1;
        Some(attempt)
    }

    /// A request that was accepted has ended.
    pub(super) const fn disconnect(&mut self) {
        self.accepted = self.accepted.saturating_sub(1);
    }

    /// A request is complete.
    pub(super) fn receive(&mut self, attempt: usize, path: &str, rng: &mut Generator) -> Reception {
        let Some(now) = self.life.behaviour() else {
            return Reception::Swallow;
        };
        match now.mode {
            UpstreamMode::Serve => {}
            UpstreamMode::Fail => return Reception::Answer(UpstreamReply::status(500, None)),
            UpstreamMode::Hang => return Reception::Swallow,
            UpstreamMode::Refuse | UpstreamMode::Reset => {
                return Reception::Answer(UpstreamReply::Reset);
            }
        }
        if let Some(status) = now.failing.get(path) {
            return Reception::Answer(UpstreamReply::status(*status, None));
        }
        if let Some(lie) = now.lies.get(path) {
            return match *lie {
                Lie::RetryAfter { seconds } => {
                    Reception::Answer(UpstreamReply::status(Lie::STATUS, Some(seconds)))
                }
                Lie::Silence => Reception::Silence,
                // No proxy accepts such headers.
                Lie::HugeHeaders { .. } => Reception::Answer(UpstreamReply::Reset),
            };
        }
        let mut happens = |share: f64| share > 0.0 && rng::unit(rng) < share;
        if let Some(errors) = now.errors.filter(|errors| happens(errors.share)) {
            return Reception::Answer(UpstreamReply::status(errors.status, None));
        }
        let late = now.delay.filter(|delay| happens(delay.share));
        let job = Job {
            attempt,
            service: now.service_for(path).sample(rng),
            delay: late.map_or(Duration::ZERO, |delay| delay.by),
            body: now.body_for(path).map(|body| Flow {
                duration: body.duration.sample(rng),
                holds_slot: body.holds_slot,
            }),
        };
        if self.busy < now.slots {
            return Reception::Start(self.begin(job));
        }
        match now.queue.filter(|queue| len(&self.line) >= queue.max) {
            Some(queue) => {
                Reception::Answer(UpstreamReply::status(queue.status, queue.retry_after))
            }
            None => {
                self.line.push_back(job);
                Reception::Wait
            }
        }
    }

    /// A slot is free; returns the request that gets it.
    pub(crate) fn release(&mut self) -> Option<Job> {
        self.busy = self.busy.saturating_sub(1);
        self.start_next()
    }

    pub(super) fn start_next(&mut self) -> Option<Job> {
        let slots = self.behaviour().map_or(0, |now| now.slots);
        if self.busy >= slots {
            return None;
        }
        let job = self.line.pop_front()?;
        Some(self.begin(job))
    }

    /// A request gets a slot, and is slowed down by those that have one.
    fn begin(&mut self, job: Job) -> Job {
        self.busy += 1;
        let slowdown = self
            .behaviour()
            .map_or(1.0, |now| now.slowdown(f64::from(self.busy)));
        Job {
            service: if slowdown > 1.0 {
                job.service.mul_f64(slowdown)
            } else {
                job.service
            },
            ..job
        }
    }

    /// Whether a request of a caller that went away leaves at once.
    pub(super) fn skips_abandoned(&self) -> bool {
        let now = self.behaviour();
        now.is_some_and(|now| now.abandoned == Abandoned::Skip)
    }

    /// Removes a request from the line and the backlog.
    pub(super) fn forget(&mut self, attempt: usize) {
        self.line.retain(|job| job.attempt != attempt);
        self.backlog.retain(|waiting| *waiting != attempt);
    }

    pub(super) fn is_refusing(&self) -> bool {
        let now = self.behaviour();
        now.is_some_and(|now| now.mode == UpstreamMode::Refuse)
    }
}

fn len<T>(line: &VecDeque<T>) -> u32 {
    u32::try_from(line.len()).unwrap_or(u32::MAX)
}

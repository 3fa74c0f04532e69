//! One engine that serves alone, under ordinary traffic.

use tidegate_core::{
    Decision, Directive, Engine, Failure, GivenRequest, Instant, Outcome, Permit, Unshared,
    UpstreamId, UpstreamSnapshot,
};

use super::{MILLI, config};

/// An engine, its one upstream, and the time.
pub(crate) struct Alone {
    pub(crate) engine: Engine,
    pub(crate) upstream: UpstreamId,
    millis: u64,
}

/// Requests that are answered well, in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Traffic {
    pub(crate) latency: u64,
    /// Between two requests.
    pub(crate) gap: u64,
    pub(crate) span: u64,
}

impl Alone {
    pub(crate) fn new(config_text: &str) -> Self {
        let mut engine = Engine::new(config(config_text), Instant::ZERO, 1);
        let upstream = engine.upstream("backend", None, Instant::ZERO);
        Self {
            engine,
            upstream,
            millis: 0,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.millis * MILLI)
    }

    pub(crate) fn snapshot(&self) -> UpstreamSnapshot {
        self.engine.snapshot(self.now()).upstreams[self.upstream.index()].clone()
    }

    /// What holds after some ordinary traffic.
    pub(crate) fn directive(&mut self) -> Directive {
        self.drive(Traffic {
            latency: 10,
            gap: 5,
            span: 500,
        });
        let learned = self.engine.learned(self.now());
        learned.entries().next().unwrap()
    }

    pub(crate) fn admit(&mut self) -> Option<Permit> {
        let (upstream, now) = (self.upstream, self.now());
        let mut request = GivenRequest::default();
        match self
            .engine
            .admit(upstream, &mut request, &mut Unshared, now)
        {
            Decision::Admit(permit) => Some(permit),
            Decision::Shed(_) => None,
        }
    }

    /// The response headers came.
    pub(crate) fn respond(&mut self, permit: &mut Permit) {
        let now = self.now();
        self.engine
            .respond(permit, Outcome::Success, &mut Unshared, now);
    }

    pub(crate) fn complete(&mut self, permit: Permit, outcome: Outcome) {
        let now = self.now();
        self.engine.complete(permit, outcome, &mut Unshared, now);
    }

    /// Half a tick's time, and a tick.
    pub(crate) fn tick(&mut self) {
        self.millis += 50;
        let now = self.now();
        self.engine.tick(&mut Unshared, now);
    }

    /// Says how many requests were shed.
    pub(crate) fn drive(&mut self, traffic: Traffic) -> u32 {
        let mut under_way = Vec::new();
        let end = self.millis + traffic.span;
        let mut sheds = 0;
        while self.millis < end || !under_way.is_empty() {
            self.millis += 1;
            for (_, mut permit) in under_way.extract_if(.., |(due, _)| *due <= self.millis) {
                let now = Instant::from_nanos(self.millis * MILLI);
                self.engine
                    .respond(&mut permit, Outcome::Success, &mut Unshared, now);
                self.engine
                    .complete(permit, Outcome::Success, &mut Unshared, now);
            }
            if self.millis < end && self.millis.is_multiple_of(traffic.gap) {
                match self.admit() {
                    Some(permit) => under_way.push((self.millis + traffic.latency, permit)),
                    None => sheds += 1,
                }
            }
            if self.millis.is_multiple_of(100) {
                let now = self.now();
                self.engine.tick(&mut Unshared, now);
            }
        }
        // The last answers are heard of.
        self.tick();
        sheds
    }

    /// Requests that fail at once, a few milliseconds apart, until the breaker is open.
    pub(crate) fn fail(&mut self) {
        for _ in 0..300 {
            self.millis += 5;
            let Some(permit) = self.admit() else {
                break;
            };
            self.complete(permit, Outcome::Failure(Failure::Connection));
        }
        self.tick();
    }
}

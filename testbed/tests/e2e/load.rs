//! Callers that count their answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_testbed::client::{Call, CallError, CallReply, Caller};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::stage::{BOUND, Stage, ensure};

/// Prefix of the response code details of every shed.
pub(crate) const SHED: &str = "tidegate_shed_";

/// This many failures in a row open any breaker.
pub(crate) const ENOUGH: u64 = 60;
/// Pause between calls that may open a breaker. A breaker first opens after at least a second without a success: 60 calls
/// take three.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether the filter shed the request.
pub(crate) fn is_shed(reply: &CallReply) -> bool {
    reply
        .details()
        .is_some_and(|details| details.starts_with(SHED))
}

/// The results of many calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Answered 200 by the upstream.
    pub(crate) ok: u64,
    /// Answered by the filter.
    pub(crate) shed: u64,
    /// Answered otherwise.
    pub(crate) other: u64,
    /// Not answered: the connection broke, or the caller gave up after a second.
    pub(crate) none: u64,
}

impl Tally {
    fn add(&mut self, reply: Option<&CallReply>) {
        match reply {
            Some(reply) if is_shed(reply) => self.shed += 1,
            Some(reply) if reply.status == 200 => self.ok += 1,
            Some(_) => self.other += 1,
            None => self.none += 1,
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            ok: self.ok + other.ok,
            shed: self.shed + other.shed,
            other: self.other + other.other,
            none: self.none + other.none,
        }
    }

    pub(crate) const fn all(&self) -> u64 {
        self.ok + self.shed + self.other + self.none
    }
}

/// Sends calls one after the other.
pub(crate) async fn in_turn(caller: &Caller, call: &Call, count: u64) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..count {
        let reply = timeout(BOUND, caller.call(call)).await;
        tally.add(reply.ok().and_then(Result::ok).as_ref());
    }
    tally
}

/// The same with pauses, so that 60 failures open a breaker that may open.
pub(crate) async fn slowly(caller: &Caller, call: &Call, count: u64) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..count {
        let one = in_turn(caller, call, 1).await;
        tally = tally.and(one);
        sleep(PAUSE).await;
    }
    tally
}

/// Sends all calls at once, on as many connections, which reach all workers, except once in thousands of times.
pub(crate) async fn together(caller: &Caller, call: &Call, count: u64) -> Tally {
    let mut calls = JoinSet::new();
    for _ in 0..count {
        let (caller, call) = (caller.clone(), call.clone());
        calls.spawn(async move { timeout(BOUND, caller.call(&call)).await });
    }
    let mut tally = Tally::default();
    while let Some(reply) = calls.join_next().await {
        tally.add(reply.unwrap().ok().and_then(Result::ok).as_ref());
    }
    tally
}

/// Sends calls one after the other, with pauses, until the filter sheds one. Returns how many calls came before it, and its
/// answer. It gives up after [`ENOUGH`] calls and [`BOUND`], whichever is later: a busy machine delays the ticks that open
/// the breaker, and some calls take a second each.
pub(crate) async fn until_shed(stage: &Stage, caller: &Caller, call: &Call) -> (u64, CallReply) {
    let started = Instant::now();
    let mut passed = 0;
    while passed < ENOUGH || started.elapsed() < BOUND {
        if let Ok(Ok(reply)) = timeout(BOUND, caller.call(call)).await
            && is_shed(&reply)
        {
            return (passed, reply);
        }
        passed += 1;
        sleep(PAUSE).await;
    }
    stage
        .fail(&format!("{passed} calls, none was shed: {call:?}"))
        .await
}

/// Sends failing calls until every worker knows that the breaker of `upstream` is open.
pub(crate) async fn open_breaker(stage: &Stage, caller: &Caller, call: &Call, upstream: &str) {
    until_shed(stage, caller, call).await;
    stage
        .until("the whole proxy knows of the open breaker", async || {
            stage.opened(upstream).await > 0 && together(caller, call, 16).await.shed == 16
        })
        .await;
}

/// Sends `rate` calls a second for `duration`, regardless of their results. `call` makes each call from its number and gives
/// its class; the results are tallied by class. A caller without an answer gives up after a second.
pub(crate) async fn pour<const CLASSES: usize>(
    caller: &Caller,
    rate: u32,
    duration: Duration,
    call: impl Fn(u64) -> (usize, Call),
) -> [Tally; CLASSES] {
    let caller = Arc::new(caller.clone());
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let count = u64::from(rate) * duration.as_secs();
    let mut calls = JoinSet::new();
    let mut tallies = [Tally::default(); CLASSES];
    for number in 0..count {
        ticks.tick().await;
        let (class, call) = call(number);
        let caller = Arc::clone(&caller);
        calls.spawn(async move {
            let reply = timeout(Duration::from_secs(1), caller.call(&call)).await;
            (class, reply.ok().and_then(Result::ok))
        });
        while let Some(done) = calls.try_join_next() {
            let (class, reply) = done.unwrap();
            tallies[class].add(reply.as_ref());
        }
    }
    while let Some(done) = calls.join_next().await {
        let (class, reply) = done.unwrap();
        tallies[class].add(reply.as_ref());
    }
    tallies
}

/// Calls that are under way together; dropping this abandons those that are not answered.
pub(crate) struct Crowd {
    calls: JoinSet<Result<CallReply, CallError>>,
    replies: Vec<CallReply>,
}

impl Crowd {
    /// Sends `count` calls at once.
    pub(crate) fn send(caller: &Caller, call: &Call, count: usize) -> Self {
        let mut crowd = Self {
            calls: JoinSet::new(),
            replies: Vec::new(),
        };
        crowd.join(caller, call, count);
        crowd
    }

    /// Sends `count` further calls.
    pub(crate) fn join(&mut self, caller: &Caller, call: &Call, count: usize) {
        for _ in 0..count {
            let (caller, call) = (caller.clone(), call.clone());
            self.calls.spawn(async move { caller.call(&call).await });
        }
    }

    /// The answers so far; a call that ended without an answer fails the test.
    pub(crate) fn replies(&mut self) -> &[CallReply] {
        while let Some(done) = self.calls.try_join_next() {
            self.replies.push(done.unwrap().unwrap());
        }
        &self.replies
    }

    /// Number of calls without an answer.
    pub(crate) fn waiting(&mut self) -> usize {
        self.replies();
        self.calls.len()
    }

    /// Waits until all calls except `held`, which an upstream holds, are answered.
    pub(crate) async fn settle(&mut self, stage: &Stage, held: usize) {
        stage
            .until(&format!("all calls but {held} are answered"), async || {
                self.waiting() <= held
            })
            .await;
        ensure!(
            stage,
            self.waiting() == held,
            "{} calls wait, expected {held}",
            self.waiting()
        );
    }
}

//! Many requests, and how they are answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_meshbed::until;
use tidegate_testbed::client::Caller;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// The status of shed requests in these tests. No other answer has it.
pub(crate) const SHED: u16 = 529;

/// A caller that waits longer than this gives up.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many requests were answered, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LoadTally {
    /// Answered 200.
    pub(crate) ok: u64,
    /// Shed by the filter.
    pub(crate) shed: u64,
    /// Answered with another status, or not at all.
    pub(crate) lost: u64,
}

impl LoadTally {
    /// All of them.
    pub(crate) const fn sum(&self) -> u64 {
        self.ok + self.shed + self.lost
    }

    /// Checks the answers to twice the capacity. In theory half of the requests are shed. On a busy machine fewer are
    /// shed, but never none.
    #[track_caller]
    pub(crate) fn is_that_of_twice_the_capacity(&self) {
        assert!(self.shed > self.ok / 4, "{self:?}");
        assert!(self.ok > self.sum() / 4, "{self:?}");
        assert!(
            self.lost < self.ok / 20,
            "every admitted request is answered: {self:?}"
        );
    }

    fn add(&mut self, status: Option<u16>) {
        match status {
            Some(200) => self.ok += 1,
            Some(SHED) => self.shed += 1,
            _ => self.lost += 1,
        }
    }
}

/// Sends `rate` requests a second for `duration`, whatever their answers are.
pub(crate) async fn pour(target: SocketAddr, rate: u32, duration: Duration) -> LoadTally {
    pour_from(&Caller::http1(target), rate, duration).await
}

/// The same, from the given caller.
pub(crate) async fn pour_from(caller: &Caller, rate: u32, duration: Duration) -> LoadTally {
    let mut ticks = interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = JoinSet::new();
    let mut tally = LoadTally::default();
    for _ in 0..u64::from(rate) * duration.as_secs() {
        ticks.tick().await;
        let caller = caller.clone();
        calls.spawn(async move {
            let reply = timeout(PATIENCE, caller.get("/")).await;
            reply.ok()?.ok().map(|reply| reply.status)
        });
    }
    while let Some(status) = calls.join_next().await {
        tally.add(status.unwrap());
    }
    tally
}

/// Callers that send one request after another until they are stopped.
pub(crate) struct Steady {
    stop: Arc<AtomicBool>,
    ok: Arc<AtomicU64>,
    callers: Vec<JoinHandle<LoadTally>>,
}

impl Steady {
    /// Starts this many callers.
    pub(crate) fn start(target: SocketAddr, callers: usize) -> Self {
        let (stop, ok) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let caller = || {
            let (stop, ok, caller) = (Arc::clone(&stop), Arc::clone(&ok), Caller::http1(target));
            tokio::spawn(async move {
                let mut tally = LoadTally::default();
                while !stop.load(Ordering::Relaxed) {
                    let reply = timeout(PATIENCE, caller.get("/")).await;
                    let status = reply.ok().and_then(Result::ok).map(|reply| reply.status);
                    tally.add(status);
                    ok.store(ok.load(Ordering::Relaxed).max(tally.ok), Ordering::Relaxed);
                }
                tally
            })
        };
        Self {
            callers: (0..callers).map(|_| caller()).collect(),
            stop,
            ok,
        }
    }

    /// Waits until a caller has this many more answers.
    pub(crate) async fn goes_on(&self, answers: u64) {
        let before = self.ok.load(Ordering::Relaxed);
        until("more requests are answered", async || {
            self.ok.load(Ordering::Relaxed) >= before + answers
        })
        .await;
    }

    /// Stops the callers, and returns the answers of all requests.
    pub(crate) async fn end(self) -> LoadTally {
        self.stop.store(true, Ordering::Relaxed);
        let mut sum = LoadTally::default();
        for caller in self.callers {
            let tally = caller.await.unwrap();
            sum.ok += tally.ok;
            sum.shed += tally.shed;
            sum.lost += tally.lost;
        }
        sum
    }
}

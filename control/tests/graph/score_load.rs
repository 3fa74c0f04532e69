//! The load for the cases of the score, and what its callers counted.
//!
//! Each upstream shows one part of the score:
//!
//! | upstream | what happens | part |
//! |---|---|---|
//! | `mixed` | one answer of 16 is late, and one of 25 fails | latency, success |
//! | `bursts` | bursts above the limit of an upstream that has little to do | needless |
//! | `watched` | the same, in mode `observe` | needless, of requests that would have been shed |
//! | `busy` | twice what it can serve | none: what is shed was not needless |

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidegate_testbed::client::{Call, CallReply, Caller};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::truth::now;

/// The latency target of the objective. The policy has the same value.
pub(crate) const TARGET: Duration = Duration::from_millis(250);
/// If later requests are answered first, the filter stops counting a request as load after this time. It is twice the
/// latency target.
const NO_LOAD: Duration = Duration::from_millis(500);
/// The limit of `bursts` and `watched`. The policy has the same value.
pub(crate) const LIMIT: u32 = 8;
/// The number of requests in a burst. The share of them above the limit gives a score between 0 and 1.
const BURST: u32 = 11;
/// The number of single requests between two bursts, and the time between two of them.
const SINGLES: u32 = 100;
const SINGLE: Duration = Duration::from_millis(20);
/// The service time of `bursts` and `watched`.
pub(crate) const BURST_SERVICE: Duration = Duration::from_millis(40);
/// The time between two requests to `mixed` and to `busy`.
const MIXED: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_millis(10);
/// The capacity of `busy`: 50 requests a second.
pub(crate) const BUSY_SLOTS: u32 = 4;
pub(crate) const BUSY_SERVICE: Duration = Duration::from_millis(80);

/// What a caller saw of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) requests: f64,
    /// Answers from the upstream.
    pub(crate) answers: f64,
    pub(crate) late: f64,
    pub(crate) failed: f64,
    pub(crate) shed: f64,
    /// The time that requests counted as load, in seconds.
    pub(crate) loaded: f64,
    /// Requests that were sent while the limit was already used up.
    pub(crate) beyond: f64,
}

/// All requests so far: the end of each in seconds since 1970, and what its caller saw.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    seen: Mutex<BTreeMap<&'static str, Vec<(f64, Counted)>>>,
}

impl Counts {
    fn note(&self, upstream: &'static str, one: Counted) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(upstream).or_default().push((now(), one));
    }

    /// The counts of an upstream for requests that ended after `from` and until `to`.
    pub(crate) fn between(&self, upstream: &str, from: f64, to: f64) -> Counted {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let all = seen.get(upstream).into_iter().flatten();
        let mut sum = Counted::default();
        for (_, one) in all.filter(|(at, _)| *at > from && *at <= to) {
            sum.requests += one.requests;
            sum.answers += one.answers;
            sum.late += one.late;
            sum.failed += one.failed;
            sum.shed += one.shed;
            sum.loaded += one.loaded;
            sum.beyond += one.beyond;
        }
        sum
    }
}

/// Sends requests to one upstream, and counts them.
#[derive(Clone, Debug)]
struct Way {
    upstream: &'static str,
    proxy: Caller,
    counts: Arc<Counts>,
    under_way: Arc<AtomicU32>,
}

impl Way {
    async fn call(self) {
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let call = Call::get("/").authority(self.upstream);
        let reply = self.proxy.call(&call).await;
        let latency = begun.elapsed();
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        // If the proxy did not accept the request, the filter did not see it.
        let Ok(reply) = reply else { return };
        let mut one = counted(&reply, latency);
        one.beyond = share(before >= LIMIT);
        self.counts.note(self.upstream, one);
    }

    /// Sends requests at a steady pace, without waiting for answers, until the task is aborted.
    async fn at_a_pace(self, distance: Duration) {
        let mut due = interval(distance);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut under_way = JoinSet::new();
        loop {
            due.tick().await;
            while under_way.try_join_next().is_some() {}
            under_way.spawn(self.clone().call());
        }
    }

    /// Sends single requests, then many at the same moment, and repeats this until the task is aborted.
    async fn in_bursts(self) {
        loop {
            let mut under_way = JoinSet::new();
            for _ in 0..SINGLES {
                under_way.spawn(self.clone().call());
                sleep(SINGLE).await;
            }
            under_way.join_all().await;
            let burst: JoinSet<()> = (0..BURST).map(|_| self.clone().call()).collect();
            burst.join_all().await;
        }
    }
}

fn counted(reply: &CallReply, latency: Duration) -> Counted {
    let is_shed = reply
        .details()
        .is_some_and(|details| details.starts_with("tidegate_shed_"));
    Counted {
        requests: 1.0,
        answers: share(!is_shed),
        late: share(!is_shed && latency > TARGET),
        failed: share(!is_shed && reply.status >= 500),
        shed: share(is_shed),
        loaded: share(!is_shed) * latency.min(NO_LOAD).as_secs_f64(),
        beyond: 0.0,
    }
}

fn share(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// Starts the load on all upstreams behind the proxy. The load ends when the set is dropped.
pub(crate) fn load(proxy: &Caller, counts: &Arc<Counts>) -> JoinSet<()> {
    let way = |upstream| Way {
        upstream,
        proxy: proxy.with_own_connections(),
        counts: Arc::clone(counts),
        under_way: Arc::default(),
    };
    let mut all = JoinSet::new();
    all.spawn(way("mixed").at_a_pace(MIXED));
    all.spawn(way("bursts").in_bursts());
    all.spawn(way("watched").in_bursts());
    all.spawn(way("busy").at_a_pace(BUSY));
    all
}

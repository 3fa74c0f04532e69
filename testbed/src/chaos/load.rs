//! Callers: an open loop that can pause, and what happened to each request.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::backend::{LONG_PATH, NUMBER_HEADER};
use super::clock::now_us;
use super::fault::UpstreamSide;
use crate::client::{Call, Caller};

/// Requests a second, to both upstreams together.
pub const RATE: f64 = 120.0;

/// Share of requests that take long.
const LONG_SHARE: f64 = 0.03;

/// A caller gives up after this: later than Envoy's timeout, so that it gets Envoy's reply.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Callers, each with connections of its own, so that all workers have some.
const CALLERS: usize = 16;

/// How a request ended for its caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// With the upstream's answer.
    Answered,
    /// The filter refused it.
    Shed,
    /// With another answer: status and response code details.
    Failed(u16, String),
    /// The connection ended first.
    Broken,
    /// The caller gave up.
    GaveUp,
}

/// One request as its caller saw it; times on the machine's monotonic clock, microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its number, from 0.
    pub number: u64,
    /// The upstream it is for.
    pub side: UpstreamSide,
    /// When it was sent.
    pub sent_us: u64,
    /// When it ended.
    pub ended_us: u64,
    /// How it ended.
    pub end: End,
}

#[derive(Debug)]
struct SharedLoad {
    callers: Mutex<Vec<Caller>>,
    is_paused: AtomicBool,
    in_flight: AtomicU64,
    records: Mutex<Vec<CallRecord>>,
}

/// The callers; dropping this stops them.
#[derive(Debug)]
pub struct Load {
    shared: Arc<SharedLoad>,
    task: JoinHandle<()>,
}

impl Load {
    /// Begins to call the proxy at `target`; the times of the requests are drawn from `seed`.
    #[must_use]
    pub fn start(target: SocketAddr, seed: u64) -> Self {
        let shared = Arc::new(SharedLoad {
            callers: Mutex::new((0..CALLERS).map(|_| Caller::http1(target)).collect()),
            is_paused: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
            records: Mutex::default(),
        });
        let task = tokio::spawn(call_on(seed, Arc::clone(&shared)));
        Self { shared, task }
    }

    /// Stops sending until [`Self::resume`].
    pub fn pause(&self) {
        self.shared.is_paused.store(true, Ordering::SeqCst);
    }

    /// Sends again.
    pub fn resume(&self) {
        self.shared.is_paused.store(false, Ordering::SeqCst);
    }

    /// Closes all idle connections.
    pub fn hang_up(&self) {
        let mut callers = lock(&self.shared.callers);
        callers
            .iter_mut()
            .for_each(|caller| *caller = caller.with_own_connections());
    }

    /// Requests that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.shared.in_flight.load(Ordering::SeqCst)
    }

    /// The number of requests that ended since `from_us`, and how many of them the upstream answered.
    #[must_use]
    pub fn lately(&self, from_us: u64) -> (usize, usize) {
        let records = lock(&self.shared.records);
        let lately = records.iter().rev().take_while(|it| it.ended_us >= from_us);
        lately.fold((0, 0), |(all, answered), record| {
            (all + 1, answered + usize::from(record.end == End::Answered))
        })
    }

    /// Records of the requests that ended since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<CallRecord> {
        std::mem::take(&mut *lock(&self.shared.records))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn call_on(seed: u64, shared: Arc<SharedLoad>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut due = Instant::now();
    for number in 0.. {
        // Gaps of a Poisson process.
        let gap = -(1.0 - rng.random::<f64>()).ln() / RATE;
        due += Duration::from_secs_f64(gap);
        let side = if rng.random() {
            UpstreamSide::Alpha
        } else {
            UpstreamSide::Beta
        };
        let path = if rng.random_bool(LONG_SHARE) {
            LONG_PATH
        } else {
            "/"
        };
        let index = rng.random_range(0..CALLERS);
        // Requests that a suspended machine has missed are not sent all at once.
        due = due.max(Instant::now());
        sleep_until(due).await;
        while shared.is_paused.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let caller = lock(&shared.callers).get(index).cloned();
        let Some(caller) = caller else {
            continue;
        };
        shared.in_flight.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let sent_us = now_us();
            let call = Call::get(path)
                .authority(side.name())
                .header(NUMBER_HEADER, &number.to_string());
            let end = one(&caller, &call, side).await;
            let record = CallRecord {
                number,
                side,
                sent_us,
                ended_us: now_us(),
                end,
            };
            lock(&shared.records).push(record);
            shared.in_flight.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn one(caller: &Caller, call: &Call, side: UpstreamSide) -> End {
    let reply = match timeout(DEADLINE, caller.call(call)).await {
        Err(_) => return End::GaveUp,
        Ok(Err(_)) => return End::Broken,
        Ok(Ok(reply)) => reply,
    };
    let details = reply.details().unwrap_or_default();
    if details.starts_with("tidegate_shed_") {
        End::Shed
    } else if reply.status == 200 && reply.header("x-upstream") == Some(side.name()) {
        End::Answered
    } else {
        End::Failed(reply.status, details.to_owned())
    }
}

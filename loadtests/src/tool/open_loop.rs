//! The testbed's open loop: requests are sent when they are due, regardless of earlier ones.
//!
//! Callers may retry. A record only has the final result for the caller; the number of attempts in each second comes from the
//! Envoy in front, because a retry storm consists of attempts.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_sim::arrivals::{self, Arrival};
use tidegate_sim::number::{float, floor};
use tidegate_sim::scenario::Scenario;
use tidegate_testbed::client::open_loop;
use tidegate_testbed::envoy::Envoy;
use tidegate_testbed::upstream::Upstream;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::tally::{Fate, TalliedRequest};
use crate::result::Point;
use crate::topology::{Seen, seen};

/// Time before the first arrival in which connections are opened and filters start.
const HEAD_START: Duration = Duration::from_millis(200);

/// Interval between two readings of Envoy's counters.
const LOOK: Duration = Duration::from_secs(1);

/// How long to wait after the story for callers that still retry; then they count as failed.
const LINGER: Duration = Duration::from_secs(2);

/// The results of a story.
#[derive(Debug, Clone, Default)]
pub struct OpenLoopResult {
    /// The requests of the callers, each with its last attempt.
    pub requests: Vec<TalliedRequest>,
    /// Attempts, and how many of them Envoy shed, for each second.
    pub attempts: Vec<Seen>,
}

/// Plays `scenario` against `entry`; `upstream` plays its timeline, and attempts are counted at `front`.
///
/// A request of a closed loop that has not ended a while after the story is not in the result: only arrivals of an open loop are
/// known before they end.
pub async fn tell(
    scenario: &Scenario,
    entry: SocketAddr,
    upstream: &Upstream,
    front: &Envoy,
) -> OpenLoopResult {
    let start = Instant::now() + HEAD_START;
    let timeline = scenario
        .upstreams
        .first()
        .map(|profile| profile.timeline_of(0))
        .unwrap_or_default();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let arrivals = Arc::new(arrivals::schedule(scenario));
    let mut attempts = Vec::new();
    {
        let all = Arc::clone(&arrivals);
        let replay = open_loop::replay(Arc::new(scenario.clone()), all, entry, start, sender);
        let acting = async {
            upstream.follow(&timeline, start).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = replay => {}
            () = acting => {}
            () = look(front, start, &mut attempts) => {}
            () = sleep_until(start + scenario.duration + LINGER) => {}
        }
    }
    let mut requests = Vec::new();
    let mut ended = BTreeSet::new();
    while let Ok(record) = receiver.try_recv() {
        ended.insert((record.arrival.at, record.arrival.client));
        requests.push(TalliedRequest::from(&record));
    }
    let is_open = |arrival: &&Arrival| !ended.contains(&(arrival.at, arrival.client));
    requests.extend(
        arrivals
            .iter()
            .filter(is_open)
            .map(|arrival| TalliedRequest {
                at_s: arrival.at.as_secs_f64(),
                latency_ms: (scenario.duration + LINGER - arrival.at).as_secs_f64() * 1_000.0,
                fate: Fate::Failed,
            }),
    );
    OpenLoopResult { requests, attempts }
}

/// Reads Envoy's counters at the end of each second, forever.
async fn look(front: &Envoy, start: Instant, attempts: &mut Vec<Seen>) {
    let mut ticks = interval_at(start, LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    let mut before = Seen::default();
    loop {
        ticks.tick().await;
        // After a failed reading, the next one counts for both seconds.
        if let Ok(now) = seen(std::slice::from_ref(front)).await {
            let second = floor(start.elapsed().as_secs_f64()).saturating_sub(1);
            attempts.resize(second, Seen::default());
            attempts.push(now - before);
            before = now;
        }
    }
}

impl OpenLoopResult {
    /// Puts the attempts into the points: the rate of requests including retries, and the rate of those that were shed.
    pub fn count_attempts(&self, points: &mut [Point]) {
        for (point, seen) in points.iter_mut().zip(&self.attempts) {
            point.rps = float(seen.requests);
            point.shed_rps = float(seen.shed);
        }
    }
}

//! Plays all shards, on as many threads as there are, window by window.
//!
//! A window is as long as the network's delay, so that nothing that is sent within it arrives before the next one.
//! At the end of each window all threads wait for each other; two sets of mailboxes take turns, one being read while
//! the other is filled.

use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tidegate_core::Instant;
use tidegate_core::config::Config;

use super::FleetRun;
use super::figures::FleetFigures;
use super::ledger::ShardLedger;
use super::plan::{Fleet, FleetError};
use super::shard::{Message, SHARDS, Shard};
use crate::digest::Digest;
use crate::rng::{self, RngPurpose};
use crate::tidegate;
use crate::world::START;

/// How often progress is reported, in windows.
const TOLD_EVERY: u64 = 200;

/// Mail of one window, by sender and receiver.
struct Post(Vec<Vec<Mutex<Vec<Message>>>>);

impl Post {
    fn new(shards: usize) -> Self {
        let boxes = || (0..shards).map(|_| Mutex::default()).collect();
        Self((0..shards).map(|_| boxes()).collect())
    }

    fn open(&self, from: usize, to: usize) -> Option<MutexGuard<'_, Vec<Message>>> {
        let mailbox = self.0.get(from)?.get(to)?;
        Some(mailbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Plays a fleet. `tell` is called with the progress now and then; the outcome does not depend on `threads`.
///
/// # Errors
/// When the scenario has something that fleets do not play.
pub fn play(
    fleet: &Fleet,
    threads: usize,
    tell: &(dyn Fn(Duration) + Sync),
) -> Result<FleetRun, FleetError> {
    fleet.check()?;
    let mut shards = shards(fleet)?;
    let shard_count = shards.len();
    let posts = [Post::new(shard_count), Post::new(shard_count)];
    let window = fleet.scenario.network.unwrap_or_default().delay;
    let windows = fleet
        .scenario
        .duration
        .as_nanos()
        .div_ceil(window.as_nanos())
        + 1;
    let windows = u64::try_from(windows).unwrap_or(u64::MAX);
    let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
    let per_thread = shard_count.div_ceil(threads.clamp(1, shard_count.max(1)));
    let groups = shard_count.div_ceil(per_thread.max(1));
    let barrier = Barrier::new(groups);
    thread::scope(|scope| {
        let mut parts = shards.chunks_mut(per_thread.max(1)).enumerate();
        // The first part is played on this thread, the only one there is when one is asked for.
        let first = parts.next();
        let (posts, barrier) = (&posts, &barrier);
        let play_part = move |(group, part): (usize, &mut [Shard<'_>])| {
            for number in 0..windows {
                let end = START + Duration::from_nanos(window_ns.saturating_mul(number + 1));
                for (offset, shard) in part.iter_mut().enumerate() {
                    let index = group * per_thread + offset;
                    play_window(shard, index, posts, number, end);
                }
                if group == 0 && number.is_multiple_of(TOLD_EVERY) {
                    tell(end.saturating_since(START));
                }
                barrier.wait();
            }
        };
        for part in parts {
            scope.spawn(move || play_part(part));
        }
        if let Some(part) = first {
            play_part(part);
        }
    });
    Ok(collect(fleet, shards))
}

fn shards(fleet: &Fleet) -> Result<Vec<Shard<'_>>, FleetError> {
    let mut policy = tidegate::policy(&fleet.scenario);
    if let Some(policy) = policy.as_object_mut() {
        policy.insert("enabled".to_owned(), fleet.is_protected.into());
    }
    let config = Config::from_json(policy.to_string().as_bytes());
    let config = config.map_err(|error| FleetError::Policy(error.to_string()))?;
    let mut rng = rng::generator(fleet.scenario.seed, RngPurpose::Contender);
    let seeds: Vec<u64> = (0..fleet.proxies())
        .map(|_| rand::Rng::random(&mut rng))
        .collect();
    let shards = (0..SHARDS).map(|index| Shard::new(fleet, index, &config, &seeds));
    shards.collect::<Option<_>>().ok_or(FleetError::Broken)
}

fn play_window(shard: &mut Shard<'_>, index: usize, posts: &[Post; 2], number: u64, end: Instant) {
    let [even, odd] = posts;
    let (arrived, leaving) = if number.is_multiple_of(2) {
        (even, odd)
    } else {
        (odd, even)
    };
    let shards = arrived.0.len();
    for other in 0..shards {
        if let Some(mut mail) = arrived.open(other, index) {
            shard.hear(&mut mail);
        }
    }
    shard.play_until(end);
    for other in 0..shards {
        if let (Some(sent), Some(mut mail)) = (shard.sent_to(other), leaving.open(index, other)) {
            // The reader of the box emptied it: the shard reuses it.
            std::mem::swap(sent, &mut *mail);
        }
    }
}

fn collect(fleet: &Fleet, shards: Vec<Shard<'_>>) -> FleetRun {
    let mut whole = ShardLedger::new(0, 0);
    let (mut digest, mut all_events) = (Digest::default(), 0);
    for (index, shard) in shards.into_iter().enumerate() {
        let (ledger, part, events) = shard.into_ledger();
        digest.feed(part.value());
        all_events += events;
        if index == 0 {
            whole = ledger;
        } else {
            whole.merge(ledger);
        }
    }
    FleetRun {
        figures: FleetFigures::of(fleet, &whole),
        digest,
        events: all_events,
    }
}

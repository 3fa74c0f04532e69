//! One plugin: all its workers, the leader, and what they share. It outlives its configurations, and with it all that was
//! learned.

mod access;
mod orders;
mod state;

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use tidegate_worker::api::Host as _;
use tidegate_worker::coordination::Seat;

use crate::abi::{EnvoyPtr, log, log_level};
use crate::host::Shared;
use crate::notice::Notice;
use crate::predecessor;
use crate::shard::{Shard, Taken};
use crate::snapshot::SnapshotFile;

pub(crate) use access::WorkerAccess;
pub(crate) use orders::NamedConfig;
use orders::Orders;
use state::PluginState;

/// Every worker has one configuration at a time, so its ticks come from one root context.
const ROOT: u32 = 1;

/// One plugin; see the module.
#[derive(Debug)]
pub(crate) struct NativePlugin {
    name: String,
    shared: Arc<Shared>,
    /// By the worker's index; made with the worker's first request.
    workers: Box<[OnceLock<Box<Worker>>]>,
    leader: Mutex<PluginState>,
    snapshot: Arc<SnapshotFile>,
    orders: Orders,
    /// Steps of requests that found the state of their worker taken, since the last round.
    found_busy: AtomicU64,
    tell_busy: Once,
}

/// One worker's state, in cache lines that other workers do not write to. Processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Worker {
    shard: Shard<PluginState>,
    /// Of a round, a configuration, or a request that has ended.
    notice: Notice,
}

impl NativePlugin {
    /// A new plugin, for this many workers.
    pub(crate) fn new(name: &str, workers: usize, config: NamedConfig) -> Self {
        let shared = Arc::default();
        let snapshot = SnapshotFile::new(name, &shared, config.options.snapshot());
        // Before any worker is made: it starts from what is there.
        if !predecessor::take_over(name, &shared) {
            snapshot.restore();
        }
        let orders = Orders {
            load_reports: AtomicU8::new(config.load_reports() as u8),
            has_histograms: AtomicBool::new(config.options.has_histograms()),
            most_hosts: AtomicUsize::new(config.most_hosts()),
            config: Mutex::new((0, config)),
            newest: AtomicU64::new(0),
            round: AtomicU64::new(0),
        };
        let leader = PluginState::new(name, &shared, &orders, Seat::Leader);
        Self {
            name: name.to_owned(),
            shared,
            workers: (0..workers).map(|_| OnceLock::new()).collect(),
            leader: Mutex::new(leader),
            snapshot,
            orders,
            found_busy: AtomicU64::new(0),
            tell_busy: Once::new(),
        }
    }

    /// The digest of the configuration in force.
    #[cfg(test)]
    pub(crate) fn digest(&self) -> u64 {
        self.orders.config().1.digest
    }

    /// The name in the configuration.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file that keeps what it learns.
    pub(crate) const fn snapshot(&self) -> &Arc<SnapshotFile> {
        &self.snapshot
    }

    /// What its workers share.
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Another configuration is in force from each worker's next hook on. Learned state stays.
    pub(crate) fn reconfigure(&self, config: NamedConfig) {
        self.snapshot.follow(config.options.snapshot());
        self.orders.replace(config);
        self.alert();
    }

    /// The worker with this index; `None` if Envoy has more workers than it said.
    fn worker(&self, index: usize) -> Option<&Worker> {
        let worker = self.workers.get(index)?;
        let made = worker.get_or_init(|| {
            let state = PluginState::new(&self.name, &self.shared, &self.orders, Seat::Follower);
            Box::new(Worker {
                shard: Shard::new(state),
                notice: Notice::left(),
            })
        });
        Some(made)
    }

    /// Does something while the state of a worker is taken.
    #[cfg(test)]
    pub(crate) fn while_taken(&self, index: usize, act: impl FnOnce()) {
        let worker = self.worker(index).unwrap();
        // The module's own thread may have it for a moment.
        let taken = (0..1_000_000).find_map(|_| {
            let taken = worker.shard.take();
            if taken.is_none() {
                std::thread::yield_now();
            }
            taken
        });
        assert!(taken.is_some());
        act();
    }

    /// A round begins.
    pub(crate) fn begin_round(&self) {
        self.orders.round.fetch_add(1, Ordering::Relaxed);
        self.alert();
    }

    /// All workers look for what is to do, in their next hook.
    fn alert(&self) {
        for worker in self.workers.iter().filter_map(OnceLock::get) {
            worker.notice.leave();
        }
    }

    /// The state of a worker for a hook of this stream, with all upkeep done.
    fn take<'a>(&self, worker: &'a Worker, stream: EnvoyPtr) -> Option<Taken<'a, PluginState>> {
        let mut state = worker.shard.take()?;
        if worker.notice.is_left() {
            state.catch_up(worker, &self.orders);
        }
        state.object.host().attend(stream);
        Some(state)
    }

    /// A step of a request found the state of its worker taken: its request passes, or what it tells is lost.
    #[cold]
    fn note_busy(&self) {
        self.found_busy.fetch_add(1, Ordering::Relaxed);
        self.tell_busy.call_once(|| {
            log(
                log_level::WARN,
                "tidegate: fault kind=busy error=\"the state of a worker is taken by another thread\" (further ones are only counted)",
            );
        });
    }

    /// Ends the round: does the upkeep of idle workers, then decides for all.
    pub(crate) fn end_round(&self) {
        for worker in self.workers.iter().filter_map(OnceLock::get) {
            if let Some(mut state) = worker.shard.try_take() {
                state.catch_up(worker, &self.orders);
            }
        }
        let mut leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        leader.follow(&self.orders);
        leader.object.tick(ROOT);
        if let Ok(now) = leader.object.host().now() {
            self.shared.load_reports.publish(now);
        }
        let busy = self.found_busy.swap(0, Ordering::Relaxed);
        leader.publish_faults(&self.name, busy);
    }
}

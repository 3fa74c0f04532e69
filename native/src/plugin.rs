//! One plugin: all its workers, the leader, and what they share. It outlives its configurations, and with it all that was
//! learned.

#![expect(unsafe_code, reason = "a request points to its worker")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tidegate_core::config::{Config, LoadReports, NativeOptions};
use tidegate_worker::api::{Host as _, MetricKind};
use tidegate_worker::coordination::Seat;
use tidegate_worker::metrics::name::Naming;
use tidegate_worker::metrics::table::FAULTS_TOTAL;
use tidegate_worker::plugin::{EndedRequest, PluginObject};
use tidegate_worker::stream::PluginAccess;

use crate::abi::{EnvoyPtr, attribute_id};
use crate::host::{self, NativeHost, Shared};
use crate::notice::Notice;
use crate::shard::{Shard, Taken};
use crate::snapshot::SnapshotFile;
use crate::upstream_hosts::{LateEnd, WorkerHosts};
use crate::{guard, predecessor};

/// Every worker has one configuration at a time, so its ticks come from one root context.
const ROOT: u32 = 1;

/// One plugin; see the module.
#[derive(Debug)]
pub(crate) struct Plugin {
    name: String,
    shared: Arc<Shared>,
    /// By the worker's index; made with the worker's first request.
    workers: Box<[OnceLock<Box<Worker>>]>,
    leader: Mutex<PluginState>,
    snapshot: Arc<SnapshotFile>,
    orders: Orders,
}

/// A configuration, and the digest by which metrics name it.
#[derive(Clone, Debug)]
pub(crate) struct NamedConfig {
    pub(crate) config: Config,
    pub(crate) options: NativeOptions,
    pub(crate) digest: u64,
}

impl NamedConfig {
    /// What happens to load reports: the kill switch leaves responses as they are.
    const fn load_reports(&self) -> LoadReports {
        if self.config.enabled() {
            self.options.load_reports()
        } else {
            LoadReports::Pass
        }
    }

    /// Most upstream hosts that have counts of their own.
    fn most_hosts(&self) -> usize {
        usize::try_from(self.options.most_hosts()).unwrap_or(usize::MAX)
    }
}

/// One worker's state, in cache lines that other workers do not write to. Processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Worker {
    shard: Shard<PluginState>,
    /// Of a round, a configuration, or a request that has ended.
    notice: Notice,
}

/// What all workers do in their next hook, or have the ticker do.
#[derive(Debug)]
struct Orders {
    /// The configuration in force, with its number.
    config: Mutex<(u64, NamedConfig)>,
    newest: AtomicU64,
    /// Of the configuration in force, as its place in [`LoadReports::ALL`].
    load_reports: AtomicU8,
    has_histograms: AtomicBool,
    /// Most upstream hosts with counts of their own.
    most_hosts: AtomicUsize,
    /// The round under way; each worker does its upkeep once in each.
    round: AtomicU64,
}

#[derive(Debug)]
struct PluginState {
    object: PluginObject<NativeHost>,
    hosts: WorkerHosts,
    config: u64,
    round: u64,
}

impl Plugin {
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
        let taken = self.worker(index).and_then(|it| it.shard.take());
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
        leader.publish_panics();
    }
}

impl Orders {
    fn replace(&self, config: NamedConfig) {
        let mut current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        current.0 += 1;
        self.load_reports
            .store(config.load_reports() as u8, Ordering::Relaxed);
        self.has_histograms
            .store(config.options.has_histograms(), Ordering::Relaxed);
        self.most_hosts
            .store(config.most_hosts(), Ordering::Relaxed);
        current.1 = config;
        self.newest.store(current.0, Ordering::Release);
    }

    /// What happens to load reports.
    fn load_reports(&self) -> LoadReports {
        let place = self.load_reports.load(Ordering::Relaxed);
        let found = LoadReports::ALL.get(usize::from(place));
        found.copied().unwrap_or_default()
    }

    fn config(&self) -> (u64, NamedConfig) {
        let current = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

impl PluginState {
    fn new(name: &str, shared: &Arc<Shared>, orders: &Orders, seat: Seat) -> Self {
        let (number, config) = orders.config();
        let hosts = WorkerHosts::new(shared, name, config.most_hosts());
        let host = NativeHost::new(Arc::clone(shared));
        let mut object = PluginObject::new(host, name, config.config, ROOT);
        object.name_config(config.digest);
        object.assign(seat);
        Self {
            object,
            hosts,
            config: number,
            round: orders.round.load(Ordering::Relaxed),
        }
    }

    /// Does what is to do beside requests.
    #[cold]
    fn catch_up(&mut self, worker: &Worker, orders: &Orders) {
        worker.notice.take();
        // There is no stream whose headers could be read.
        self.object.host().attend(core::ptr::null_mut());
        self.follow(orders);
        while let Some(LateEnd { ended, address }) = worker.shard.ended.pop() {
            self.complete(ended, address.as_deref());
        }
        let round = orders.round.load(Ordering::Relaxed);
        if self.round != round {
            self.round = round;
            self.object.tick(ROOT);
            let (host, engine) = (self.object.host(), self.object.engine());
            host.count_load(engine, orders.load_reports() == LoadReports::Set);
            host.count_latencies(engine, orders.has_histograms.load(Ordering::Relaxed));
            self.hosts.tell();
        }
    }

    /// Completes a request. Without an `address` its stream is the one that the host attends.
    fn complete(&mut self, ended: EndedRequest, address: Option<&[u8]>) {
        self.hosts.see(&self.object, &ended, address);
        self.object.complete(ended);
    }

    fn follow(&mut self, orders: &Orders) {
        if self.config != orders.newest.load(Ordering::Acquire) {
            let (number, config) = orders.config();
            self.config = number;
            self.hosts.follow(config.most_hosts());
            self.object.reconfigure(config.config, ROOT);
            self.object.name_config(config.digest);
        }
    }

    /// Panics of the module, as one kind of fault.
    fn publish_panics(&self) {
        let count = guard::panics();
        if count > 0 {
            let host = self.object.host();
            let name = Naming::of_plugin("").name(&FAULTS_TOTAL, "", Some("panic"));
            // Nothing is left to do about a metric that fails.
            let _ = host
                .define_metric(MetricKind::Counter, &name)
                .and_then(|id| host.record_metric(id, count.into()));
        }
    }
}

/// The way of one request to its worker.
#[derive(Debug)]
pub(crate) struct WorkerAccess {
    plugin: Arc<Plugin>,
    /// In the plugin, which keeps it as long as itself.
    worker: NonNull<Worker>,
    stream: EnvoyPtr,
}

impl WorkerAccess {
    /// The way of this stream to the worker with this index; `None` if Envoy has more workers than it said.
    pub(crate) fn new(plugin: Arc<Plugin>, index: usize, stream: EnvoyPtr) -> Option<Self> {
        let worker = NonNull::from(plugin.worker(index)?);
        Some(Self {
            plugin,
            worker,
            stream,
        })
    }

    /// What happens to load reports in the response.
    pub(crate) fn load_reports(&self) -> LoadReports {
        self.plugin.orders.load_reports()
    }

    /// The upstream host of the request under way, if hosts are counted.
    #[cold]
    fn late_address(&self) -> Option<Box<[u8]>> {
        if self.plugin.orders.most_hosts.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // SAFETY: the hook under way is of this stream; the text is copied.
        let text = unsafe { host::attribute_text(self.stream, attribute_id::UPSTREAM_ADDRESS) };
        text.map(Into::into)
    }

    const fn worker(&self) -> &Worker {
        // SAFETY: the plugin lives as long as this, and never drops or moves a worker.
        unsafe { self.worker.as_ref() }
    }
}

impl PluginAccess for WorkerAccess {
    type Host = NativeHost;

    fn with<T>(&self, step: impl FnOnce(&mut PluginObject<NativeHost>) -> T) -> Option<T> {
        let mut state = self.plugin.take(self.worker(), self.stream)?;
        let result = step(&mut state.object);
        state.object.host().attend(core::ptr::null_mut());
        Some(result)
    }

    fn complete(&self, ended: EndedRequest) {
        match self.plugin.take(self.worker(), self.stream) {
            Some(mut state) => state.complete(ended, None),
            None => {
                let address = self.late_address();
                self.worker().shard.ended.push(LateEnd { ended, address });
                self.worker().notice.leave();
            }
        }
    }
}

//! What one worker, or the leader, keeps of a plugin, and its upkeep beside requests.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use tidegate_core::config::LoadReports;
use tidegate_worker::api::{Host as _, MetricKind};
use tidegate_worker::coordination::Seat;
use tidegate_worker::metrics::name::Naming;
use tidegate_worker::metrics::table::FAULTS_TOTAL;
use tidegate_worker::plugin::{EndedRequest, PluginObject};

use super::orders::Orders;
use super::{ROOT, Worker};
use crate::guard;
use crate::host::{NativeHost, Shared};
use crate::upstream_hosts::{LateEnd, WorkerHosts};

#[derive(Debug)]
pub(super) struct PluginState {
    pub(super) object: PluginObject<NativeHost>,
    hosts: WorkerHosts,
    config: u64,
    round: u64,
}

impl PluginState {
    pub(super) fn new(name: &str, shared: &Arc<Shared>, orders: &Orders, seat: Seat) -> Self {
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
    pub(super) fn catch_up(&mut self, worker: &Worker, orders: &Orders) {
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
    pub(super) fn complete(&mut self, ended: EndedRequest, address: Option<&[u8]>) {
        if self.hosts.are_counted() {
            // A request that is not completed would stay in flight for good, in this worker's count and in that of all.
            guard::call("host_counts", (), || {
                self.hosts.see(&self.object, &ended, address);
            });
        }
        self.object.complete(ended);
    }

    pub(super) fn follow(&mut self, orders: &Orders) {
        if self.config != orders.newest.load(Ordering::Acquire) {
            let (number, config) = orders.config();
            self.config = number;
            self.hosts.follow(config.most_hosts());
            self.object.reconfigure(config.config, ROOT);
            self.object.name_config(config.digest);
        }
    }

    /// Panics of the module, that it is off, and steps of requests that found their worker `busy`, as kinds of faults.
    pub(super) fn publish_faults(&self, plugin: &str, busy: u64) {
        self.count_fault("", "panic", guard::take_untold().into());
        self.count_fault("", "off", guard::take_off().into());
        self.count_fault(plugin, "busy", busy);
    }

    fn count_fault(&self, plugin: &str, kind: &str, count: u64) {
        if count > 0 {
            let host = self.object.host();
            let name = Naming::of_plugin(plugin).name(&FAULTS_TOTAL, "", Some(kind));
            let by = i64::try_from(count).unwrap_or(i64::MAX);
            // Nothing is left to do about a metric that fails.
            let _ = host
                .define_metric(MetricKind::Counter, &name)
                .and_then(|id| host.increment_metric(id, by));
        }
    }
}

//! What a fault does to a proxy: crashes, late workers, leaders that go, pushed configurations, and steps of its clock.

use std::time::Duration;

use serde_json::json;
use tidegate_core::config::Config;
use tidegate_core::{Directives, Instant};

use super::Tidegate;
use super::counters::CountSet;
use crate::fault::ProxyFault;

/// The lease of a leader, as in the filter.
const LEASE: Duration = Duration::from_millis(500);
/// What is pushed instead of the scenario's configuration: another objective and stance, and bounds.
const OTHER: &str = r#"{"slo":{"latency":{"quantile":0.9,"target":"80ms"}},"stance":"throughput",
    "limit":{"min":2,"max":5000},"breaker":{"minOpen":"500ms"}}"#;
/// A configuration that is rejected.
const REJECTED: &str =
    r#"{"slo":{"latency":{"quantile":7,"target":"soon"}},"limit":{"min":9,"max":1}}"#;

impl Tidegate {
    /// Applies a fault.
    pub(super) fn suffer(&mut self, fault: ProxyFault, world_now: Instant) {
        let now = self.clock(world_now);
        let index = |worker: u32| usize::try_from(worker).unwrap_or(usize::MAX);
        match fault {
            ProxyFault::WorkerCrash { worker } => self.crash(index(worker), now),
            ProxyFault::LeaderLost => self.leader = None,
            ProxyFault::LeaderCrash => {
                if let Some(leader) = self.leader {
                    self.crash(leader, now);
                    self.led_from = world_now + LEASE;
                }
            }
            ProxyFault::LeaderChanged => {
                let before = self.leader.replace(0);
                if let Some(vm) = before.and_then(|leader| self.vms.get_mut(leader)) {
                    vm.engine.resign();
                }
            }
            ProxyFault::Push => self.reconfigure(self.config.clone(), now),
            ProxyFault::PushOther => {
                if let Ok(config) = Config::from_json(OTHER.as_bytes()) {
                    self.reconfigure(config, now);
                }
            }
            ProxyFault::PushObjective { latency } => self.push_objective(latency, now),
            ProxyFault::PushRejected => {
                // As in the filter: what ran before continues.
                if let Ok(config) = Config::from_json(REJECTED.as_bytes()) {
                    self.reconfigure(config, now);
                }
            }
            ProxyFault::WorkerLate { worker, lasts } => {
                self.late.insert(index(worker), world_now + lasts);
            }
            ProxyFault::ClockStep { millis } => {
                let step = Duration::from_millis(millis.unsigned_abs());
                if millis < 0 {
                    self.behind += step;
                } else {
                    self.ahead += step;
                }
            }
            ProxyFault::ProxyLeaves => {}
            ProxyFault::ProxyJoins => self.restart(now),
        }
    }

    /// Replaces the process: the new one has learned nothing.
    fn restart(&mut self, now: Instant) {
        self.gauges = CountSet::new(self.counting);
        self.slices.clear();
        self.directives = Directives::default();
        self.learned = Directives::default();
        self.permits.clear();
        self.late.clear();
        self.leader = self.vms.len().checked_sub(1);
        for vm in 0..self.vms.len() {
            let fresh = self.fresh_vm(now);
            if let Some(vm) = self.vms.get_mut(vm) {
                *vm = fresh;
            }
        }
    }

    fn reconfigure(&mut self, config: Config, now: Instant) {
        for vm in &mut self.vms {
            vm.engine.reconfigure(config.clone(), now);
        }
        self.running = config;
    }

    /// Pushes the scenario's policy with another target; later pushes of the same configuration repeat this one.
    fn push_objective(&mut self, latency: Duration, now: Instant) {
        if let Some(target) = self.policy.pointer_mut("/slo/latency/target") {
            *target = json!(format!("{}ms", latency.as_millis()));
        }
        if let Ok(config) = Config::from_json(self.policy.to_string().as_bytes()) {
            self.config = config.clone();
            self.reconfigure(config, now);
        }
    }

    fn crash(&mut self, worker: usize, now: Instant) {
        let fresh = self.fresh_vm(now);
        if let Some(vm) = self.vms.get_mut(worker) {
            *vm = fresh;
        }
        self.gauges.forget(worker);
        self.permits.retain(|_, held| held.worker != worker);
    }
}

//! What a worker does on a tick, for itself and for the others.

use tidegate_core::Instant;

use super::PluginObject;
use crate::api::Host;
use crate::coordination::RoleChange;
use crate::counters::HostCounters;
use crate::exchange::Role;
use crate::faults::Fault;
use crate::leader::LeaderTasks;
use crate::proxy::Proxy;

impl<H: Host> PluginObject<H> {
    /// The upkeep of a tick, if this context's tick [counts](crate::ticks::Ticks).
    pub fn tick(&mut self, root: u32) {
        let now = self.now();
        if !self.ticks.take(root, now) {
            return;
        }
        self.requests.tick(&self.proxy);
        let mut counters = HostCounters::new(&mut self.upstreams, &self.proxy);
        self.engine.tick(&mut counters, now);
        let slice = self.engine.slice(now).encode();
        match self.coordination.take_part(&self.proxy, &slice, now) {
            RoleChange::None => {}
            RoleChange::TookOver => {
                self.upstreams.take_over();
                self.engine.show_all_again();
                self.info.take_over();
            }
            RoleChange::Resigned => self.engine.resign(),
        }
        let decided = match self.coordination.role() {
            Role::Leader | Role::Alone => self.leader().lead(&slice, now),
            Role::Follower => {
                // Frees memory for the directives: a VM's memory never shrinks.
                drop(slice);
                self.follow(now);
                false
            }
        };
        if let Some(destinations) = &mut self.destinations {
            destinations.tick(&self.proxy, &mut self.exporter, now);
        }
        self.publish_metrics(decided, now);
    }

    /// Follows the leader's directives, if they are new.
    fn follow(&mut self, now: Instant) {
        let Proxy { host, faults, .. } = &self.proxy;
        let Some(directives) = self.coordination.exchange.poll(host, faults) else {
            return;
        };
        match self.engine.follow(&directives, now) {
            Ok(tripped) => {
                for upstream in tripped {
                    self.upstreams.expect_grants(upstream);
                }
            }
            Err(error) => faults.note(host, Fault::Payload, &error),
        }
    }

    fn leader(&mut self) -> LeaderTasks<'_, H> {
        LeaderTasks {
            proxy: &self.proxy,
            engine: &mut self.engine,
            upstreams: &mut self.upstreams,
            exporter: &mut self.exporter,
            exchange: &mut self.coordination.exchange,
            reconciler: &mut self.coordination.reconciler,
        }
    }

    /// Publishes the growth of this worker's counts. A leader that has `decided` also publishes the state of all upstreams.
    fn publish_metrics(&mut self, decided: bool, now: Instant) {
        let (engine, proxy) = (&self.engine, &self.proxy);
        self.upstreams.publish_counts(engine, proxy, now);
        if decided {
            self.upstreams.publish_state(engine, proxy, now);
            let upstreams = engine.upstreams();
            let workers = self.coordination.exchange.workers();
            self.exporter.record_plugin(proxy, upstreams, workers);
            self.info.record(engine.config(), proxy);
        }
        let destinations = self.destinations.as_deref();
        let passed = destinations.map_or(0, |it| it.engine.overflowed());
        self.exporter.add_plugin(proxy, engine.overflowed(), passed);
    }
}

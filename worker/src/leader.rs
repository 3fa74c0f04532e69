//! The tasks of a leader on every tick: it gathers slices, decides, publishes directives, and corrects gauges.

use tidegate_core::{
    Engine, Event, Instant, LimitReason, RequestsUnderWay, Slice, UpstreamId, UpstreamKey,
};

use crate::api::{Host, LogLevel};
use crate::counters::HostCounters;
use crate::exchange::Exchange;
use crate::faults::Fault;
use crate::metrics::exporter::{Exporter, labels};
use crate::metrics::name::upstream_labels;
use crate::names::Permission;
use crate::proxy::Proxy;
use crate::reconcile::{GaugeReading, Reconciler};
use crate::upstreams::Upstreams;

/// The state that a leader works with.
#[derive(Debug)]
pub(crate) struct LeaderTasks<'a, H> {
    pub(crate) proxy: &'a Proxy<H>,
    pub(crate) engine: &'a mut Engine,
    pub(crate) upstreams: &'a mut Upstreams,
    pub(crate) exporter: &'a mut Exporter,
    pub(crate) exchange: &'a mut Exchange,
    pub(crate) reconciler: &'a mut Reconciler,
}

impl<H: Host> LeaderTasks<'_, H> {
    /// Leads. `own` is this worker's slice as it was published. Returns whether all workers had reported, so that there was a
    /// decision.
    pub(crate) fn lead(&mut self, own: &[u8], now: Instant) -> bool {
        let Proxy { host, faults, .. } = self.proxy;
        let workers = self.exchange.workers();
        let published = self.exchange.read_slices(host, faults);
        let slices = self.exchange.gather((host, faults), &published, own, now);
        if self.exchange.workers() < workers {
            self.reconciler.suspect(now);
        }
        self.introduce_all(&slices, now);
        let clock = self.proxy.check(Fault::Clock, host.wall_clock());
        if let Some(clock) = clock {
            self.engine.align(clock.saturating_since(now));
        }
        let mut counters = HostCounters::new(self.upstreams, self.proxy);
        let Some((directives, events)) = self.engine.decide(&slices, &mut counters, now) else {
            return false;
        };
        drop(slices);
        drop(published);
        for upstream in self.engine.adopt(&directives, now) {
            self.upstreams.expect_grants(upstream);
        }
        self.exchange.publish_directives(host, faults, directives);
        for event in &events {
            self.announce(event, now);
        }
        let engine = &self.engine;
        self.exchange
            .save(host, faults, || engine.learned(now), now);
        self.reconcile(now);
        true
    }

    /// Introduces the upstreams whose names are in the slices, with their counts ready for use.
    fn introduce_all(&mut self, slices: &[Slice<'_>], now: Instant) {
        for name in slices.iter().flat_map(Slice::introductions) {
            let id = self.engine.introduce(&name, now);
            self.upstreams.introduce(self.engine, id, self.proxy);
            if name.tripped {
                self.upstreams.expect_grants(id);
            }
        }
    }

    /// Logs and counts a transition.
    fn announce(&mut self, event: &Event, now: Instant) {
        let upstream = upstream_of(event);
        if let Some((level, what)) = describe(event) {
            self.log(level, &what, (upstream, self.engine.key(upstream)), now);
        }
        count_event(
            event,
            self.engine,
            self.upstreams,
            self.proxy,
            self.exporter,
        );
    }

    /// Logs an event of an upstream.
    fn log(
        &self,
        level: LogLevel,
        what: &str,
        (upstream, key): (UpstreamId, &UpstreamKey),
        now: Instant,
    ) {
        let mut views = self.engine.views(now);
        let facts = views.find(|view| view.id == upstream).map(|view| {
            format!(
                " limit={} open_interval_ms={}",
                view.limit,
                view.learned.breaker.open_interval_ms()
            )
        });
        let facts = facts.unwrap_or_default();
        let route = key.route.as_ref().map(|route| format!(" route={route}"));
        let route = route.unwrap_or_default();
        self.proxy.log(
            level,
            &format!("tidegate: {what} upstream={}{route}{facts}", key.cluster),
        );
    }

    /// Compares the gauges in use with the workers' reports.
    fn reconcile(&mut self, now: Instant) {
        let Proxy { host, faults, .. } = self.proxy;
        if self.exchange.is_accompanied(host, faults, now) {
            // The requests in flight of other versions' workers are unknown.
            self.reconciler.suspect(now);
        }
        for (id, hash, under_way) in self.watched() {
            let sum = i64::try_from(under_way.in_flight).unwrap_or(i64::MAX);
            let others = under_way.others.map(i64::from);
            let mut counters = HostCounters::new(self.upstreams, self.proxy);
            let Some(gauge) = counters.in_flight(id) else {
                continue;
            };
            let look = GaugeReading { gauge, sum, others };
            let correction = self.reconciler.observe(hash, look, now);
            if correction == 0 {
                continue;
            }
            counters.correct_in_flight(id, correction);
            let key = self.engine.key(id);
            let line = format!(
                "tidegate: in-flight corrected upstream={} by={correction} gauge={gauge} workers={sum}",
                key.cluster
            );
            self.proxy.log(LogLevel::Warn, &line);
            let labels = upstream_labels(key);
            self.exporter
                .count_reconciled(self.proxy, &labels, correction.unsigned_abs());
        }
        self.reconciler.settle();
    }

    /// The upstreams whose gauge is due for a reading, with their hashes and the requests under way.
    fn watched(&self) -> Vec<(UpstreamId, u64, RequestsUnderWay)> {
        let all = self.engine.all_under_way();
        let watched = all.filter_map(|(id, hash, under_way)| {
            let needs_look = self.reconciler.needs_look(hash, under_way.as_ref());
            needs_look.then(|| (id, hash, under_way.unwrap_or_default()))
        });
        watched.collect()
    }
}

/// Counts an event of an upstream, with its labels.
pub(crate) fn count_event<H: Host>(
    event: &Event,
    engine: &Engine,
    upstreams: &mut Upstreams,
    proxy: &Proxy<H>,
    exporter: &mut Exporter,
) {
    let upstream = upstream_of(event);
    let entry = upstreams.introduce(engine, upstream, proxy);
    let names = entry.map_or(Permission::Undecided, |entry| entry.names);
    exporter.count_event(proxy, &labels(engine.key(upstream), names), event);
}

const fn upstream_of(event: &Event) -> UpstreamId {
    match *event {
        Event::Tripped { upstream, .. }
        | Event::LimitReason { upstream, .. }
        | Event::Ramping { upstream }
        | Event::Reset { upstream } => upstream,
    }
}

/// The log line of an event. A new reason for the limit is in metrics only, because bursts cause many.
fn describe(event: &Event) -> Option<(LogLevel, String)> {
    Some(match event {
        Event::Tripped { reason, .. } => (
            LogLevel::Warn,
            format!("breaker opened reason={}", reason.as_str()),
        ),
        Event::Ramping { .. } => (LogLevel::Info, "breaker half-open, ramping".to_owned()),
        Event::Reset { .. } => (LogLevel::Info, "breaker closed".to_owned()),
        Event::LimitReason {
            reason: LimitReason::Unreachable,
            ..
        } => (
            LogLevel::Warn,
            "objective not reachable at any load: late answers do not lower the limit".to_owned(),
        ),
        Event::LimitReason { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_reasons_for_the_limit_only_an_objective_out_of_reach_is_logged() {
        let line = |reason| {
            let upstream = UpstreamId::OVERFLOW;
            describe(&Event::LimitReason { upstream, reason })
        };
        let text = "objective not reachable at any load: late answers do not lower the limit";
        let expected = Some((LogLevel::Warn, text.to_owned()));
        assert_eq!(line(LimitReason::Unreachable), expected);
        assert_eq!(line(LimitReason::Hold), None);
    }
}

//! The counts that workers share, as the engine asks for them: on the [gauges](crate::gauges) of each upstream.
//!
//! The gauge of grants is only read where a breaker has ever opened or a limit has been below one: the leader would otherwise define it for every
//! upstream there is.

use tidegate_core::{Counter, Counters, UpstreamId};

use crate::api::{Host, HostError, MetricId};
use crate::faults::Fault;
use crate::proxy::Proxy;
use crate::upstreams::Upstreams;

/// A count beyond this has been lowered more often than raised, and wrapped.
const WRAPPED: u64 = u64::MAX / 2;

/// [`Counters`] on the host's gauges.
#[derive(Debug)]
pub struct HostCounters<'a, H> {
    upstreams: &'a mut Upstreams,
    proxy: &'a Proxy<H>,
}

impl<'a, H> HostCounters<'a, H> {
    /// The counts of these upstreams, for one call of the engine.
    pub(crate) const fn new(upstreams: &'a mut Upstreams, proxy: &'a Proxy<H>) -> Self {
        Self { upstreams, proxy }
    }
}

impl<H: Host> HostCounters<'_, H> {
    /// The gauge of requests in flight as a signed number; `None` if it is not shared.
    pub fn in_flight(&mut self, upstream: UpstreamId) -> Option<i64> {
        let id = self.gauge(upstream, Counter::InFlight)?;
        let value = self.proxy.host.metric(id);
        self.check(value).map(u64::cast_signed)
    }

    /// Corrects the gauge of requests in flight.
    pub fn correct_in_flight(&mut self, upstream: UpstreamId, by: i64) {
        if let Some(id) = self.gauge(upstream, Counter::InFlight) {
            let done = self.proxy.host.increment_metric(id, by);
            self.check(done);
        }
    }

    fn gauge(&mut self, upstream: UpstreamId, counter: Counter) -> Option<MetricId> {
        if counter == Counter::Grants {
            self.upstreams.expect_grants(upstream);
        }
        let entry = self.upstreams.entry(upstream)?;
        entry.gauges.handle(counter, &entry.key, self.proxy)
    }

    fn check<T>(&mut self, result: Result<T, HostError>) -> Option<T> {
        self.proxy.check(Fault::Metric, result)
    }
}

impl<H: Host> Counters for HostCounters<'_, H> {
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        let id = self.gauge(upstream, counter)?;
        let raised = self.proxy.host.raise_metric(id);
        let value = self.check(raised)?;
        Some(if value > WRAPPED { 1 } else { value.max(1) })
    }

    fn lower(&mut self, upstream: UpstreamId, counter: Counter, by: u64) {
        if let Some(id) = self.gauge(upstream, counter) {
            let by = i64::try_from(by).unwrap_or(i64::MAX);
            let lowered = self.proxy.host.increment_metric(id, -by);
            self.check(lowered);
        }
    }

    fn value(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        if counter == Counter::Grants && !self.upstreams.counts_grants(upstream)? {
            return Some(0);
        }
        let id = self.gauge(upstream, counter)?;
        let value = self.proxy.host.metric(id);
        self.check(value)
            .map(|value| if value > WRAPPED { 0 } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;
    use crate::upstreams::tests::SmallVm;

    fn served(host: &FakeHost) -> (SmallVm, UpstreamId) {
        let mut vm = SmallVm::new(host);
        let id = vm.upstream("web", 0);
        (vm, id)
    }

    #[test]
    fn vms_count_into_the_same_gauge() {
        let host = FakeHost::default();
        let ((mut one, web), (mut other, _)) = (served(&host), served(&host));
        assert_eq!(one.counters().raise(web, Counter::InFlight), Some(1));
        assert_eq!(other.counters().raise(web, Counter::InFlight), Some(2));
        one.counters().lower(web, Counter::InFlight, 1);
        assert_eq!(other.counters().value(web, Counter::InFlight), Some(1));
        assert_eq!(
            host.metric_value("tidegate_upstream=.=web;.;tidegate_in_flight"),
            Some(1)
        );
    }

    #[test]
    fn a_gauge_that_keeps_nothing_is_not_shared_and_counts_as_a_fault() {
        let host = FakeHost::default();
        host.reject_metrics();
        let (mut vm, web) = served(&host);
        assert_eq!(vm.counters().raise(web, Counter::InFlight), None);
        assert_eq!(vm.counters().raise(web, Counter::InFlight), None);
        assert_eq!(vm.proxy.faults.count(Fault::Metric), 1);
    }

    #[test]
    fn a_count_below_zero_does_not_look_like_a_flood() {
        let (mut vm, web) = served(&FakeHost::default());
        vm.counters().correct_in_flight(web, -5);
        assert_eq!(vm.counters().in_flight(web), Some(-5));
        assert_eq!(vm.counters().raise(web, Counter::InFlight), Some(1));
    }

    #[test]
    fn a_count_at_minus_one_is_not_taken_for_a_refusal() {
        let host = FakeHost::default();
        let (mut vm, web) = served(&host);
        vm.counters().correct_in_flight(web, -1);
        let (mut fresh, web) = served(&host);
        assert_eq!(fresh.counters().in_flight(web), Some(-1));
        assert_eq!(fresh.proxy.faults.count(Fault::Metric), 0);
    }

    #[test]
    fn probes_are_not_counted_where_no_breaker_ever_opened() {
        let host = FakeHost::default();
        let ((mut vm, web), (mut other, _)) = (served(&host), served(&host));
        assert_eq!(vm.counters().value(web, Counter::Grants), Some(0));
        assert_eq!(
            host.metric_value("tidegate_upstream=.=web;.;tidegate_grants_claimed"),
            None
        );
        assert_eq!(other.counters().raise(web, Counter::Grants), Some(1));
        vm.upstreams.expect_grants(web);
        assert_eq!(vm.counters().value(web, Counter::Grants), Some(1));
    }

    #[test]
    fn an_upstream_without_names_has_no_shared_counts() {
        let host = FakeHost::default();
        let mut first = SmallVm::new(&host);
        for name in ["a", "b", "_overflow"] {
            first.upstream(name, 0);
        }
        // Three may have names, and these have them.
        let (mut vm, web) = served(&host);
        assert_eq!(vm.counters().raise(web, Counter::InFlight), None);
        assert_eq!(vm.proxy.faults.count(Fault::Metric), 0);
    }
}

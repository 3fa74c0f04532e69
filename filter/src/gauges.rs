//! Process-wide counts, kept in the proxy's gauges.
//!
//! VMs share no memory, but a gauge is one atomic for the whole process: adding to it and reading it makes the count
//! of requests in flight exact, at a tenth of what shared data costs. Defining a metric makes a new handle every
//! time, so it is done once for each upstream and VM.
//!
//! A host that rejects the gauge (its stats matcher leaves the name out) does not say so: the gauge stays zero. That
//! is seen right after the definition, and the upstream falls back to the worker's share of the limit.
//!
//! The gauge of probes is only asked where a breaker has ever opened: the leader would otherwise define it for every
//! upstream there is.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::{Counter, Counters, UpstreamId, UpstreamKey};

use crate::api::{Host, HostError, MetricId, MetricKind};
use crate::faults::{Fault, Faults};
use crate::metrics::name::{Naming, upstream_labels};
use crate::metrics::table::{IN_FLIGHT, PROBES_CLAIMED};
use crate::names::Permission;

/// A count beyond this has been lowered more often than raised, and wrapped.
const WRAPPED: u64 = u64::MAX / 2;

/// The gauges of all upstreams, as one VM knows them.
#[derive(Debug, Default)]
pub struct Gauges {
    entries: Vec<Option<Entry>>,
    /// Upstreams, by hash, whose breaker has opened at some time.
    tripped: BTreeSet<u64>,
}

#[derive(Debug)]
struct Entry {
    /// Whose it is; a handle passes on to another upstream when the registry is full.
    hash: u64,
    key: Arc<UpstreamKey>,
    in_flight: State,
    probes: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Undefined,
    Defined(MetricId),
    /// The host keeps no value for it.
    Refused,
}

impl Gauges {
    /// Whether `id` is known to stand for the upstream with this hash.
    #[must_use]
    pub fn knows(&self, id: UpstreamId, hash: u64) -> bool {
        let entry = self.entries.get(id.index()).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.hash == hash)
    }

    /// `id` stands for this upstream from now on, if it is decided whether that may have names of its own.
    pub fn assign(
        &mut self,
        id: UpstreamId,
        hash: u64,
        key: &Arc<UpstreamKey>,
        permission: Permission,
    ) {
        let state = match permission {
            Permission::Own => State::Undefined,
            Permission::Shared => State::Refused,
            Permission::Undecided => return,
        };
        if self.entries.len() <= id.index() {
            self.entries.resize_with(id.index() + 1, || None);
        }
        if let Some(entry) = self.entries.get_mut(id.index()) {
            *entry = Some(Entry {
                hash,
                key: Arc::clone(key),
                in_flight: state,
                probes: state,
            });
        }
    }

    /// The breaker of the upstream with this hash has opened at some time, so that its probes count.
    pub fn expect_probes(&mut self, hash: u64) {
        self.tripped.insert(hash);
    }

    /// The counts, to be given to the engine for one call.
    pub fn counters<'a, H: Host>(
        &'a mut self,
        host: &'a H,
        naming: &'a Naming,
        faults: &'a Faults,
    ) -> HostCounters<'a, H> {
        HostCounters {
            gauges: self,
            host,
            naming,
            faults,
        }
    }
}

/// [`Counters`] on the host's gauges.
#[derive(Debug)]
pub struct HostCounters<'a, H> {
    gauges: &'a mut Gauges,
    host: &'a H,
    naming: &'a Naming,
    faults: &'a Faults,
}

impl<H: Host> HostCounters<'_, H> {
    /// The gauge of requests in flight as a signed number; `None` where it is not shared.
    pub fn in_flight(&mut self, upstream: UpstreamId) -> Option<i64> {
        let id = self.define(upstream, Counter::InFlight)?;
        let value = self.host.metric(id);
        self.check(value).map(u64::cast_signed)
    }

    /// Corrects it.
    pub fn correct_in_flight(&mut self, upstream: UpstreamId, by: i64) {
        if let Some(id) = self.define(upstream, Counter::InFlight) {
            let done = self.host.increment_metric(id, by);
            self.check(done);
        }
    }

    /// The gauge's handle; defines it if need be.
    fn define(&mut self, upstream: UpstreamId, counter: Counter) -> Option<MetricId> {
        let entry = self.gauges.entries.get_mut(upstream.index())?.as_mut()?;
        let (metric, state) = match counter {
            Counter::InFlight => (&IN_FLIGHT, &mut entry.in_flight),
            Counter::Probes => (&PROBES_CLAIMED, &mut entry.probes),
        };
        match *state {
            State::Defined(id) => return Some(id),
            State::Refused => return None,
            State::Undefined => {}
        }
        let labels = upstream_labels(&entry.key);
        let name = self.naming.name(metric, &labels, None);
        let defined =
            self.host
                .define_metric(MetricKind::Gauge, &name)
                .and_then(|id| match counter {
                    Counter::InFlight => Ok((id, is_kept(self.host, id)?)),
                    // Trying it out would look like a probe to others.
                    Counter::Probes => Ok((id, true)),
                });
        *state = match defined {
            Ok((id, true)) => State::Defined(id),
            Ok((_, false)) => {
                self.faults.note(
                    self.host,
                    Fault::Metric,
                    &"the host keeps no value for tidegate_in_flight: is it left out by a stats matcher?",
                );
                State::Refused
            }
            Err(error) => {
                self.faults.note(self.host, Fault::Metric, &error);
                State::Refused
            }
        };
        match *state {
            State::Defined(id) => Some(id),
            State::Undefined | State::Refused => None,
        }
    }

    fn check<T>(&mut self, result: Result<T, HostError>) -> Option<T> {
        self.faults.check(self.host, Fault::Metric, result)
    }
}

/// Whether the host keeps what is added to a gauge. Twice, because a count that had fallen to -1 reads 0 after +1.
fn is_kept(host: &impl Host, id: MetricId) -> Result<bool, HostError> {
    let mut raised = 0;
    let mut kept = Ok(false);
    while raised < 2 && kept == Ok(false) {
        host.increment_metric(id, 1)?;
        raised += 1;
        kept = host.metric(id).map(|value| value != 0);
    }
    host.increment_metric(id, -raised)?;
    kept
}

impl<H: Host> Counters for HostCounters<'_, H> {
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        let id = self.define(upstream, counter)?;
        let raised = self.host.increment_metric(id, 1);
        self.check(raised)?;
        let value = self.host.metric(id);
        let Some(value) = self.check(value) else {
            self.lower(upstream, counter, 1);
            return None;
        };
        Some(if value > WRAPPED { 1 } else { value.max(1) })
    }

    fn lower(&mut self, upstream: UpstreamId, counter: Counter, by: u64) {
        if let Some(id) = self.define(upstream, counter) {
            let by = i64::try_from(by).unwrap_or(i64::MAX);
            let lowered = self.host.increment_metric(id, -by);
            self.check(lowered);
        }
    }

    fn value(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64> {
        let entry = self.gauges.entries.get(upstream.index())?.as_ref()?;
        if counter == Counter::Probes
            && entry.probes == State::Undefined
            && !self.gauges.tripped.contains(&entry.hash)
        {
            return Some(0);
        }
        let id = self.define(upstream, counter)?;
        let value = self.host.metric(id);
        self.check(value)
            .map(|value| if value > WRAPPED { 0 } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    const UPSTREAM: UpstreamId = UpstreamId::OVERFLOW;
    const HASH: u64 = 7;

    fn key(cluster: &str) -> Arc<UpstreamKey> {
        Arc::new(UpstreamKey {
            cluster: cluster.to_owned(),
            route: None,
        })
    }

    struct Vm {
        gauges: Gauges,
        naming: Naming,
        faults: Faults,
    }

    impl Vm {
        fn new() -> Self {
            let mut gauges = Gauges::default();
            gauges.assign(UPSTREAM, HASH, &key("web"), Permission::Own);
            Self {
                gauges,
                naming: Naming::of_plugin("tidegate"),
                faults: Faults::default(),
            }
        }

        fn counters<'a>(&'a mut self, host: &'a FakeHost) -> HostCounters<'a, FakeHost> {
            self.gauges.counters(host, &self.naming, &self.faults)
        }
    }

    #[test]
    fn vms_count_into_the_same_gauge() {
        let host = FakeHost::default();
        let (mut one, mut other) = (Vm::new(), Vm::new());
        assert_eq!(
            one.counters(&host).raise(UPSTREAM, Counter::InFlight),
            Some(1)
        );
        assert_eq!(
            other.counters(&host).raise(UPSTREAM, Counter::InFlight),
            Some(2)
        );
        one.counters(&host).lower(UPSTREAM, Counter::InFlight, 1);
        assert_eq!(
            other.counters(&host).value(UPSTREAM, Counter::InFlight),
            Some(1)
        );
        assert_eq!(
            host.metric_value("tidegate_upstream=.=web;.;tidegate_in_flight"),
            Some(1)
        );
    }

    #[test]
    fn a_gauge_that_keeps_nothing_is_not_shared_and_a_fault() {
        let host = FakeHost::default();
        host.reject_metrics();
        let mut vm = Vm::new();
        assert_eq!(vm.counters(&host).raise(UPSTREAM, Counter::InFlight), None);
        assert_eq!(vm.counters(&host).raise(UPSTREAM, Counter::InFlight), None);
        assert_eq!(vm.faults.count(Fault::Metric), 1);
    }

    #[test]
    fn a_count_below_zero_does_not_look_like_a_flood() {
        let host = FakeHost::default();
        let mut vm = Vm::new();
        vm.counters(&host).correct_in_flight(UPSTREAM, -5);
        assert_eq!(vm.counters(&host).in_flight(UPSTREAM), Some(-5));
        assert_eq!(
            vm.counters(&host).raise(UPSTREAM, Counter::InFlight),
            Some(1)
        );
    }

    #[test]
    fn a_count_at_minus_one_is_not_taken_for_a_refusal() {
        let host = FakeHost::default();
        let mut vm = Vm::new();
        vm.counters(&host).correct_in_flight(UPSTREAM, -1);
        let mut fresh = Vm::new();
        assert_eq!(fresh.counters(&host).in_flight(UPSTREAM), Some(-1));
        assert_eq!(fresh.faults.count(Fault::Metric), 0);
    }

    #[test]
    fn probes_are_not_counted_where_no_breaker_ever_opened() {
        let host = FakeHost::default();
        let mut vm = Vm::new();
        assert_eq!(vm.counters(&host).value(UPSTREAM, Counter::Probes), Some(0));
        assert_eq!(
            host.metric_value("tidegate_upstream=.=web;.;tidegate_probes_claimed"),
            None
        );
        let mut other = Vm::new();
        assert_eq!(
            other.counters(&host).raise(UPSTREAM, Counter::Probes),
            Some(1)
        );
        vm.gauges.expect_probes(HASH);
        assert_eq!(vm.counters(&host).value(UPSTREAM, Counter::Probes), Some(1));
    }

    #[test]
    fn a_handle_that_passes_on_counts_for_the_new_upstream() {
        let host = FakeHost::default();
        let mut vm = Vm::new();
        vm.counters(&host).raise(UPSTREAM, Counter::InFlight);
        assert!(vm.gauges.knows(UPSTREAM, HASH));
        assert!(!vm.gauges.knows(UPSTREAM, 8));
        vm.gauges.assign(UPSTREAM, 8, &key("shop"), Permission::Own);
        assert_eq!(
            vm.counters(&host).raise(UPSTREAM, Counter::InFlight),
            Some(1)
        );
        assert_eq!(
            host.metric_value("tidegate_upstream=.=shop;.;tidegate_in_flight"),
            Some(1)
        );
    }

    #[test]
    fn an_upstream_without_names_has_no_shared_counts() {
        let host = FakeHost::default();
        let mut vm = Vm::new();
        vm.gauges
            .assign(UPSTREAM, 9, &key("web"), Permission::Shared);
        assert!(vm.gauges.knows(UPSTREAM, 9));
        assert_eq!(vm.counters(&host).raise(UPSTREAM, Counter::InFlight), None);
        assert_eq!(vm.faults.count(Fault::Metric), 0);
    }
}

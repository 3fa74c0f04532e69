//! The gauges of an upstream, in which all VMs of the proxy count together.
//!
//! VMs share no memory, but a gauge is one atomic for the whole process: adding to it and reading it makes the count
//! of requests in flight exact, at a tenth of what shared data costs. Defining a metric makes a new handle every
//! time, so it is done once for each upstream and VM.
//!
//! A host that rejects the gauge (its stats matcher leaves the name out) does not say so: the gauge stays zero. The filter
//! tests that right after the definition, and then the upstream falls back to the worker's share of the limit.

use tidegate_core::{Counter, UpstreamKey};

use crate::api::{Host, HostError, MetricId, MetricKind};
use crate::faults::Fault;
use crate::metrics::handle::Handle;
use crate::metrics::name::upstream_labels;
use crate::metrics::table::{GRANTS_CLAIMED, IN_FLIGHT};
use crate::names::Permission;
use crate::proxy::Proxy;

/// The gauges of one upstream, as one VM knows them.
#[derive(Clone, Copy, Debug)]
pub struct Gauges {
    in_flight: Handle,
    grants: Handle,
}

impl Gauges {
    /// The gauges of an upstream with this permission for names.
    pub(crate) const fn of(names: Permission) -> Self {
        let state = match names {
            Permission::Own => Handle::UNDEFINED,
            Permission::Shared | Permission::Undecided => Handle::REFUSED,
        };
        Self {
            in_flight: state,
            grants: state,
        }
    }

    /// The handle of one of them; defines it if need be. `None`: the count is not shared.
    #[inline]
    pub(crate) fn handle<H: Host>(
        &mut self,
        counter: Counter,
        key: &UpstreamKey,
        proxy: &Proxy<H>,
    ) -> Option<MetricId> {
        let state = match counter {
            Counter::InFlight => self.in_flight,
            Counter::Grants => self.grants,
        };
        match state.get() {
            None if state == Handle::UNDEFINED => self.define(counter, key, proxy),
            known => known,
        }
    }

    #[cold]
    fn define<H: Host>(
        &mut self,
        counter: Counter,
        key: &UpstreamKey,
        proxy: &Proxy<H>,
    ) -> Option<MetricId> {
        let (metric, state) = match counter {
            Counter::InFlight => (&IN_FLIGHT, &mut self.in_flight),
            Counter::Grants => (&GRANTS_CLAIMED, &mut self.grants),
        };
        let labels = upstream_labels(key);
        let Proxy {
            host,
            naming,
            faults,
        } = proxy;
        let name = naming.name(metric, &labels, None);
        let defined = host
            .define_metric(MetricKind::Gauge, &name)
            .and_then(|id| match counter {
                Counter::InFlight => Ok((id, is_kept(host, id)?)),
                // A test value would look like a claimed grant to other workers.
                Counter::Grants => Ok((id, true)),
            });
        *state = match defined {
            Ok((id, true)) => Handle::of(id),
            Ok((_, false)) => {
                faults.note(
                    host,
                    Fault::Metric,
                    &"the host keeps no value for tidegate_in_flight: is it left out by a stats matcher?",
                );
                Handle::REFUSED
            }
            Err(error) => {
                faults.note(host, Fault::Metric, &error);
                Handle::REFUSED
            }
        };
        state.get()
    }
}

/// Whether the host keeps what is added to a gauge. It adds up to twice, because a count that had fallen to -1 reads 0 after +1.
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

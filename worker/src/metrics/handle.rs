//! A metric's handle in this VM.

use crate::api::{Host, MetricId, MetricKind};
use crate::faults::Fault;
use crate::proxy::Proxy;

/// A metric that is defined when it is first used; four bytes, for there are some for each of a thousand upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u32);

impl Handle {
    /// It has not been defined yet. Envoy counts its handles from 0 upwards in steps of 4.
    pub(crate) const UNDEFINED: Self = Self(u32::MAX);
    /// The host refused it; asking again would not help.
    pub(crate) const REFUSED: Self = Self(u32::MAX - 1);

    /// A metric that has been defined.
    pub(crate) const fn of(id: MetricId) -> Self {
        Self(id.0)
    }

    /// The metric, if it has been defined.
    #[inline]
    pub(crate) fn get(self) -> Option<MetricId> {
        (self.0 < Self::REFUSED.0).then_some(MetricId(self.0))
    }

    /// The metric, defined if it is not yet; `None` where the host refused it.
    pub(super) fn define<H: Host>(
        &mut self,
        proxy: &Proxy<H>,
        kind: MetricKind,
        name: impl FnOnce() -> String,
    ) -> Option<MetricId> {
        if *self == Self::UNDEFINED {
            let defined = proxy.host.define_metric(kind, &name());
            let defined = proxy.check(Fault::Metric, defined);
            *self = defined.map_or(Self::REFUSED, |id| Self(id.0));
        }
        self.get()
    }
}

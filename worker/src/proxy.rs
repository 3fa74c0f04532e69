//! The way to the proxy: its calls, how metrics are named in it, and where what fails is noted.

use tidegate_core::Instant;

use crate::api::{Host, HostError, LogLevel, MetricId};
use crate::faults::{Fault, Faults};
use crate::metrics::name::Naming;

/// What everything that talks to the proxy needs.
#[derive(Debug)]
pub struct Proxy<H> {
    /// Its calls.
    pub host: H,
    /// How metrics of this plugin are named.
    pub naming: Naming,
    /// What went wrong so far.
    pub faults: Faults,
}

impl<H: Host> Proxy<H> {
    /// The proxy, for the plugin that its configuration calls `plugin`.
    #[must_use]
    pub fn new(host: H, plugin: &str) -> Self {
        Self {
            host,
            naming: Naming::of_plugin(plugin),
            faults: Faults::default(),
        }
    }

    /// The value of `result`, or `None` and a fault.
    pub fn check<T>(&self, kind: Fault, result: Result<T, HostError>) -> Option<T> {
        self.faults.check(&self.host, kind, result)
    }

    /// The monotonic clock.
    pub fn now(&self) -> Option<Instant> {
        self.check(Fault::Clock, self.host.now())
    }

    /// Writes a line into the proxy's log.
    pub fn log(&self, level: LogLevel, line: &str) {
        // Nothing is left to do about a log that fails.
        let _ = self.host.log(level, line);
    }

    /// Adds to a metric.
    pub fn increment(&self, id: MetricId, by: i64) {
        let done = self.host.increment_metric(id, by);
        self.check(Fault::Metric, done);
    }

    /// Sets a gauge.
    pub fn record(&self, id: MetricId, value: u64) {
        let done = self.host.record_metric(id, value);
        self.check(Fault::Metric, done);
    }
}

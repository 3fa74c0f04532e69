//! Counts the events of the other modules.

use std::sync::Arc;

use super::labels::{
    AnswerLabels, CertificateLabels, FileLabels, ReloadLabels, SourceLabels, StreamLabels,
    TurnedLabels,
};
use super::{ControlMetrics, count};
use crate::event::EventSink;
use crate::fleet::{DiscoveryApi, FleetEvent};
use crate::kube::KubeEvent;
use crate::net::{PortEvent, ReloadOutcome};
use crate::source::SourceEvent;
use crate::traffic::TrafficEvent;

impl ControlMetrics {
    /// Counts what happens on discovery streams.
    #[must_use]
    pub fn fleet(self: &Arc<Self>) -> EventSink<FleetEvent> {
        let metrics = Arc::clone(self);
        EventSink::new(move |event| metrics.record_fleet(event))
    }

    /// Counts the contents of the sources of policies.
    #[must_use]
    pub fn sources(self: &Arc<Self>) -> EventSink<SourceEvent> {
        let metrics = Arc::clone(self);
        EventSink::new(move |event| metrics.record_source(event))
    }

    /// Counts connections that ports turn away.
    #[must_use]
    pub fn ports(self: &Arc<Self>) -> EventSink<PortEvent> {
        let metrics = Arc::clone(self);
        EventSink::new(move |event| metrics.record_port(event))
    }

    /// Counts the events of the Kubernetes controller.
    #[must_use]
    pub fn kube(&self) -> EventSink<KubeEvent> {
        let metrics = self.kube.clone();
        EventSink::new(move |event| metrics.record(event))
    }

    /// Counts the reads of the service graph.
    #[must_use]
    pub fn traffic(&self) -> EventSink<TrafficEvent> {
        let metrics = self.traffic.clone();
        EventSink::new(move |event| metrics.record(event))
    }

    fn record_fleet(&self, event: FleetEvent) {
        match event {
            FleetEvent::Connected { api, dialect } => self.count_streams(api, dialect, 1),
            FleetEvent::Disconnected { api, dialect } => self.count_streams(api, dialect, -1),
            FleetEvent::Pushed => {
                self.pushes.inc();
            }
            FleetEvent::Accepted { waited } => {
                self.count_answer("accepted");
                if let Some(waited) = waited {
                    self.push_seconds.observe(waited.as_secs_f64());
                }
            }
            FleetEvent::Rejected => self.count_answer("rejected"),
            FleetEvent::Stale => self.count_answer("stale"),
        }
    }

    fn count_streams(&self, api: DiscoveryApi, dialect: &'static str, change: i64) {
        let labels = StreamLabels {
            api: api.name(),
            dialect,
        };
        self.streams.get_or_create(&labels).inc_by(change);
    }

    fn count_answer(&self, verdict: &'static str) {
        self.answers.get_or_create(&AnswerLabels { verdict }).inc();
    }

    fn record_source(&self, event: SourceEvent) {
        match event {
            SourceEvent::Counted {
                source,
                policies,
                problems,
            } => {
                let labels = SourceLabels { source };
                self.policies.get_or_create(&labels).set(count(policies));
                self.problems.get_or_create(&labels).set(count(problems));
            }
            SourceEvent::Disabled { all, policies } => {
                self.disabled.set(i64::from(all));
                self.policies_disabled.set(count(policies));
            }
            SourceEvent::RenderError => {
                self.render_errors.inc();
            }
        }
    }

    fn record_port(&self, event: PortEvent) {
        let PortEvent::TurnedAway { port, reason } = event;
        let reason = reason.name();
        let labels = TurnedLabels { port, reason };
        self.turned.get_or_create(&labels).inc();
    }

    /// Sets when the first of some certificates expires, in seconds since 1970; `None`: there are no certificates.
    pub(crate) fn certificate(&self, certificate: &'static str, not_after: Option<i64>) {
        let labels = CertificateLabels { certificate };
        match not_after {
            Some(seconds) => {
                self.certificates.get_or_create(&labels).set(seconds);
            }
            None => {
                self.certificates.remove(&labels);
            }
        }
    }

    /// Counts the result of reloading a file.
    pub(crate) fn reloaded(&self, file: &'static str, outcome: ReloadOutcome) {
        let outdated = self.outdated.get_or_create(&FileLabels { file });
        let result = match outcome {
            ReloadOutcome::Unchanged => return,
            ReloadOutcome::Accepted => "accepted",
            ReloadOutcome::Rejected => "rejected",
        };
        outdated.set(i64::from(outcome == ReloadOutcome::Rejected));
        let labels = ReloadLabels { file, result };
        self.reloads.get_or_create(&labels).inc();
    }
}

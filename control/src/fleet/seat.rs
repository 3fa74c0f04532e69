//! A stream's place in the fleet: provides what to push, and takes the stream's reports.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::event::FleetEvent;
use super::origin::StreamOrigin;
use super::registry::{Assignment, ProxyFleet, StreamConnection, StreamId};
use crate::policy::ProxyNode;
use crate::telemetry::TARGET;
use crate::xds::{Desired, Name, PushReply, ResourceVersion};

/// What has changed for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentChange {
    /// The proxy should have other resources.
    Assigned,
    /// Policies need metadata of the proxy that was dropped: the proxy has to send it again, on a new stream.
    Unknown,
}

/// See the module; dropping it leaves the fleet.
#[derive(Debug)]
pub struct StreamSeat {
    fleet: ProxyFleet,
    id: StreamId,
    // The node's id.
    proxy: String,
    origin: StreamOrigin,
    assignment: watch::Receiver<Assignment>,
    outdated: CancellationToken,
    pending: Option<PendingPush>,
}

/// A push that is not answered yet.
#[derive(Debug)]
struct PendingPush {
    changed_at: Instant,
    // Ends with the answer, or with the stream.
    span: Span,
}

impl StreamSeat {
    /// Registers a stream of `proxy` with `fleet`.
    #[must_use]
    pub fn take(fleet: &ProxyFleet, proxy: ProxyNode, origin: StreamOrigin) -> Self {
        let id_of_node = proxy.id.clone();
        let StreamConnection {
            id,
            assignment,
            outdated,
        } = fleet.connect(proxy, &origin);
        Self {
            fleet: fleet.clone(),
            id,
            proxy: id_of_node,
            origin,
            assignment,
            outdated,
            pending: None,
        }
    }

    /// What the proxy should have now.
    #[must_use]
    pub fn desired(&mut self) -> Arc<Desired> {
        Arc::clone(&self.assignment.borrow_and_update().desired)
    }

    /// Waits until something has changed; waits forever once nothing can change.
    pub async fn changed(&mut self) -> AssignmentChange {
        tokio::select! {
            biased;
            () = self.outdated.cancelled() => AssignmentChange::Unknown,
            changed = self.assignment.changed() => match changed {
                Ok(()) => AssignmentChange::Assigned,
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Reports the proxy's answer in a request, and the state of the subscription after it.
    pub fn record<'a>(
        &mut self,
        reply: &PushReply,
        is_wanted: impl Fn(&str) -> bool,
        running: impl Fn(&str) -> Option<&'a ResourceVersion>,
    ) {
        let desired = Arc::clone(&self.assignment.borrow().desired);
        let settled = match reply {
            PushReply::Accepted(versions) | PushReply::Rejected(versions, _) => versions.as_slice(),
            PushReply::None | PushReply::Stale => &[],
        };
        self.fleet.with_record(self.id, |record| {
            record.note(&desired, is_wanted, running);
            record.set_under_way(settled.iter().map(|(name, _)| name.clone()), false);
            if let PushReply::Rejected(versions, rejection) = reply {
                record.reject(versions, rejection);
            }
        });
        match reply {
            PushReply::Accepted(_) => {
                let pushed = self.pending.take().inspect(|pushed| {
                    pushed.span.record("verdict", "accepted");
                });
                let waited = pushed.map(|pushed| pushed.changed_at.elapsed());
                self.fleet.report(FleetEvent::Accepted { waited });
            }
            PushReply::Rejected(_, rejection) => {
                if let Some(pushed) = self.pending.take() {
                    pushed.span.record("verdict", "rejected");
                    pushed.span.record("otel.status_code", "ERROR");
                    let message = rejection.message.as_str();
                    pushed.span.record("otel.status_description", message);
                }
                self.fleet.report(FleetEvent::Rejected);
            }
            PushReply::Stale => self.fleet.report(FleetEvent::Stale),
            PushReply::None => {}
        }
    }

    /// Reports a push.
    pub fn pushed(&mut self, names: impl Iterator<Item = Name>) {
        let (changed_at, cause) = {
            let assignment = self.assignment.borrow();
            (assignment.changed_at, assignment.cause.clone())
        };
        let span = info_span!(
            target: TARGET,
            "push",
            otel.kind = "producer",
            otel.status_code = Empty,
            otel.status_description = Empty,
            proxy = self.proxy,
            api = self.origin.api.name(),
            dialect = self.origin.dialect,
            verdict = Empty,
        );
        cause.adopt(&span);
        self.pending = Some(PendingPush { changed_at, span });
        self.fleet
            .with_record(self.id, |record| record.set_under_way(names, true));
        self.fleet.report(FleetEvent::Pushed);
    }
}

impl Drop for StreamSeat {
    fn drop(&mut self) {
        self.fleet.disconnect(self.id, &self.origin);
    }
}

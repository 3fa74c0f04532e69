//! A stream's place in the fleet: it learns here what to push, and reports here what became of it.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::{Fleet, StreamId};
use crate::telemetry::{Cause, TARGET};
use crate::xds::{Desired, Heard, Name, Version};

/// Which service a stream came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Extension configuration discovery on its own.
    Ecds,
    /// Aggregated discovery.
    Ads,
}

impl Api {
    /// For status and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ecds => "ecds",
            Self::Ads => "ads",
        }
    }
}

/// How a stream came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// To which service.
    pub api: Api,
    /// `sotw` or `delta`.
    pub dialect: &'static str,
    /// From where.
    pub peer: String,
}

/// What a stream's proxy is to have.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The resources.
    pub desired: Arc<Desired>,
    /// Since when.
    pub changed_at: Instant,
    /// What has brought it about.
    pub cause: Cause,
}

/// What has changed for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its proxy is to have something else.
    Assigned,
    /// Policies ask for more of the proxy than was kept: it has to say it again, on a new stream.
    Unknown,
}

/// See the module; dropping it leaves the fleet.
#[derive(Debug)]
pub struct Seat {
    fleet: Fleet,
    id: StreamId,
    // The node's id.
    proxy: String,
    arrival: Arrival,
    assignment: watch::Receiver<Assignment>,
    outdated: CancellationToken,
    under_way: Option<UnderWay>,
}

/// A push that is not answered yet.
#[derive(Debug)]
struct UnderWay {
    changed_at: Instant,
    // Ends with the answer, or with the stream.
    span: Span,
}

impl Seat {
    pub(super) fn new(
        fleet: Fleet,
        (id, proxy): (StreamId, String),
        arrival: Arrival,
        (assignment, outdated): (watch::Receiver<Assignment>, CancellationToken),
    ) -> Self {
        Self {
            fleet,
            id,
            proxy,
            arrival,
            assignment,
            outdated,
            under_way: None,
        }
    }

    /// What the proxy is to have now.
    #[must_use]
    pub fn desired(&mut self) -> Arc<Desired> {
        Arc::clone(&self.assignment.borrow_and_update().desired)
    }

    /// Waits until something has changed. Never ends when that can no longer be.
    pub async fn changed(&mut self) -> Change {
        tokio::select! {
            biased;
            () = self.outdated.cancelled() => Change::Unknown,
            changed = self.assignment.changed() => match changed {
                Ok(()) => Change::Assigned,
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Reports what a request said and what the conversation knows after it.
    pub fn heard<'a>(
        &mut self,
        heard: &Heard,
        is_wanted: impl Fn(&str) -> bool,
        running: impl Fn(&str) -> Option<&'a Version>,
    ) {
        let desired = Arc::clone(&self.assignment.borrow().desired);
        let settled = match heard {
            Heard::Accepted(versions) | Heard::Refused(versions, _) => versions.as_slice(),
            Heard::Question | Heard::Stale => &[],
        };
        self.fleet.with_record(self.id, |record| {
            record.note(&desired, is_wanted, running);
            record.under_way(settled.iter().map(|(name, _)| name.clone()), false);
            if let Heard::Refused(versions, refusal) = heard {
                record.refuse(versions, refusal);
            }
        });
        let metrics = &self.fleet.metrics;
        match heard {
            Heard::Accepted(_) => {
                let pushed = self.under_way.take().inspect(|pushed| {
                    pushed.span.record("verdict", "accepted");
                });
                metrics.accepted(pushed.map(|pushed| pushed.changed_at.elapsed()));
            }
            Heard::Refused(_, refusal) => {
                if let Some(pushed) = self.under_way.take() {
                    pushed.span.record("verdict", "refused");
                    pushed.span.record("otel.status_code", "ERROR");
                    let message = refusal.message.as_str();
                    pushed.span.record("otel.status_description", message);
                }
                metrics.refused();
            }
            Heard::Stale => metrics.stale(),
            Heard::Question => {}
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
            api = self.arrival.api.name(),
            dialect = self.arrival.dialect,
            verdict = Empty,
        );
        cause.leads_to(&span);
        self.under_way = Some(UnderWay { changed_at, span });
        self.fleet
            .with_record(self.id, |record| record.under_way(names, true));
        self.fleet.metrics.pushed();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.fleet.disconnect(self.id, &self.arrival);
    }
}

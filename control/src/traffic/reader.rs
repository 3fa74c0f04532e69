//! Reads the graph periodically.
//!
//! The client blocks, and a query may take as long as its timeout. So each read has a thread of its own: it delays neither
//! xDS nor REST, and the shutdown of the service does not wait for it. No query is sent after the shutdown begins.

use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use tidegate_graph::output::plain;
use tidegate_graph::prometheus::{AskError, AskPrometheus, PrometheusClient};
use tidegate_graph::{BuiltGraph, WarningKind, build};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::event::TrafficEvent;
use super::live::LiveTraffic;
use super::terms::{TrafficError, TrafficTerms};
use crate::event::EventSink;

/// Longest wait after a failure, so that the graph returns soon after an outage of Prometheus.
const MAX_RETRY: Duration = Duration::from_secs(30);

/// Where and how often the graph is read.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficSettings {
    /// Where and how the graph is read.
    pub terms: TrafficTerms,
    /// Time from the end of one read to the next.
    pub interval: Duration,
}

impl LiveTraffic {
    /// Starts to read the graph.
    ///
    /// # Errors
    ///
    /// If no read can begin with these settings.
    pub fn start(
        settings: &TrafficSettings,
        events: EventSink<TrafficEvent>,
        closing: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Result<Self, TrafficError> {
        // Invalid settings would make every read fail.
        if settings.terms.checked()?.sends_credentials_in_clear() {
            warn!(
                "the credentials for Prometheus go over http, which others can read: expected https"
            );
        }
        let live = Self::default();
        let reader = TrafficReader {
            settings: settings.clone(),
            live: live.clone(),
            events,
            closing: closing.clone(),
        };
        tasks.spawn(reader.run());
        Ok(live)
    }
}

/// The task; see the module.
#[derive(Debug)]
struct TrafficReader {
    settings: TrafficSettings,
    live: LiveTraffic,
    events: EventSink<TrafficEvent>,
    closing: CancellationToken,
}

impl TrafficReader {
    /// Reads until told to stop. A repeated failure is logged only once, until its message changes.
    async fn run(self) {
        let mut before = None;
        loop {
            let reading = start(self.settings.terms.clone(), self.closing.clone());
            let read = tokio::select! {
                () = self.closing.cancelled() => return,
                read = reading => read.unwrap_or_else(|_| Err("the read was aborted".to_owned())),
            };
            let wait = match &read {
                Ok(_) => self.settings.interval,
                Err(_) => self.settings.interval.min(MAX_RETRY),
            };
            self.take(read, &mut before, Timestamp::now());
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn take(&self, read: Result<BuiltGraph, String>, before: &mut Option<String>, now: Timestamp) {
        let event = match &read {
            Ok(built) => {
                let edges = built.graph.petgraph().edge_count();
                if before.take().is_some() {
                    info!(edges, "the service graph can be read again");
                }
                TrafficEvent::Read {
                    at: now.as_second(),
                    edges,
                }
            }
            Err(error) => {
                if before.replace(error.clone()).as_ref() != Some(error) {
                    warn!(%error, "the service graph cannot be read; the last one remains");
                }
                TrafficEvent::Failed
            }
        };
        self.live.set(read, now);
        self.events.send(event);
    }
}

/// Starts a read on a thread; the receiver fails if the thread panics or cannot be started.
fn start(
    terms: TrafficTerms,
    closing: CancellationToken,
) -> oneshot::Receiver<Result<BuiltGraph, String>> {
    let (done, reading) = oneshot::channel();
    let run = move || {
        let found = read(&terms, closing).map_err(|error| plain(&error.to_string()));
        // Nothing waits for it if the service has shut down.
        let _ = done.send(found);
    };
    // Without a thread, `done` is dropped.
    let _ = thread::Builder::new().name("graph".to_owned()).spawn(run);
    reading
}

fn read(terms: &TrafficTerms, closing: CancellationToken) -> Result<BuiltGraph, TrafficError> {
    let prometheus = UntilClosed {
        client: terms.prometheus.client()?,
        closing,
    };
    let end = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
    let collected = terms.collected(&prometheus, end)?;
    let built = build(&collected.recording(), terms.build)?;
    let failed = built
        .warnings
        .iter()
        .find(|warning| warning.kind == WarningKind::QueryFailed);
    match failed {
        // Without this, an overloaded Prometheus would empty the graph.
        Some(failed) if built.graph.petgraph().edge_count() == 0 => {
            Err(TrafficError::Nothing(failed.message.clone()))
        }
        _ => Ok(built),
    }
}

/// A client that sends no more queries once the service shuts down.
struct UntilClosed {
    client: PrometheusClient,
    closing: CancellationToken,
}

impl AskPrometheus for UntilClosed {
    fn ask(&self, promql: &str, time: u64, max_bytes: u64) -> Result<String, AskError> {
        if self.closing.is_cancelled() {
            return Err(AskError::Unreachable {
                url: String::new(),
                reason: "the control service shuts down".to_owned(),
            });
        }
        self.client.ask(promql, time, max_bytes)
    }
}

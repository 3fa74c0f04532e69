//! Logs when the collector stops accepting spans and when it accepts them again, once each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tracing::{info, warn};

/// See the module.
#[derive(Debug)]
pub(super) struct Reporting {
    to: Otlp,
    has_failed: AtomicBool,
}

impl Reporting {
    pub(super) const fn new(to: Otlp) -> Self {
        Self {
            to,
            has_failed: AtomicBool::new(false),
        }
    }
}

impl SpanExporter for Reporting {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.to.export(batch).await;
        let had_failed = self.has_failed.swap(exported.is_err(), Ordering::Relaxed);
        match &exported {
            Err(error) if !had_failed => {
                warn!(%error, spans, "the trace collector does not accept spans; they are lost until it does");
            }
            Ok(()) if had_failed => info!("the trace collector accepts spans again"),
            _ => {}
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.to.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.to.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.to.set_resource(resource);
    }
}

//! Samples of upstreams and plugin while a scenario is played.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::services::Services;
use crate::envoy::{Admin, Metrics};
use crate::upstream::Counts;
use crate::variant::Variant;
use tidegate_sim::series::SeriesSample;

/// Interval between two samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(250);

/// Samples upstreams and plugin while a scenario is played.
pub(super) struct Sampler {
    pub(super) services: Services,
    pub(super) admin: Admin,
    pub(super) start: Instant,
    pub(super) variant: Variant,
}

impl Sampler {
    /// Takes samples at regular intervals until `stopped`.
    pub(super) async fn sample(
        self,
        mut stopped: oneshot::Receiver<()>,
        progress: impl Fn(Duration),
    ) -> Vec<SeriesSample> {
        let mut ticks = interval_at(self.start, SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut samples = Vec::new();
        loop {
            tokio::select! {
                _ = &mut stopped => return samples,
                _ = ticks.tick() => {}
            }
            progress(self.start.elapsed());
            // A failed sample leaves a gap in a chart.
            let plugin = if self.variant.is_ours() {
                self.admin.tidegate().await.ok()
            } else {
                None
            };
            samples.push(sample(
                self.services.counts(),
                plugin.as_ref(),
                self.start.elapsed(),
            ));
        }
    }
}

/// One sample of upstreams and plugin.
pub(crate) fn sample(
    counts: impl Iterator<Item = Counts>,
    plugin: Option<&Metrics>,
    at: Duration,
) -> SeriesSample {
    let mut sample = SeriesSample {
        at_s: at.as_secs_f64(),
        ..SeriesSample::default()
    };
    for counts in counts {
        sample.received += counts.received;
        sample.in_service += counts.in_service;
        sample.waiting += counts.waiting;
    }
    if let Some(metrics) = plugin.filter(|metrics| !metrics.is_empty()) {
        sample.limit = Some(metrics.sum("limit", ""));
        sample.in_flight = Some(metrics.sum("in_flight", ""));
        let states = metrics
            .iter()
            .filter(|metric| metric.name == "breaker_state");
        sample.breaker = states.map(|metric| metric.value).max();
    }
    sample
}

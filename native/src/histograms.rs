//! Histograms of Envoy's for one configuration, and what they are told on a tick.

#![expect(
    unsafe_code,
    reason = "histograms are defined and filled by calls into Envoy"
)]

use std::collections::HashMap;

use tidegate_worker::api::MetricKind;
use tidegate_worker::metrics::description::Metric;
use tidegate_worker::metrics::name::{Naming, upstream_labels};
use tidegate_worker::metrics::table::PREFIX;

use crate::abi::{self, Buffer, EnvoyPtr, METRICS_SUCCESS, NewerCallbacks, log, log_level};
use crate::descriptions::{NameParts, signature};
use crate::latencies::{Latencies, LatencyValue};
use crate::metrics::label_sets;

const fn of_upstreams(name: &'static str) -> Metric {
    Metric {
        name,
        // Of no use here: the table has no histograms, because WebAssembly modules cannot fill one on a tick.
        kind: MetricKind::Gauge,
        per_upstream: true,
        label: None,
        help: "",
    }
}

/// Latencies of successes, to the moment that the objective measures.
const LATENCY: Metric = of_upstreams("latency_ms");
/// How much longer they are than the mean latency without a queue.
const QUEUE: Metric = of_upstreams("queue_ms");

/// Envoy's numbers for the histograms of a configuration, by name and labels.
#[derive(Debug, Default)]
pub(crate) struct HistogramIds(HashMap<String, usize>);

impl HistogramIds {
    /// Defines all of them. Only while Envoy makes the configuration.
    pub(crate) fn define(config: EnvoyPtr) -> Self {
        let mut ids = HashMap::new();
        for metric in [LATENCY, QUEUE] {
            let name = format!("{PREFIX}{}", metric.name);
            for labels in label_sets(&metric) {
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                match define(config, &name, &labels) {
                    Some(id) => {
                        ids.insert(signature(&name, &labels), id);
                    }
                    None => log(
                        log_level::WARN,
                        &format!("tidegate: Envoy rejects the histogram {name}"),
                    ),
                }
            }
        }
        Self(ids)
    }

    /// Tells Envoy the latencies of the plugin with this name, on its main thread.
    pub(crate) fn publish(&self, config: EnvoyPtr, plugin: &str, latencies: &Latencies) {
        let Some(record) = NewerCallbacks::get().record_histogram else {
            return;
        };
        let naming = Naming::of_plugin(plugin);
        // The labels of the upstream before are those of the next value, mostly.
        let mut last: Option<LabelledUpstream> = None;
        latencies.tell(|value| {
            let upstream = match last.take() {
                Some(known) if known.hash == value.hash => known,
                _ => LabelledUpstream::of(&naming, &value),
            };
            let figures = [
                (&upstream.latency, Some(value.latency_ms)),
                (&upstream.queue, value.queue_ms),
            ];
            for (labelled, figure) in figures {
                let id = self.0.get(&labelled.signature);
                if let (Some(id), Some(figure)) = (id, figure) {
                    let values = labelled.values.iter();
                    let values: Vec<Buffer> =
                        values.map(|value| Buffer::of(value.as_bytes())).collect();
                    // SAFETY: the hook that calls this gave the configuration; Envoy reads the values during the call. A
                    // value that it does not take is lost, as one that was left out of the sample.
                    let _ = unsafe { record(config, *id, values.as_ptr(), values.len(), figure) };
                }
            }
            last = Some(upstream);
        });
    }
}

/// The histograms of one upstream, with their labels.
struct LabelledUpstream {
    hash: u64,
    latency: Labelled,
    queue: Labelled,
}

/// One histogram of one upstream.
struct Labelled {
    signature: String,
    values: Vec<String>,
}

impl LabelledUpstream {
    fn of(naming: &Naming, value: &LatencyValue<'_>) -> Self {
        let labels = upstream_labels(value.upstream);
        let labelled = |metric: &Metric| {
            let name = naming.name(metric, &labels, None);
            let parts = NameParts::of(&name);
            Labelled {
                signature: parts.signature(),
                values: parts.values.into_iter().map(str::to_owned).collect(),
            }
        };
        Self {
            hash: value.hash,
            latency: labelled(&LATENCY),
            queue: labelled(&QUEUE),
        }
    }
}

fn define(config: EnvoyPtr, name: &str, labels: &[&str]) -> Option<usize> {
    let labels: Vec<Buffer> = labels.iter().map(|it| Buffer::of(it.as_bytes())).collect();
    let mut id = 0;
    // SAFETY: the hook under way gave the configuration; Envoy reads the names during the call.
    let result = unsafe {
        abi::envoy_dynamic_module_callback_http_filter_config_define_histogram(
            config,
            Buffer::of(name.as_bytes()),
            labels.as_ptr(),
            labels.len(),
            &raw mut id,
        )
    };
    (result == METRICS_SUCCESS).then_some(id)
}

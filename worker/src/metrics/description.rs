//! What names and documents need to know of one metric.

use crate::api::MetricKind;

/// Description of one metric, for names and documents.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name without [`PREFIX`](super::table::PREFIX).
    pub name: &'static str,
    /// What it does.
    pub kind: MetricKind,
    /// Whether there is one for each upstream.
    pub per_upstream: bool,
    /// One more label.
    pub label: Option<Label>,
    /// What it says, in one sentence.
    pub help: &'static str,
}

/// A label and all values it can have.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// Every value.
    pub values: &'static [&'static str],
}

pub(super) const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        per_upstream: true,
        label: None,
        help,
    }
}

pub(super) const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric {
        kind: MetricKind::Gauge,
        ..counter(name, help)
    }
}

pub(super) const fn labelled(
    metric: Metric,
    name: &'static str,
    values: &'static [&'static str],
) -> Metric {
    Metric {
        label: Some(Label { name, values }),
        ..metric
    }
}

/// The same for names alone: the module needs no sentences.
pub(super) const fn without_help(metric: Metric) -> Metric {
    Metric { help: "", ..metric }
}

pub(super) const fn of_plugin(metric: Metric) -> Metric {
    Metric {
        per_upstream: false,
        ..metric
    }
}

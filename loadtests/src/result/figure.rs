//! The figures of a cell, and each by name for tables, charts and comparisons.

use serde::{Deserialize, Serialize};

/// Figures of one cell; ratios are 0..=1; a figure that the tool does not provide is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellFigures {
    /// Length of the measurement, in seconds.
    pub seconds: Option<f64>,
    /// Requests that ended.
    pub requests: Option<f64>,
    /// Requests that ended, a second.
    pub qps: Option<f64>,
    /// Requests that should have been sent, a second; `None` in a closed loop at full rate.
    pub offered_qps: Option<f64>,
    /// Share of the requests that succeeded.
    pub success_ratio: Option<f64>,
    /// Answers with success and within the objective's latency, a second.
    pub goodput_rps: Option<f64>,
    /// Good answers, divided by those of an oracle that knows the capacity, for the same requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oracle_ratio: Option<f64>,
    /// Share of the requests that the proxy shed.
    pub shed_ratio: Option<f64>,
    /// Attempts that reached the upstream for each request of a caller.
    pub reached_per_request: Option<f64>,
    /// Mean latency, in milliseconds.
    pub mean_ms: Option<f64>,
    /// Median of latency, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 75th percentile of latency, in milliseconds.
    pub p75_ms: Option<f64>,
    /// 90th percentile of latency, in milliseconds.
    pub p90_ms: Option<f64>,
    /// 95th percentile of latency, in milliseconds.
    pub p95_ms: Option<f64>,
    /// 99th percentile of latency, in milliseconds.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile of latency, in milliseconds.
    pub p999_ms: Option<f64>,
    /// CPU time of all Envoys of the cell during the measurement, in seconds.
    pub cpu_seconds: Option<f64>,
    /// CPU time of the clients during the measurement, in seconds; `None` if fortio does not make the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cpu_seconds: Option<f64>,
    /// Resident memory of all Envoys of the cell together, in MiB.
    pub rss_mib: Option<f64>,
}

/// A figure of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// See [`CellFigures::qps`].
    Qps,
    /// See [`CellFigures::success_ratio`].
    SuccessRatio,
    /// See [`CellFigures::goodput_rps`].
    GoodputRps,
    /// See [`CellFigures::oracle_ratio`].
    OracleRatio,
    /// See [`CellFigures::shed_ratio`].
    ShedRatio,
    /// See [`CellFigures::reached_per_request`].
    ReachedPerRequest,
    /// See [`CellFigures::mean_ms`].
    MeanMs,
    /// See [`CellFigures::p50_ms`].
    P50Ms,
    /// See [`CellFigures::p75_ms`].
    P75Ms,
    /// See [`CellFigures::p90_ms`].
    P90Ms,
    /// See [`CellFigures::p95_ms`].
    P95Ms,
    /// See [`CellFigures::p99_ms`].
    P99Ms,
    /// See [`CellFigures::p999_ms`].
    P999Ms,
    /// Cores that all Envoys of the cell kept busy: [`CellFigures::cpu_seconds`] divided by [`CellFigures::seconds`].
    CpuCores,
    /// CPU time of all Envoys of the cell for each request, in microseconds.
    CpuMicros,
    /// CPU time of the clients for each request, in microseconds.
    ClientMicros,
    /// See [`CellFigures::rss_mib`].
    RssMib,
}

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
    /// It depends: to shed many requests is right if the load is far too high.
    Depends,
}

/// Microseconds in a second.
const MICROS: f64 = 1e6;

impl Figure {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 17] = [
        Self::Qps,
        Self::SuccessRatio,
        Self::GoodputRps,
        Self::OracleRatio,
        Self::ShedRatio,
        Self::ReachedPerRequest,
        Self::MeanMs,
        Self::P50Ms,
        Self::P75Ms,
        Self::P90Ms,
        Self::P95Ms,
        Self::P99Ms,
        Self::P999Ms,
        Self::CpuCores,
        Self::CpuMicros,
        Self::ClientMicros,
        Self::RssMib,
    ];

    /// Its value; `None` if the tool does not provide it.
    #[must_use]
    pub fn of(self, figures: &CellFigures) -> Option<f64> {
        let value = match self {
            Self::Qps => figures.qps,
            Self::SuccessRatio => figures.success_ratio,
            Self::GoodputRps => figures.goodput_rps,
            Self::OracleRatio => figures.oracle_ratio,
            Self::ShedRatio => figures.shed_ratio,
            Self::ReachedPerRequest => figures.reached_per_request,
            Self::MeanMs => figures.mean_ms,
            Self::P50Ms => figures.p50_ms,
            Self::P75Ms => figures.p75_ms,
            Self::P90Ms => figures.p90_ms,
            Self::P95Ms => figures.p95_ms,
            Self::P99Ms => figures.p99_ms,
            Self::P999Ms => figures.p999_ms,
            Self::CpuCores => figures
                .cpu_seconds
                .zip(figures.seconds)
                .map(|(cpu, seconds)| cpu / seconds),
            Self::CpuMicros => micros(figures.cpu_seconds, figures),
            Self::ClientMicros => micros(figures.client_cpu_seconds, figures),
            Self::RssMib => figures.rss_mib,
        };
        value.filter(|value| value.is_finite())
    }

    /// Head of its column.
    #[must_use]
    pub const fn head(self) -> &'static str {
        match self {
            Self::Qps => "qps",
            Self::SuccessRatio => "success %",
            Self::GoodputRps => "goodput /s",
            Self::OracleRatio => "of oracle %",
            Self::ShedRatio => "shed %",
            Self::ReachedPerRequest => "reached x",
            Self::MeanMs => "mean ms",
            Self::P50Ms => "p50 ms",
            Self::P75Ms => "p75 ms",
            Self::P90Ms => "p90 ms",
            Self::P95Ms => "p95 ms",
            Self::P99Ms => "p99 ms",
            Self::P999Ms => "p99.9 ms",
            Self::CpuCores => "CPU cores",
            Self::CpuMicros => "CPU us/request",
            Self::ClientMicros => "client us/request",
            Self::RssMib => "MiB",
        }
    }

    /// The value as a cell of a table, in the unit of the head.
    #[must_use]
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::SuccessRatio | Self::OracleRatio | Self::ShedRatio => {
                format!("{:.1}", value * 100.0)
            }
            Self::ReachedPerRequest | Self::CpuCores => format!("{value:.2}"),
            Self::Qps | Self::GoodputRps | Self::RssMib if value >= 100.0 => format!("{value:.0}"),
            _ if value >= 1_000.0 => format!("{value:.0}"),
            _ if value >= 100.0 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }

    /// The direction in which it is better.
    #[must_use]
    pub const fn better(self) -> Better {
        match self {
            Self::Qps | Self::SuccessRatio | Self::GoodputRps | Self::OracleRatio => Better::More,
            Self::ShedRatio => Better::Depends,
            _ => Better::Less,
        }
    }
}

/// CPU time for each request, in microseconds.
fn micros(cpu_seconds: Option<f64>, figures: &CellFigures) -> Option<f64> {
    let requests = figures.qps? * figures.seconds?;
    Some(cpu_seconds? / requests * MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_cpu_time_by_time() {
        let mut figures = CellFigures {
            cpu_seconds: Some(3.0),
            ..CellFigures::default()
        };
        assert_eq!(Figure::CpuCores.of(&figures), None);
        figures.seconds = Some(2.0);
        assert_eq!(Figure::CpuCores.of(&figures), Some(1.5));
        figures.seconds = Some(0.0);
        assert_eq!(Figure::CpuCores.of(&figures), None, "no number");
    }

    #[test]
    fn ratios_are_shown_in_percent() {
        assert_eq!(Figure::SuccessRatio.shown(0.9876), "98.8");
        assert_eq!(Figure::Qps.shown(1234.5), "1234");
        assert_eq!(Figure::P99Ms.shown(1.239), "1.24");
    }
}

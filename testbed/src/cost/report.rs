//! The figures beside their targets, as JSON and as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::counter::CounterTool;
use super::{memory, requests};
use tidegate_report::table::Table;
use tidegate_sim::number::float;

/// Most instructions that an admitted request may cost, beyond a request without a filter.
const MAX_ADMITTED: f64 = 58_000.0;
/// The figure that is aimed at.
const AIM_ADMITTED: f64 = 50_000.0;
/// Most that a shed request may cost, as a share of one that is forwarded without a filter.
const MAX_SHED_SHARE: f64 = 0.52;
/// Largest module, in bytes.
const MAX_MODULE_BYTES: u64 = 400 * 1_024;
/// Most memory that the filter may add per worker, in bytes.
const MAX_WORKER_BYTES: f64 = 3e6;

const KIB: f64 = 1_024.0;
const MB: f64 = 1e6;

/// Everything that one run measured.
#[derive(Debug, Clone, Serialize)]
pub struct CostReport {
    /// Machine, versions, commit, date.
    pub metadata: BTreeMap<String, String>,
    /// The counter's name.
    pub counter: &'static str,
    /// Unit of the counts.
    pub unit: &'static str,
    /// Why better counters were not used.
    pub refusals: Vec<String>,
    /// Costs of requests; the first row is the one without filter.
    pub requests: Vec<requests::RequestRow>,
    /// Memory by subject, where it was measured; the first row is the one without filter.
    pub memory: Vec<memory::MemoryRow>,
    /// Size of the module in bytes.
    pub module_bytes: u64,
    /// Targets and the measured values.
    pub targets: Vec<CostTarget>,
}

/// One target and the measured value.
#[derive(Debug, Clone, Serialize)]
pub struct CostTarget {
    /// The measured quantity, with its unit.
    pub name: &'static str,
    /// The measured value.
    pub found: f64,
    /// The most that is allowed.
    pub most: f64,
    /// Whether the value is within the target.
    pub kept: bool,
    /// Whether the target is required, or only aimed at.
    pub required: bool,
}

impl CostTarget {
    fn new(name: &'static str, found: f64, most: f64) -> Self {
        Self {
            name,
            found,
            most,
            kept: found <= most,
            required: true,
        }
    }

    const fn aimed_at(mut self) -> Self {
        self.required = false;
        self
    }
}

/// The targets for what was measured; targets on instructions apply only if instructions were counted.
#[must_use]
pub fn targets(
    tool: CounterTool,
    requests: &[requests::RequestRow],
    memory: &[memory::MemoryRow],
    module_bytes: u64,
) -> Vec<CostTarget> {
    let median = |end: &str| {
        requests
            .iter()
            .find(|row| row.name.ends_with(end))
            .map(|row| row.per_request.median)
    };
    let mut targets = Vec::new();
    if let (Some(bare), Some(admitted)) = (median("no filter"), median("admitted")) {
        if tool.counts_instructions() {
            let name = "admitted, instructions above no filter";
            targets.push(CostTarget::new(name, admitted - bare, MAX_ADMITTED));
            let name = "the same, aim";
            targets.push(CostTarget::new(name, admitted - bare, AIM_ADMITTED).aimed_at());
        }
        if let Some(shed) = median("shed") {
            let name = "shed, share of a forwarded request";
            targets.push(CostTarget::new(name, shed / bare, MAX_SHED_SHARE));
        }
    }
    let name = "module, KiB";
    let most = float(MAX_MODULE_BYTES) / KIB;
    targets.push(CostTarget::new(name, float(module_bytes) / KIB, most));
    let per_worker = |name: &str| {
        memory
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.per_worker_bytes)
    };
    if let (Some(bare), Some(module)) = (per_worker("no filter"), per_worker("tidegate")) {
        let name = "memory per worker above the first, MB";
        targets.push(CostTarget::new(
            name,
            (module - bare) / MB,
            MAX_WORKER_BYTES / MB,
        ));
    }
    targets
}

impl CostReport {
    /// The tables for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for refusal in &self.refusals {
            let _ = writeln!(text, "not used: {refusal}");
        }
        if !self.requests.is_empty() {
            let _ = writeln!(
                text,
                "counted by {}: {} per request\n",
                self.counter, self.unit
            );
            text.push_str(&self.request_table().text());
        }
        if !self.memory.is_empty() {
            text.push('\n');
            text.push_str(&self.memory_table().text());
        }
        text.push('\n');
        text.push_str(&self.target_table().text());
        text
    }

    fn request_table(&self) -> Table {
        let bare = self.requests.first().map(|row| row.per_request.median);
        let rows: Vec<Vec<String>> = self
            .requests
            .iter()
            .map(|row| {
                let bare = bare.unwrap_or(f64::NAN);
                let cost = row.per_request;
                vec![
                    row.name.clone(),
                    grouped(cost.median),
                    format!("{:.1} %", (cost.max - cost.min) / cost.median * 100.0),
                    grouped(cost.median - bare),
                    format!("{:.3}", cost.median / bare),
                    grouped(row.background_per_second.median),
                ]
            })
            .collect();
        let head = [
            "",
            "per request",
            "spread",
            "above no filter",
            "ratio",
            "per second",
        ];
        Table::new(&head, rows)
    }

    fn memory_table(&self) -> Table {
        let mb = |bytes: f64| format!("{:.2}", bytes / MB);
        let rows: Vec<Vec<String>> = self
            .memory
            .iter()
            .map(|row| {
                vec![
                    row.name.clone(),
                    mb(float(row.one_worker_bytes)),
                    mb(float(row.many_workers_bytes)),
                    mb(row.per_worker_bytes),
                    format!("{:.1}", row.upkeep_ms_per_second),
                ]
            })
            .collect();
        let head = [
            "resident memory, MB",
            "one worker",
            "many workers",
            "each more",
            "upkeep, ms/s",
        ];
        Table::new(&head, rows)
    }

    fn target_table(&self) -> Table {
        let rows: Vec<Vec<String>> = self
            .targets
            .iter()
            .map(|target| {
                vec![
                    target.name.to_owned(),
                    figure(target.found),
                    figure(target.most),
                    if target.kept { "yes" } else { "NO" }.to_owned(),
                ]
            })
            .collect();
        Table::new(&["target", "found", "at most", "kept"], rows)
    }
}

/// Formats small figures with a fraction, as the third digit may decide, and large ones without.
fn figure(value: f64) -> String {
    if value.abs() < 1_000.0 {
        format!("{value:.3}")
    } else {
        grouped(value)
    }
}

/// Formats a whole number with thousands separators.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" {
        text.insert(0, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::requests::{CostSpread, RequestRow};

    fn row(name: &str, median: f64) -> RequestRow {
        let spread = CostSpread {
            median,
            min: median,
            max: median,
        };
        RequestRow {
            name: name.to_owned(),
            per_request: spread,
            background_per_second: spread,
            requests: 1,
        }
    }

    fn rows() -> [RequestRow; 3] {
        [
            row("no filter", 200_000.0),
            row("tidegate, admitted", 255_000.0),
            row("tidegate, shed", 104_001.0),
        ]
    }

    #[test]
    fn targets_are_kept_up_to_their_edge() {
        let kept: Vec<bool> = targets(CounterTool::Perf, &rows(), &[], MAX_MODULE_BYTES)
            .iter()
            .map(|target| target.kept)
            .collect();
        assert_eq!(kept, [true, false, false, true]);
    }

    #[test]
    fn cpu_time_is_not_judged_as_instructions() {
        let names: Vec<&str> = targets(CounterTool::Cpu, &rows(), &[], 0)
            .iter()
            .map(|target| target.name)
            .collect();
        assert_eq!(names, ["shed, share of a forwarded request", "module, KiB"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(226_950.4), "226,950");
        assert_eq!(grouped(-1_000.0), "-1,000");
        assert_eq!(grouped(12.0), "12");
    }
}

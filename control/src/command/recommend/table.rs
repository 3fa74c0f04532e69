//! Recommendations for people.

use serde_json::Value;
use tidegate_advise::recommend::{AdviceDocument, AdviceEntry};
use tidegate_graph::output::plain;

use crate::command::output::table;

/// Shown instead of an unknown value.
const NOT_KNOWN: &str = "-";

/// One row for each upstream; safe to print.
pub(super) fn shown(document: &AdviceDocument) -> String {
    let rows: Vec<_> = document.upstreams.iter().map(row).collect();
    table(
        [
            "UPSTREAM", "QUANTILE", "TARGET", "SUCCESS", "OBSERVED", "SENSIBLE", "SAMPLES", "NOTE",
        ],
        &rows,
    )
}

fn row(entry: &AdviceEntry) -> [String; 8] {
    let slo = |pointer: &str| {
        let value = entry.slo.as_ref().and_then(|slo| slo.pointer(pointer));
        text(value)
    };
    let bound = |pointer: &str| {
        let value = entry
            .bounds
            .as_ref()
            .and_then(|bounds| bounds.pointer(pointer));
        text(value)
    };
    let evidence = entry.evidence.as_ref();
    let mut notes: Vec<String> = Vec::new();
    notes.extend(entry.refused.as_ref().map(ToString::to_string));
    if entry.refused.is_none() {
        notes.extend(entry.no_rule.clone());
    }
    notes.extend(entry.chain.as_ref().map(|chain| chain.note.clone()));
    for found in &entry.in_force {
        let differs = if found.differs == Some(false) {
            "as"
        } else {
            "now"
        };
        let verdicts: String = found
            .verdicts
            .iter()
            .map(|verdict| format!(", but {verdict}"))
            .collect();
        notes.push(format!(
            "{differs} in {}: {} within {}, success {}{verdicts}",
            found.policy,
            text(found.slo.pointer("/latency/quantile")),
            text(found.slo.pointer("/latency/target")),
            text(found.slo.pointer("/successRate")),
        ));
    }
    let known = |value: Option<String>| value.unwrap_or_else(|| NOT_KNOWN.to_owned());
    [
        plain(&entry.upstream),
        slo("/latency/quantile"),
        slo("/latency/target"),
        slo("/successRate"),
        known(evidence.map(|found| format!("{:.1}ms", found.observed_seconds * 1_000.0))),
        known(evidence.map(|_| {
            format!(
                "{} to {}",
                bound("/target/lowest"),
                bound("/target/highest")
            )
        })),
        known(evidence.map(|found| format!("{:.0}", found.samples))),
        plain(&notes.join("; ")),
    ]
}

fn text(value: Option<&Value>) -> String {
    match value {
        None => NOT_KNOWN.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

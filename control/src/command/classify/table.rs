//! The result of `tidegate classify` for people.

use std::fmt::Write as _;

use serde_json::Value;

use crate::command::output::HEADING;

/// One line for each part of the result.
pub(super) fn text(value: &Value) -> String {
    let at = |path: &str| value.pointer(path).cloned().unwrap_or_default();
    let word = |path: &str| match at(path) {
        Value::String(text) => text,
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let plain = value.replace(char::is_control, " ");
        // Writing to a string does not fail.
        let _ = writeln!(out, "{HEADING}{name:<10}{HEADING:#}{plain}");
    };
    let service = match at("/upstream/service") {
        Value::String(service) => format!(", service {service}"),
        _ => String::new(),
    };
    line(
        "upstream",
        &format!(
            "{}{service}; state: {}",
            word("/upstream/cluster"),
            word("/upstream/state")
        ),
    );
    let name = match at("/policy/name") {
        Value::String(name) => format!("{name}, "),
        _ => String::new(),
    };
    line(
        "policy",
        &format!(
            "{name}{}: {}, {} within {} ms",
            word("/policy/rule"),
            word("/policy/mode"),
            word("/policy/quantile"),
            word("/policy/targetMillis")
        ),
    );
    line(
        "class",
        &format!(
            "{} by {}{}",
            word("/class/name"),
            word("/class/by"),
            if at("/retry") == Value::Bool(true) {
                ", a retry"
            } else {
                ""
            }
        ),
    );
    if !at("/waitMillis").is_null() {
        line("waits", &format!("{} ms", word("/waitMillis")));
    }
    let cohort = match (at("/cohort"), at("/cohort/caller"), at("/cohort/place")) {
        (Value::Null, ..) => "-".to_owned(),
        (_, Value::Null, _) => format!("none: the request has no {}", word("/cohort/header")),
        (_, _, Value::Null) => "of each proxy's own: criticality.cohortKey is not set".to_owned(),
        (_, _, place) => format!(
            "served while the share of its class is above {:.4}, for ten minutes at most",
            place.as_f64().unwrap_or_default()
        ),
    };
    line("cohort", &cohort);
    let exempt = at("/exempt");
    line("exempt", exempt.as_str().unwrap_or("no"));
    out
}

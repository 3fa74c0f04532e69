//! CEL rules for what the schema of the targets cannot express.

use serde_json::{Value, json};

use crate::policy::{TARGET_KEYS, TargetKind};

/// A rule and the message if it does not hold.
pub(super) fn rule(cel: &str, message: &str) -> Value {
    json!({"rule": cel, "message": message})
}

/// The rule that a policy has targets of exactly one kind.
pub(super) fn spec() -> Value {
    let has: Vec<String> = TARGET_KEYS
        .iter()
        .map(|key| format!("has(self.{key})"))
        .collect();
    let cel = format!("[{}].filter(given, given).size() == 1", has.join(", "));
    let message = format!("exactly one of {}", TARGET_KEYS.join(", "));
    json!([rule(&cel, &message)])
}

/// The rule that the group belongs to the kind.
pub(super) fn group_of_kind() -> Value {
    let rules: Vec<Value> = TargetKind::ALL
        .iter()
        .map(|kind| {
            let (name, group) = (kind.name(), kind.group());
            if group.is_empty() {
                rule(
                    &format!(
                        "self.kind != '{name}' || !has(self.group) || self.group in ['', 'core']"
                    ),
                    &format!("the group of a {name} is empty or core"),
                )
            } else {
                rule(
                    &format!(
                        "self.kind != '{name}' || (has(self.group) && self.group == '{group}')"
                    ),
                    &format!("the group of a {name} is {group}"),
                )
            }
        })
        .collect();
    Value::from(rules)
}

/// The rule that each target occurs once.
pub(super) fn unique_targets() -> Value {
    json!([rule(
        "self.all(a, self.exists_one(b, b.kind == a.kind && b.name == a.name))",
        "each target once"
    )])
}

/// The names of the kinds.
pub(super) fn kinds() -> Vec<&'static str> {
    TargetKind::ALL.iter().map(|kind| kind.name()).collect()
}

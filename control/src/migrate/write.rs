//! Writes a policy as text, with comments.
//!
//! It does not use the YAML writer, because comments explain the values. Text
//! from the input is written in JSON's quotes, or in a comment without its line
//! breaks, so that it cannot become part of the document's structure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use tidegate_core::config::Readable;

use super::bounds::ProxyTopology;
use super::carried::CarriedSettings;
use super::destination_rule::{DestinationRule, RulePart};
use super::{MigrationOptions, RuleGroup};
use crate::policy::{API_VERSION, KIND, TargetKind};

/// Maximum width of a comment line, in characters.
const WIDTH: usize = 100;

/// The policy for all rules of a group.
pub(super) fn policy(
    name: &str,
    group: &RuleGroup,
    rules: &[DestinationRule],
    options: &MigrationOptions,
) -> String {
    let mut out = String::new();
    head(&mut out, name, group, rules, options);
    targets(&mut out, group, options);
    objective(&mut out, options);
    out.push_str("  upstreams:\n");
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for rule in rules {
        for part in &rule.parts {
            // A host without settings of its own needs no rule, even if its subsets have some.
            if part.traffic.pool.is_none() && part.traffic.outlier.is_none() {
                continue;
            }
            let matched = conditions(rule, part, options.topology);
            match seen.get(&matched) {
                Some(first) => comment(
                    &mut out,
                    2,
                    &format!(
                        "DestinationRule {} also applies to {matched}: {first} was kept.",
                        rule.name
                    ),
                ),
                None => {
                    upstream(&mut out, rule, part, &matched, options.topology);
                    seen.insert(matched, &rule.name);
                }
            }
        }
    }
    out
}

fn head(
    out: &mut String,
    name: &str,
    group: &RuleGroup,
    rules: &[DestinationRule],
    options: &MigrationOptions,
) {
    let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    let from = format!("Carried over from DestinationRule {}.", names.join(", "));
    comment(out, 0, &from);
    comment(
        out,
        0,
        "Once this policy enforces, remove connectionPool's limits from the DestinationRule: while both apply, the tighter one limits.",
    );
    if matches!(options.topology, ProxyTopology::Sidecars { .. }) {
        comment(
            out,
            0,
            &format!(
                "A DestinationRule applies to clients in every namespace that it is exported to; this policy only to those in {}. Apply a copy in each namespace with clients.",
                group.namespace
            ),
        );
    }
    write(
        out,
        &format!("apiVersion: {API_VERSION}\nkind: {KIND}\nmetadata:\n"),
    );
    write(
        out,
        &format!(
            "  name: {}\n  namespace: {}\n",
            quoted(name),
            quoted(&group.namespace)
        ),
    );
    out.push_str("spec:\n");
}

fn targets(out: &mut String, group: &RuleGroup, options: &MigrationOptions) {
    let selects = !group.selector.is_empty();
    let target = match options.topology {
        ProxyTopology::Sidecars { .. } if selects => {
            out.push_str("  selector:\n    matchLabels:\n");
            for (key, value) in &group.selector {
                write(out, &format!("      {}: {}\n", quoted(key), quoted(value)));
            }
            return;
        }
        ProxyTopology::Sidecars { .. } => (TargetKind::Namespace, group.namespace.as_str()),
        ProxyTopology::Waypoint { .. } => (TargetKind::Gateway, options.waypoint.as_str()),
    };
    let (kind, name) = target;
    out.push_str("  targetRefs:\n");
    write(
        out,
        &format!(
            "  - group: {}\n    kind: {}\n    name: {}\n",
            quoted(kind.group()),
            kind.name(),
            quoted(name)
        ),
    );
}

fn objective(out: &mut String, options: &MigrationOptions) {
    comment(
        out,
        2,
        "Counts what it would shed, and sheds nothing: check these counts before `mode: enforce`.",
    );
    out.push_str("  mode: observe\n");
    comment(
        out,
        2,
        "A DestinationRule has no objective, which is the only setting that Tidegate needs: set what the services promise. A rule below may have its own.",
    );
    write(
        out,
        &format!(
            "  slo:\n    latency:\n      quantile: 0.99\n      target: {}\n",
            quoted(&options.latency)
        ),
    );
}

fn upstream(
    out: &mut String,
    rule: &DestinationRule,
    part: &RulePart,
    matched: &str,
    topology: ProxyTopology,
) {
    let account = CarriedSettings::of(&part.traffic, topology);
    let of_port = part
        .port
        .map(|port| format!(", port {port}"))
        .unwrap_or_default();
    let of_subset = part
        .subset
        .as_ref()
        .map(|name| format!(", subset {name}"))
        .unwrap_or_default();
    comment(
        out,
        2,
        &format!("DestinationRule {}{of_subset}{of_port}.", rule.name),
    );
    write(out, &format!("  - match: {matched}\n"));
    for text in &account.on_limit {
        comment(out, 4, text);
    }
    if let Some(max) = account.limit_max {
        write(
            out,
            &format!("    limit:\n      max: {max}\n      maxOpen: {max}\n"),
        );
    }
    for text in &account.on_breaker {
        comment(out, 4, text);
    }
    if account.min_open.is_some() || account.max_open.is_some() {
        out.push_str("    breaker:\n");
    }
    for (key, value) in [("minOpen", account.min_open), ("maxOpen", account.max_open)] {
        if let Some(value) = value {
            write(out, &format!("      {key}: {}\n", Readable(value)));
        }
    }
}

/// The conditions of a rule, in YAML's flow style.
fn conditions(rule: &DestinationRule, part: &RulePart, topology: ProxyTopology) -> String {
    let service = quoted(&rule.host);
    if part.port.is_none() && part.subset.is_none() {
        return format!("{{service: {service}}}");
    }
    let port = part
        .port
        .map_or_else(|| "*".to_owned(), |port| port.to_string());
    // Envoy's cluster names have the form direction|port|subset|host; a waypoint's subset is prefixed with the protocol.
    let cluster = match (topology, &part.subset) {
        (ProxyTopology::Sidecars { .. }, Some(subset)) => format!("outbound|{port}|{subset}|*"),
        (ProxyTopology::Sidecars { .. }, None) => format!("outbound|{port}|*"),
        (ProxyTopology::Waypoint { .. }, Some(subset)) => {
            format!("inbound-vip|{port}|*/{subset}|*")
        }
        (ProxyTopology::Waypoint { .. }, None) => format!("inbound-vip|{port}|*"),
    };
    format!("{{service: {service}, cluster: {}}}", quoted(&cluster))
}

/// `text` in quotes that YAML and JSON read the same way.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn write(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = out.write_str(text);
}

/// `text` as comment lines, broken between words.
fn comment(out: &mut String, indent: usize, text: &str) {
    let lead = format!("{:indent$}#", "");
    let mut line = lead.clone();
    for word in text.split_whitespace() {
        let is_full = line.chars().count().saturating_add(word.chars().count()) >= WIDTH;
        if is_full && line != lead {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&lead);
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

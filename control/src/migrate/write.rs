//! Writes a policy as text, with comments.
//!
//! It does not use the YAML writer, because comments explain the values. Text
//! from the input is written in JSON's quotes, or in a comment without its line
//! breaks, so that it cannot become part of the document's structure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use tidegate_core::config::{Readable, parse_duration};
use tidegate_graph::output::plain;

use super::carried::CarriedSettings;
use super::destination_rule::{DestinationRule, RulePart};
use super::known::{HostKnowledge, KnownObjective};
use super::{LimitedProxies, MigrationOptions, QUANTILE, RuleGroup};
use crate::policy::{API_VERSION, KIND, TargetKind};

/// Maximum width of a comment line, in characters.
const WIDTH: usize = 100;

/// A policy as text.
pub(super) struct WrittenPolicy {
    pub(super) text: String,
    /// Names of numbers that were needed and are unknown.
    pub(super) unknown: Vec<String>,
    pub(super) has_objective: bool,
}

/// The policy for all rules of a group.
pub(super) fn policy(
    name: &str,
    group: &RuleGroup,
    rules: &[DestinationRule],
    options: &MigrationOptions,
    known: &HostKnowledge<'_>,
) -> WrittenPolicy {
    let mut out = String::new();
    head(&mut out, name, group, rules, options);
    targets(&mut out, group, options);
    let objectives: Vec<_> = rules
        .iter()
        .map(|rule| (rule, known.objective(&rule.host, &rule.namespace)))
        .collect();
    let mut unknown = Vec::new();
    let has_objective = objective(&mut out, options, &objectives);
    let policy = format!("{}/{name}", group.namespace);
    if !has_objective {
        unknown.push(format!(
            "{policy}: no objective, and none is assumed: it is not valid until you set slo.latency.target (--latency, --counts, or a graph)"
        ));
    }
    out.push_str("  upstreams:\n");
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for (rule, slo) in &objectives {
        for part in &rule.parts {
            // A host without settings of its own needs no rule, even if its subsets have some.
            if part.traffic.pool.is_none() && part.traffic.outlier.is_none() {
                continue;
            }
            let matched = conditions(rule, part, options.proxies);
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
                    let account = CarriedSettings::of(
                        &part.traffic,
                        known.topology(&rule.host, &rule.namespace),
                    );
                    let missing = account.missing.iter();
                    unknown.extend(missing.map(|missing| {
                        format!(
                            "{policy}: limit.max of DestinationRule {}: not known: {missing}",
                            rule.name
                        )
                    }));
                    upstream(&mut out, rule, part, &matched, &account);
                    match slo {
                        Some(slo) => own_objective(&mut out, slo),
                        // With the flag, the objective at the top applies to all hosts.
                        None if options.fixed.latency.is_none() => {
                            let why = known.why_no_objective(&rule.host, &rule.namespace);
                            let text = format!("No objective is known for {}: {why}.", rule.host);
                            comment(&mut out, 4, &text);
                            if has_objective {
                                unknown.push(format!(
                                    "{policy}: {text} The one at the top holds for it"
                                ));
                            }
                        }
                        None => {}
                    }
                    seen.insert(matched, &rule.name);
                }
            }
        }
    }
    unknown.sort();
    unknown.dedup();
    WrittenPolicy {
        text: out,
        unknown,
        has_objective,
    }
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
    if options.proxies == LimitedProxies::Sidecars {
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
    let target = match options.proxies {
        LimitedProxies::Sidecars if selects => {
            out.push_str("  selector:\n    matchLabels:\n");
            for (key, value) in &group.selector {
                write(out, &format!("      {}: {}\n", quoted(key), quoted(value)));
            }
            return;
        }
        LimitedProxies::Sidecars => (TargetKind::Namespace, group.namespace.as_str()),
        LimitedProxies::Waypoint => (TargetKind::Gateway, options.waypoint.as_str()),
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

/// Writes the objective at the top, for upstreams without their own. Returns whether there is one.
fn objective(
    out: &mut String,
    options: &MigrationOptions,
    own: &[(&DestinationRule, Option<KnownObjective>)],
) -> bool {
    comment(
        out,
        2,
        "Counts what it would shed, and sheds nothing: check these counts before `mode: enforce`.",
    );
    out.push_str("  mode: observe\n");
    let known = || own.iter().filter_map(|(_, found)| found.as_ref());
    let time = |target: &str| parse_duration(target).unwrap_or_default();
    let longest = known()
        .map(|found| found.target.as_str())
        .max_by_key(|target| time(target));
    let found = match (&options.fixed.latency, longest) {
        (Some(latency), _) => {
            comment(
                out,
                2,
                "A DestinationRule has no objective, which is the only setting that Tidegate needs: set what the services promise. A rule below may have its own.",
            );
            (latency.as_str(), QUANTILE)
        }
        (None, Some(longest)) => {
            comment(
                out,
                2,
                "For upstreams without an objective of their own: the loosest of those below.",
            );
            let quantile = known().map(|found| found.quantile).fold(QUANTILE, f64::min);
            (longest, quantile)
        }
        (None, None) => {
            comment(
                out,
                2,
                "No objective is known, and none is assumed: this policy is not valid until you set what the services promise.",
            );
            out.push_str("  # slo: {latency: {quantile: 0.99, target: ...}}\n");
            return false;
        }
    };
    let (target, quantile) = found;
    write(
        out,
        &format!(
            "  slo:\n    latency:\n      quantile: {quantile}\n      target: {}\n",
            quoted(target)
        ),
    );
    true
}

/// Writes the objective of one upstream, with its source.
fn own_objective(out: &mut String, found: &KnownObjective) {
    comment(out, 4, &found.source);
    write(
        out,
        &format!(
            "    slo:\n      latency:\n        quantile: {}\n        target: {}\n",
            found.quantile,
            quoted(&found.target)
        ),
    );
    if let Some(rate) = found.success_rate {
        write(out, &format!("      successRate: {rate}\n"));
    }
}

fn upstream(
    out: &mut String,
    rule: &DestinationRule,
    part: &RulePart,
    matched: &str,
    account: &CarriedSettings,
) {
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
    if let Some(name) = part.subset.as_ref().filter(|_| account.limit_max.is_some()) {
        comment(
            out,
            4,
            &format!(
                "The endpoints are those of the whole service: how many are in subset {name} is not known. If they are fewer, raise the bound by as much."
            ),
        );
    }
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
fn conditions(rule: &DestinationRule, part: &RulePart, proxies: LimitedProxies) -> String {
    let service = quoted(&rule.host);
    if part.port.is_none() && part.subset.is_none() {
        return format!("{{service: {service}}}");
    }
    let port = part
        .port
        .map_or_else(|| "*".to_owned(), |port| port.to_string());
    // Envoy's cluster names have the form direction|port|subset|host; a waypoint's subset is prefixed with the protocol.
    let cluster = match (proxies, &part.subset) {
        (LimitedProxies::Sidecars, Some(subset)) => format!("outbound|{port}|{subset}|*"),
        (LimitedProxies::Sidecars, None) => format!("outbound|{port}|*"),
        (LimitedProxies::Waypoint, Some(subset)) => {
            format!("inbound-vip|{port}|*/{subset}|*")
        }
        (LimitedProxies::Waypoint, None) => format!("inbound-vip|{port}|*"),
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

/// Writes `text` as comment lines, broken between words.
fn comment(out: &mut String, indent: usize, text: &str) {
    let lead = format!("{:indent$}#", "");
    let mut line = lead.clone();
    // Names of callers come from metrics, and may contain anything.
    for word in text.split_whitespace().map(plain) {
        let is_full = line.chars().count().saturating_add(word.chars().count()) >= WIDTH;
        if is_full && line != lead {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&lead);
        }
        line.push(' ');
        line.push_str(&word);
    }
    out.push_str(&line);
    out.push('\n');
}

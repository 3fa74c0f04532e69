//! Writes a policy as text, with comments.

mod commented;
mod objective;

use std::collections::BTreeMap;

use tidegate_core::config::Readable;

use super::carried::CarriedSettings;
use super::destination_rule::{DestinationRule, RulePart};
use super::known::HostKnowledge;
use super::{LimitedProxies, MigrationOptions, RuleGroup};
use crate::policy::{API_VERSION, KIND, TargetKind};
use commented::{comment, quoted, write};
use objective::{objective, own_objective};

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

//! Converts Istio's static limits to policies.
//!
//! A `DestinationRule` contains limits that each client's proxy enforces on its
//! own. When the topology changes, they are wrong: values that suit ten sidecars
//! throttle the one waypoint that replaces them. Here they become bounds per
//! endpoint, within which the limit is learned. A comment explains for every
//! field how it was carried over, or why not.
//!
//! Edge cases: a `DestinationRule` without limits gives no policy. Policies are not
//! merged when they are applied, so all rules for the same proxies become rules
//! of one policy. If a host occurs twice, the first rule is kept.

mod bounds;
mod carried;
mod counts;
mod destination_rule;
mod known;
mod pools;
mod traffic;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::config::ConfigError;

use crate::document::{TextPosition, documents};
use crate::policy::Problem;

pub use bounds::{EndpointBound, ProxyTopology};
pub use counts::read_counts;
use destination_rule::{API_GROUP, DestinationRule, KIND};
use known::HostKnowledge;
pub use known::{HostCounts, KnownObjective, MigrationSources};
pub use pools::{PoolBound, pool_bounds};

/// The quantile of an objective of which only the latency is known.
const QUANTILE: f64 = 0.99;

/// Which proxies enforce limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedProxies {
    /// Each client has its own.
    Sidecars,
    /// All clients share those of the waypoint.
    Waypoint,
}

/// Numbers for all hosts for which no other source has a number. `None` stays unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedNumbers {
    /// Endpoints.
    pub replicas: Option<u32>,
    /// Proxies of clients.
    pub clients: Option<u32>,
    /// Pods of the waypoint.
    pub waypoints: Option<u32>,
    /// The latency that 99 of 100 requests must meet, as a duration.
    pub latency: Option<String>,
}

/// Information that a `DestinationRule` does not contain.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationOptions {
    /// Which proxies enforce the limits.
    pub proxies: LimitedProxies,
    /// Name of the waypoint's Gateway.
    pub waypoint: String,
    /// Namespace of rules without one.
    pub namespace: String,
    /// Numbers for all hosts.
    pub fixed: FixedNumbers,
}

/// The result of a migration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Migration {
    /// Policies with comments, as YAML; empty if nothing was carried over.
    pub policies: String,
    /// Skipped documents, and why.
    pub notes: Vec<String>,
    /// Names of numbers that were needed and are unknown. They come from input and may contain any text.
    pub unknown: Vec<String>,
    /// Whether some policy has no objective, so that it is not valid yet.
    pub lacks_objective: bool,
    /// Errors in the other documents.
    pub problems: Vec<Problem>,
}

/// Converts the `DestinationRule`s in `texts`, each with its name, to policies.
pub fn migrate<'a>(
    texts: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    options: &MigrationOptions,
    sources: &MigrationSources<'_>,
) -> Migration {
    let known = HostKnowledge::new(sources, options);
    let mut done = Migration::default();
    let mut groups: BTreeMap<RuleGroup, Vec<DestinationRule>> = BTreeMap::new();
    for (source, bytes) in texts {
        let (found, malformed) = documents(bytes);
        for document in &found {
            let here = format!("{source}:{}", document.start());
            if !destination_rule::is_one(document.root()) {
                done.notes
                    .push(format!("{here}: not a {KIND} of {API_GROUP}, skipped"));
                continue;
            }
            match DestinationRule::read(document.root(), &options.namespace) {
                Ok(rule) if rule.has_limits() => {
                    let group = RuleGroup::of(&rule, options.proxies);
                    groups.entry(group).or_default().push(rule);
                }
                Ok(rule) => done.notes.push(format!(
                    "{here}: {KIND} {} has neither connectionPool nor outlierDetection, skipped",
                    rule.name
                )),
                Err(errors) => done.problems.extend(
                    errors
                        .iter()
                        .map(|error| problem(source, document.locate(error.path()), error)),
                ),
            }
        }
        done.problems.extend(malformed.map(|error| Problem {
            source: source.to_owned(),
            place: error.place,
            policy: None,
            path: "document".to_owned(),
            found: format!("malformed YAML ({})", error.reason),
            expected: format!("a {KIND}"),
        }));
    }
    let mut taken: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut texts: Vec<String> = Vec::new();
    for (group, rules) in &groups {
        let names = (1..).map(|number| group.name(rules, number));
        let free = |name: &String| taken.insert((&group.namespace, name.clone()));
        let name = names.into_iter().find(free).unwrap_or_default();
        let written = write::policy(&name, group, rules, options, &known);
        done.unknown.extend(written.unknown);
        done.lacks_objective |= !written.has_objective;
        texts.push(written.text);
    }
    done.policies = texts.join("---\n");
    done
}

fn problem(source: &str, place: TextPosition, error: &ConfigError) -> Problem {
    Problem {
        source: source.to_owned(),
        place,
        policy: None,
        path: error.path().to_owned(),
        found: error.found().to_owned(),
        expected: error.expected().to_owned(),
    }
}

/// Rules for the same proxies, which become one policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RuleGroup {
    namespace: String,
    /// The clients that the rules apply to; empty for a waypoint, which cannot select clients.
    selector: BTreeMap<String, String>,
}

impl RuleGroup {
    fn of(rule: &DestinationRule, proxies: LimitedProxies) -> Self {
        let selector = match proxies {
            LimitedProxies::Sidecars => rule.selector.clone(),
            LimitedProxies::Waypoint => BTreeMap::new(),
        };
        Self {
            namespace: rule.namespace.clone(),
            selector,
        }
    }

    /// A name for the policy of this group: the name of its only rule, or a common
    /// name; `number` distinguishes it from others in the namespace.
    fn name(&self, rules: &[DestinationRule], number: u32) -> String {
        let name = match rules {
            [only] => &only.name,
            _ => "destination-rules",
        };
        match number {
            1 => name.to_owned(),
            _ => format!("{name}-{number}"),
        }
    }
}

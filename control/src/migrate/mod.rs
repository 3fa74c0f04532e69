//! From Istio's static limits to a policy.
//!
//! A `DestinationRule` holds limits that every client's proxy keeps by itself.
//! As soon as the topology changes they are wrong: the values that suit ten
//! sidecars throttle the one waypoint that takes their place. Here they become
//! bounds per endpoint, within which the limit is learned, and every field is
//! accounted for in a comment: carried over, how, or why not.
//!
//! Edges: a `DestinationRule` without limits gives nothing; policies are not
//! merged when they are applied, so all rules for the same proxies become rules
//! of one policy; a host that stands twice keeps the first.

mod bounds;
mod carried;
mod destination_rule;
mod traffic;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::config::ConfigError;

use crate::document::{TextPosition, documents};
use crate::policy::Problem;

pub use bounds::{EndpointBound, ProxyTopology};
use destination_rule::{API_GROUP, DestinationRule, KIND};

/// What a `DestinationRule` does not say.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationOptions {
    /// Which proxies hold the limits, and how many.
    pub topology: ProxyTopology,
    /// Name of the waypoint's Gateway.
    pub waypoint: String,
    /// Namespace of rules that name none.
    pub namespace: String,
    /// The objective: time that 99 of 100 requests must keep, as a duration.
    pub latency: String,
}

/// What became of some texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Migration {
    /// Policies with comments, as YAML; empty if there was nothing to carry over.
    pub policies: String,
    /// Documents that were passed by, and why.
    pub notes: Vec<String>,
    /// What is wrong with the rest.
    pub problems: Vec<Problem>,
}

/// Turns the `DestinationRule`s in `texts`, each with its name, into policies.
pub fn migrate<'a>(
    texts: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    options: &MigrationOptions,
) -> Migration {
    let mut done = Migration::default();
    let mut groups: BTreeMap<Group, Vec<DestinationRule>> = BTreeMap::new();
    for (source, bytes) in texts {
        let (found, malformed) = documents(bytes);
        for document in &found {
            let here = format!("{source}:{}", document.start());
            if !destination_rule::is_one(document.root()) {
                done.notes
                    .push(format!("{here}: no {KIND} of {API_GROUP}, passed by"));
                continue;
            }
            match DestinationRule::read(document.root(), &options.namespace) {
                Ok(rule) if rule.has_limits() => {
                    let group = Group::of(&rule, &options.topology);
                    groups.entry(group).or_default().push(rule);
                }
                Ok(rule) => done.notes.push(format!(
                    "{here}: {KIND} {} has neither connectionPool nor outlierDetection, passed by",
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
        texts.push(write::policy(&name, group, rules, options));
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

/// Rules for the same proxies: they go into one policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    namespace: String,
    /// The clients that the rules are for; a waypoint knows no such choice.
    selector: BTreeMap<String, String>,
}

impl Group {
    fn of(rule: &DestinationRule, topology: &ProxyTopology) -> Self {
        let selector = match topology {
            ProxyTopology::Sidecars { .. } => rule.selector.clone(),
            ProxyTopology::Waypoint { .. } => BTreeMap::new(),
        };
        Self {
            namespace: rule.namespace.clone(),
            selector,
        }
    }

    /// What the policy of this group may be called: that of the only rule, or
    /// a name for several; `number` tells it from others in the namespace.
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

//! Recommendations as policies, with the reasons as comments.
//!
//! With sidecars the caller's proxy decides, so each namespace with callers gets a policy with rules for the upstreams
//! that they call. A waypoint decides for all callers, so each namespace with upstreams gets a policy. Where the metrics
//! name no namespaces, one policy applies to all standalone proxies.
//!
//! Edge cases: names come from metrics. A name that cannot be a namespace gets no policy, and a note says so.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_advise::recommend::{
    CallerCriticality, UpstreamAdvice, plugin_configuration, upstreams_beyond_rules,
};
use tidegate_core::Criticality;
use tidegate_core::config::schema::MAX_RULES;
use tidegate_graph::output::plain;

use crate::document::yaml;
use crate::policy::{API_VERSION, KIND, TargetKind, is_label};

/// Name of the policies.
const NAME: &str = "recommended";
/// Maximum width of a comment line, in characters.
const WIDTH: usize = 100;

/// Which proxies decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdvicePlacement {
    /// The callers' proxies.
    Callers,
    /// The waypoint with this name in the upstream's namespace.
    Waypoint(String),
}

/// Policies as text, and what is missing from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyTexts {
    /// YAML; empty if there is no policy.
    pub text: String,
    /// What has no policy, and why.
    pub notes: Vec<String>,
}

/// The policies for all recommendations, in mode `observe`.
#[must_use]
pub fn policy_texts(advice: &[UpstreamAdvice<'_>], placement: &AdvicePlacement) -> PolicyTexts {
    let mut done = PolicyTexts::default();
    let mut by_namespace: BTreeMap<&str, Vec<&UpstreamAdvice<'_>>> = BTreeMap::new();
    for found in advice {
        let name = plain(&found.upstream.name);
        match (&found.objective, &found.upstream.target) {
            (Err(reason), _) => {
                done.notes.push(format!("{name}: no objective: {reason}"));
                continue;
            }
            (Ok(_), Err(reason)) => {
                done.notes
                    .push(plain(&format!("{name}: no rule: {reason}")));
                continue;
            }
            (Ok(_), Ok(_)) => {}
        }
        let mut namespaces: Vec<&str> = found
            .upstream
            .calls
            .iter()
            .map(|call| match placement {
                AdvicePlacement::Callers => call.caller.namespace.as_str(),
                AdvicePlacement::Waypoint(_) => call.callee.namespace.as_str(),
            })
            .collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        for namespace in namespaces {
            by_namespace.entry(namespace).or_default().push(found);
        }
    }
    let mut texts = Vec::new();
    for (namespace, found) in by_namespace {
        if !namespace.is_empty() && !is_label(namespace) {
            done.notes.push(format!(
                "{}: no policy: expected the name of a namespace",
                plain(namespace)
            ));
            continue;
        }
        texts.extend(policy(namespace, &found, placement));
        done.notes.extend(left_out(namespace, &found));
    }
    done.text = texts.join("---\n");
    done
}

/// A note on how many upstreams have no rule in a configuration; `None` if all have one. `whose` names the configuration.
#[must_use]
pub fn left_out(whose: &str, advice: &[&UpstreamAdvice<'_>]) -> Option<String> {
    let count = upstreams_beyond_rules(advice);
    let whose = if whose.is_empty() {
        "all proxies"
    } else {
        whose
    };
    (count > 0).then(|| {
        format!(
            "{}: no rule for {count} upstreams with the fewest requests, because a configuration has at most {MAX_RULES} rules: they get the objective at the top",
            plain(whose)
        )
    })
}

fn policy(
    namespace: &str,
    advice: &[&UpstreamAdvice<'_>],
    placement: &AdvicePlacement,
) -> Option<String> {
    let criticality = criticality(namespace, advice, placement);
    let Value::Object(mut spec) = plugin_configuration(advice, criticality)? else {
        return None;
    };
    let target = |kind: TargetKind, name: &str| json!([{"group": kind.group(), "kind": kind.name(), "name": name}]);
    let mut metadata = json!({"name": NAME});
    if namespace.is_empty() {
        spec.insert("proxies".to_owned(), json!([{"id": "*"}]));
    } else {
        let targets = match placement {
            AdvicePlacement::Callers => target(TargetKind::Namespace, namespace),
            AdvicePlacement::Waypoint(name) => target(TargetKind::Gateway, name),
        };
        spec.insert("targetRefs".to_owned(), targets);
        metadata = json!({"name": NAME, "namespace": namespace});
    }
    let mut out = String::new();
    comment(
        &mut out,
        "Recommended by tidegate from observed traffic. It counts what it would shed, and sheds nothing: check these counts before mode enforce.",
    );
    comment(
        &mut out,
        "The objective at the top is for upstreams without a rule: the loosest of all.",
    );
    let is_decided = |caller: &CallerCriticality<'_>| {
        *placement != AdvicePlacement::Callers || caller.caller.namespace == namespace
    };
    for found in advice {
        reasons(&mut out, found, is_decided);
    }
    let document =
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec});
    out.push_str(&yaml(&document));
    Some(out)
}

/// The criticality of requests from a namespace's callers: the highest of any caller.
fn criticality(
    namespace: &str,
    advice: &[&UpstreamAdvice<'_>],
    placement: &AdvicePlacement,
) -> Criticality {
    let callers = advice.iter().flat_map(|found| &found.callers);
    callers
        .filter(|caller| {
            *placement != AdvicePlacement::Callers || caller.caller.namespace == namespace
        })
        .map(|caller| caller.criticality)
        .max()
        .unwrap_or(Criticality::Critical)
}

/// Writes the reasons for a recommendation, with the criticality of the callers that the policy applies to.
fn reasons(
    out: &mut String,
    advice: &UpstreamAdvice<'_>,
    is_decided: impl Fn(&CallerCriticality<'_>) -> bool,
) {
    let Ok(objective) = &advice.objective else {
        return;
    };
    let sentences = objective.reasoning().join(" ");
    comment(out, &format!("{}: {sentences}", advice.upstream.name));
    if let Some(hint) = &advice.chain {
        comment(out, &format!("- {hint}."));
    }
    for caller in advice.callers.iter().filter(|caller| is_decided(caller)) {
        comment(
            out,
            &format!(
                "- requests of {} are {}: {}.",
                caller.caller,
                caller.criticality.name(),
                caller.reason
            ),
        );
    }
}

/// Writes `text` as comment lines, broken between words. Nothing in the text can end a line.
fn comment(out: &mut String, text: &str) {
    let mut line = "#".to_owned();
    for word in text.split(' ').map(plain) {
        let is_full = line.chars().count().saturating_add(word.chars().count()) >= WIDTH;
        if is_full && line.len() > 1 {
            out.push_str(&line);
            out.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(&word);
    }
    out.push_str(&line);
    out.push('\n');
}

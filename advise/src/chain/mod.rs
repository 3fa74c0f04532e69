//! Checks along chains of calls: settings that are valid alone, and wrong together.
//!
//! The graph says who calls whom. The settings say how long each caller waits, how often it tries, and what policies promise.
//!
//! Edges: only settings that are given are checked. Envoy's and Istio's defaults (two retries of requests that reached no service,
//! no timeout) are not findings.

mod finding;
mod hops;
mod policies;
mod routes;
mod settings;

use tidegate_graph::BuiltGraph;

use crate::observed::{ObservedUpstream, observed_upstreams};

pub use finding::{ChainFinding, FindingCode, FindingEntry, FindingSeverity, FindingsDocument};
use hops::Hops;
pub use settings::{
    LimitAbovePool, PolicyOverlap, PolicyTerms, RouteTerms, SettingOrigin, StaticPool,
    qualified_host,
};

/// Most services of a cycle that a finding names.
const MAX_NAMED: usize = 10;

/// The settings to check.
#[derive(Clone, Copy, Debug)]
pub struct ChainSettings<'a> {
    /// Timeouts and retries.
    pub routes: &'a [RouteTerms],
    /// Static pools.
    pub pools: &'a [StaticPool],
    /// Policies that compete.
    pub overlaps: &'a [PolicyOverlap],
}

/// Checks a graph and settings; the worst findings first. `policies` returns what policies require for an upstream.
#[must_use]
pub fn analyze(
    built: &BuiltGraph,
    settings: ChainSettings<'_>,
    policies: impl Fn(&ObservedUpstream<'_>) -> Vec<PolicyTerms>,
) -> Vec<ChainFinding> {
    let hops = Hops::of(&built.graph, settings.routes);
    let mut findings = routes::own_timeouts(settings.routes);
    findings.extend(routes::callers(&hops));
    findings.extend(routes::storms(&hops));
    findings.extend(cycles(&hops));
    findings.extend(policies::overlaps(settings.overlaps));
    for upstream in observed_upstreams(&built.graph) {
        let terms = policies(&upstream);
        findings.extend(policies::of_upstream(
            &upstream,
            built.observed,
            &terms,
            (settings.routes, settings.pools),
        ));
    }
    findings.sort_by(|a, b| {
        b.severity
            .cmp(&a.severity)
            .then_with(|| (a.code, &a.object, &a.message).cmp(&(b.code, &b.object, &b.message)))
    });
    findings.dedup();
    findings
}

fn cycles(hops: &Hops<'_>) -> Vec<ChainFinding> {
    hops.circles
        .iter()
        .map(|services| {
            let mut names: Vec<String> = services.iter().map(|index| hops.name(*index)).collect();
            names.sort();
            let more = names.len().saturating_sub(MAX_NAMED);
            names.truncate(MAX_NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            ChainFinding::new(
                FindingSeverity::Warning,
                FindingCode::CallCycle,
                names.first().cloned().unwrap_or_default(),
                None,
                format!("calls form a cycle: {}{more}", names.join(", ")),
            )
        })
        .collect()
}

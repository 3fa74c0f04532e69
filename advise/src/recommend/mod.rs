//! Derives an objective for each upstream from observations.
//!
//! - The quantile is the highest one that the samples support: ten of them must lie beyond it, so that it does not
//!   depend on one or two. That is the 99th percentile from 1,000 samples on, the 95th from 200, else the median.
//! - The latency target is that quantile times a margin, rounded up to two figures.
//! - The success rate leaves room for the failures of the window, at the upper end of their confidence interval, times the same
//!   margin.
//! - The mode is always `observe`.
//!
//! A rule of a policy applies to all callers of an upstream, and quantiles cannot be added. So the caller for which the
//! upstream is slowest sets the target; failures are counts and are added.
//!
//! Edges: a caller whose observations are in doubt is left out. If none is left, there is a [reason](AdviceRefusal) instead of an
//! objective.

mod call;
mod chain_rule;
mod criticality;
mod document;
mod objective;
mod reach;
mod reasoning;
mod refusal;

use tidegate_graph::{BuiltGraph, VertexKey};

use crate::observed::{ObservedUpstream, observed_upstreams};

pub use chain_rule::ChainHint;
pub use criticality::{CallerCriticality, Entries, unknown_entries};
pub use document::{
    AdviceDocument, AdviceEntry, ChainEntry, InForceEntry, advice_document, advice_schema,
    plugin_configuration, rule_of, upstreams_beyond_rules,
};
pub use objective::{ObjectiveBounds, ObjectiveEvidence, RecommendedObjective};
pub use reach::{ObjectiveInForce, ReachVerdict, reach};
pub use refusal::AdviceRefusal;

/// What the operator chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviceTerms {
    /// Factor by which latency and failures may exceed those of the window; from 1 to [`Self::MAX_MARGIN`].
    pub margin: f64,
    /// Where requests come from.
    pub entries: Entries,
}

impl AdviceTerms {
    /// Highest margin. A looser objective would count requests as good that take several times as long as they do now.
    pub const MAX_MARGIN: f64 = 3.0;
}

impl Default for AdviceTerms {
    /// More than the difference between two days, and less than a queue in front of the upstream adds.
    fn default() -> Self {
        Self {
            margin: 1.5,
            entries: Entries::Guessed,
        }
    }
}

/// The advice for one upstream.
#[derive(Clone, Debug)]
pub struct UpstreamAdvice<'a> {
    /// The upstream.
    pub upstream: ObservedUpstream<'a>,
    /// The objective, or why there is none.
    pub objective: Result<RecommendedObjective, AdviceRefusal>,
    /// How important the requests of each caller are.
    pub callers: Vec<CallerCriticality<'a>>,
    /// A longer target that follows from that of a caller, if the caller needs the upstream.
    pub chain: Option<ChainHint>,
}

/// Advice for all upstreams of a graph, by name.
#[must_use]
pub fn recommend<'a>(built: &'a BuiltGraph, terms: &AdviceTerms) -> Vec<UpstreamAdvice<'a>> {
    let reached = criticality::reached(&built.graph, &terms.entries);
    let mut advice: Vec<UpstreamAdvice<'a>> = observed_upstreams(&built.graph)
        .into_iter()
        .map(|upstream| {
            let mut callers: Vec<&VertexKey> =
                upstream.calls.iter().map(|call| call.caller).collect();
            callers.dedup();
            UpstreamAdvice {
                objective: objective::objective(&upstream, built.observed, terms.margin),
                callers: callers
                    .into_iter()
                    .map(|caller| criticality::of(caller, &reached))
                    .collect(),
                upstream,
                chain: None,
            }
        })
        .collect();
    chain_rule::note_chains(&built.graph, &mut advice);
    advice
}

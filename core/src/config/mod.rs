//! The configuration: one JSON document, checked as a whole.
//!
//! The document says what is wanted (an objective), not how to get there, and
//! only the objective has no default. Reading goes from bytes to a tree
//! (`document`), from the tree to checked types (the other files), and
//! collects every error on the way (`errors`): a configuration is either
//! complete and consistent, or rejected with the full list. Ranges and defaults
//! stand in one table ([`schema`]), from which the reference is generated
//! ([`mod@reference`]).
//!
//! A document that carries a configuration among other things (a policy in
//! Kubernetes) is read with the same tools: [`Node`], [`Section`] and
//! [`Config::read`], so that one list of errors covers all of it.
//!
//! Edges: no bytes make it panic; size, depth, number of values, of rules and
//! of errors are bounded.

mod choices;
mod criticality;
mod document;
mod duration;
mod errors;
mod examples;
mod fields;
mod guards;
mod ignore;
mod kinds;
mod number_set;
mod overload;
mod path;
mod pattern;
mod policy;
mod reader;
pub mod reference;
pub mod schema;
mod shed;
mod typed;
mod typo;
mod upstreams;

pub use choices::{KeyBy, Mode, Reply, Stance, Until};
pub use criticality::{CriticalityConfig, CriticalityInputs, CriticalityNeeds};
pub use document::{MAX_DOCUMENT_BYTES, MAX_VALUES, Node};
pub use duration::{Readable, parse_duration};
pub use errors::{ConfigError, ConfigErrors};
pub use examples::{FULL_EXAMPLE, MINIMAL_EXAMPLE};
pub use guards::{BreakerConfig, LimitConfig};
pub use ignore::Ignore;
pub use kinds::Choice;
pub use overload::OverloadConfig;
pub use path::{Path, PathStep};
pub use pattern::Pattern;
pub use policy::{Policy, Slo};
pub use reader::Section;
pub use shed::ShedConfig;
pub use upstreams::{Rule, RuleIndex, UpstreamMatch, UpstreamName};

/// A configuration: complete, consistent, immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    enabled: bool,
    policy: Policy,
    rules: Vec<Rule>,
    criticality: CriticalityConfig,
    ignore: Ignore,
    max_upstreams: u32,
    max_destinations: u32,
}

impl Config {
    /// Reads a document.
    ///
    /// # Errors
    /// Everything wrong with it, each with path, value and what was expected.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ConfigErrors> {
        Section::read_document(&Node::parse(bytes)?, Self::read)
    }

    /// Reads a configuration out of a section that may hold more than it. It
    /// counts only if no error was collected.
    pub fn read(s: &mut Section<'_>) -> Self {
        let enabled = s.flag(schema::ENABLED, None);
        let policy = Policy::read(s, None);
        Self {
            enabled,
            rules: Rule::read_all(s, &policy),
            policy,
            criticality: s.object("criticality", CriticalityConfig::read),
            ignore: s.object("ignore", Ignore::read),
            max_upstreams: s.count(schema::MAX_UPSTREAMS, None),
            max_destinations: s.count(schema::MAX_DESTINATIONS, None),
        }
    }

    /// The kill switch: `false` passes every request and counts nothing.
    #[must_use]
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    /// The policy of upstreams that no rule matches.
    #[must_use]
    pub const fn default_policy(&self) -> &Policy {
        &self.policy
    }

    /// The rules, in the order in which they are tried.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Where a request's criticality comes from.
    #[must_use]
    pub const fn criticality(&self) -> &CriticalityConfig {
        &self.criticality
    }

    /// Which requests are passed by.
    #[must_use]
    pub const fn ignore(&self) -> &Ignore {
        &self.ignore
    }

    /// Most upstreams with a state of their own, `1..=10_000`.
    #[must_use]
    pub const fn max_upstreams(&self) -> u32 {
        self.max_upstreams
    }

    /// Most destinations that a worker keeps a state for, `1..=10_000`.
    #[must_use]
    pub const fn max_destinations(&self) -> u32 {
        self.max_destinations
    }

    /// The policy of an upstream and where it stands: the first rule that
    /// matches, else the top level. Linear in the number of rules.
    #[must_use]
    pub fn policy_for(&self, upstream: &UpstreamName<'_>) -> (RuleIndex, &Policy) {
        let mut rules = self.rules.iter().enumerate();
        rules
            .find(|(_, rule)| rule.upstream().matches(upstream))
            .map_or((RuleIndex::TopLevel, &self.policy), |(index, rule)| {
                (RuleIndex::Rule(index), rule.policy())
            })
    }

    /// The policy at a place that [`Self::policy_for`] gave; the top level's
    /// for a place that this configuration does not have.
    #[must_use]
    pub fn policy(&self, index: RuleIndex) -> &Policy {
        match index {
            RuleIndex::TopLevel => &self.policy,
            RuleIndex::Rule(index) => self.rules.get(index).map_or(&self.policy, Rule::policy),
        }
    }

    /// Whether any rule looks at the route's name: else it need not be read.
    #[must_use]
    pub fn needs_route(&self) -> bool {
        self.rules.iter().any(|rule| rule.upstream().needs_route())
    }
}

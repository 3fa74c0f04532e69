//! The configuration: one JSON document, checked as a whole.
//!
//! The document says what is wanted (an objective), not how to reach it. Only
//! the objective has no default. Reading goes from bytes to a tree (`document`)
//! and from the tree to checked types (the other files), and collects all
//! errors (`errors`). A configuration is either complete and consistent, or
//! rejected with the full list of errors. Ranges and defaults are in one table
//! ([`schema`]). The reference is generated from it ([`mod@reference`]).
//!
//! Some documents have a configuration and other things, such as a policy in
//! Kubernetes. They are read with the same tools: [`Node`], [`Section`] and
//! [`Config::read`]. So one list of errors covers the whole document.
//!
//! Edges: no input causes a panic. Size, depth, and the numbers of values, rules
//! and errors are bounded.

mod choices;
mod criticality;
mod deadline;
mod digest;
mod document;
mod duration;
mod errors;
mod examples;
mod fields;
mod guards;
mod ignore;
mod kinds;
mod native;
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
pub use deadline::DeadlineConfig;
pub use document::{MAX_DOCUMENT_BYTES, MAX_VALUES, Node};
pub use duration::{Readable, parse_duration};
pub use errors::{ConfigError, ConfigErrors};
pub use examples::{FULL_EXAMPLE, MINIMAL_EXAMPLE};
pub use guards::{BreakerConfig, LimitConfig};
pub use ignore::Ignore;
pub use kinds::Choice;
pub use native::{LoadReports, NATIVE_FIELDS, NativeOptions, SnapshotOptions};
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
    deadline: DeadlineConfig,
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

    /// Reads a document, and works out the digest by which metrics name it.
    ///
    /// # Errors
    /// As [`Config::from_json`].
    pub fn named_from_json(bytes: &[u8]) -> Result<(Self, u64), ConfigErrors> {
        let document = Node::parse(bytes)?;
        let config = Section::read_document(&document, Self::read)?;
        Ok((config, document.digest()))
    }

    /// Reads a document for the native module, which has options of its own, and works out its digest.
    ///
    /// # Errors
    /// As [`Config::from_json`].
    pub fn native_from_json(bytes: &[u8]) -> Result<(Self, NativeOptions, u64), ConfigErrors> {
        let document = Node::parse(bytes)?;
        let (config, options) = Section::read_document(&document, |s| {
            (Self::read_shared(s), NativeOptions::read(s))
        })?;
        Ok((config, options, document.digest()))
    }

    /// Reads a configuration from a section that may have other keys too. The
    /// result is valid only if no error was collected.
    pub fn read(s: &mut Section<'_>) -> Self {
        let config = Self::read_shared(s);
        NativeOptions::reject(s);
        config
    }

    /// Reads what all hosts have in common.
    fn read_shared(s: &mut Section<'_>) -> Self {
        let enabled = s.flag(schema::ENABLED, None);
        let policy = Policy::read(s, None);
        Self {
            enabled,
            rules: Rule::read_all(s, &policy),
            policy,
            criticality: s.object("criticality", CriticalityConfig::read),
            deadline: s.object("deadline", DeadlineConfig::read),
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

    /// Where callers say how long they wait.
    #[must_use]
    pub const fn deadline(&self) -> &DeadlineConfig {
        &self.deadline
    }

    /// Which requests are exempt.
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

    /// The policy of an upstream and its place: the first rule that matches, or
    /// else the top level. The time is linear in the number of rules.
    #[must_use]
    pub fn policy_for(&self, upstream: &UpstreamName<'_>) -> (RuleIndex, &Policy) {
        let mut rules = self.rules.iter().enumerate();
        rules
            .find(|(_, rule)| rule.upstream().matches(upstream))
            .map_or((RuleIndex::TopLevel, &self.policy), |(index, rule)| {
                (RuleIndex::Rule(index), rule.policy())
            })
    }

    /// The policy at a place from [`Self::policy_for`]. If this configuration does
    /// not have that place, the policy of the top level.
    #[must_use]
    pub fn policy(&self, index: RuleIndex) -> &Policy {
        match index {
            RuleIndex::TopLevel => &self.policy,
            RuleIndex::Rule(index) => self.rules.get(index).map_or(&self.policy, Rule::policy),
        }
    }

    /// Whether any rule uses the route's name. If not, it need not be read.
    #[must_use]
    pub fn needs_route(&self) -> bool {
        self.rules.iter().any(|rule| rule.upstream().needs_route())
    }
}

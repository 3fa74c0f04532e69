//! What a person wants: objectives, and the proxies they are for.
//!
//! A `BreakerPolicy` is one document with two parts. The targets say which
//! proxies it is for; everything else in `spec` is the filter's configuration,
//! key for key, and core is its judge. A [`Policy`] exists only if both parts
//! are sound.
//!
//! Edges: names are unique within [`Policies`]; a policy that targets
//! Kubernetes objects is sound in a file too, but is for no standalone proxy.

mod contest;
mod difference;
mod name;
mod precedence;
mod problem;
mod proxies;
mod read;
mod read_targets;
mod set;
mod targets;

pub use contest::{Contest, Extent, contests};
pub use difference::{ChangedValue, Difference, differences};
pub use name::PolicyName;
pub use precedence::Claim;
pub use problem::{Gathered, Problem, gather};
pub use proxies::{Grain, ProxyMatch, Specificity};
pub(crate) use read::is_name;
pub use set::Policies;
pub use targets::{TargetKind, TargetRef, Targets};

use serde_json::{Map, Value};
use tidegate_core::config::{Config, ConfigErrors};

/// `apiVersion` of the documents that are read.
pub const API_VERSION: &str = "tidegate.dev/v1alpha1";

/// `kind` of the documents that are read.
pub const KIND: &str = "BreakerPolicy";

/// The keys of `spec` that say which proxies a policy is for; all others are
/// the filter's configuration.
pub const TARGET_KEYS: [&str; 3] = ["targetRefs", "selector", "proxies"];

/// Most entries in `targetRefs`: what Istio takes in one of its own.
pub const MAX_TARGETS: usize = 16;

/// A checked policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    name: PolicyName,
    created: Option<jiff::Timestamp>,
    targets: Targets,
    document: Map<String, Value>,
    config: Config,
}

impl Policy {
    /// A policy of parts that are read already; `document` is the `spec`
    /// without its targets, `created` when it was first seen (`None`: unknown,
    /// which counts as the youngest).
    ///
    /// # Errors
    /// Everything that is wrong with `document` as the filter's configuration.
    pub fn new(
        name: PolicyName,
        created: Option<jiff::Timestamp>,
        targets: Targets,
        document: Map<String, Value>,
    ) -> Result<Self, ConfigErrors> {
        let text = crate::render::canonical(&document);
        let config = Config::from_json(text.as_bytes())?;
        Ok(Self {
            name,
            created,
            targets,
            document,
            config,
        })
    }

    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &PolicyName {
        &self.name
    }

    /// When it was created, where that is known.
    #[must_use]
    pub const fn created(&self) -> Option<jiff::Timestamp> {
        self.created
    }

    /// What decides among policies that fit equally well: the smaller wins. One
    /// without a time of creation counts as the youngest.
    #[must_use]
    pub fn age_and_name(&self) -> impl Ord + '_ {
        (self.created.is_none(), self.created, &self.name)
    }

    /// Which proxies it is for.
    #[must_use]
    pub const fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The filter's configuration as it was written.
    #[must_use]
    pub const fn document(&self) -> &Map<String, Value> {
        &self.document
    }

    /// The filter's configuration as the filter will read it.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }
}

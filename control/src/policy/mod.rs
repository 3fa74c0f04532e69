//! Policies: objectives, and the proxies they apply to.
//!
//! A `BreakerPolicy` is one document with two parts. The targets say which
//! proxies it applies to; everything else in `spec` is the filter's
//! configuration, key for key, which core checks. A [`CheckedPolicy`] exists
//! only if both parts are valid.
//!
//! Edge cases: names are unique within [`Policies`]. A policy that targets
//! Kubernetes objects is also valid in a file, but applies to no standalone proxy.

mod contest;
mod module_version;
mod name;
mod precedence;
mod problem;
mod proxies;
mod proxy;
mod read;
mod read_targets;
mod set;
mod targets;

pub use contest::{Contest, ContestExtent, contests};
pub use module_version::{MODULE_EXPECTED, MODULE_KEY, is_module_name};
pub use name::PolicyName;
pub(crate) use name::{is_label, is_name};
pub use precedence::PolicyClaim;
pub use problem::{Gathered, Problem, gather};
pub use proxies::{Grain, ProxyMatch, Specificity};
pub use proxy::ProxyNode;
pub use set::Policies;
pub use targets::{PolicyTargets, TargetKind, TargetRef};

use serde_json::{Map, Value};
use tidegate_core::config::{Config, ConfigErrors};

/// `apiVersion` of the documents.
pub const API_VERSION: &str = "tidegate.dev/v1alpha1";

/// `kind` of the documents.
pub const KIND: &str = "BreakerPolicy";

/// The keys of `spec` that say which proxies a policy applies to; all others are
/// the filter's configuration.
pub const TARGET_KEYS: [&str; 3] = ["targetRefs", "selector", "proxies"];

/// Most entries in `targetRefs`: the bound of Istio's own objects.
pub const MAX_TARGETS: usize = 16;

/// A checked policy.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedPolicy {
    name: PolicyName,
    created: Option<jiff::Timestamp>,
    targets: PolicyTargets,
    module: Option<String>,
    document: Map<String, Value>,
    config: Config,
}

impl CheckedPolicy {
    /// A policy from parts that were read already. `document` is the `spec`
    /// without its targets; `created` is the time of creation (`None`: unknown,
    /// which counts as the youngest).
    ///
    /// # Errors
    /// All errors in `document` as the filter's configuration.
    pub fn new(
        name: PolicyName,
        created: Option<jiff::Timestamp>,
        targets: PolicyTargets,
        document: Map<String, Value>,
    ) -> Result<Self, ConfigErrors> {
        let text = crate::document::canonical(&document);
        let config = Config::from_json(text.as_bytes())?;
        Ok(Self {
            name,
            created,
            targets,
            module: None,
            document,
            config,
        })
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &PolicyName {
        &self.name
    }

    /// When it was created, if known.
    #[must_use]
    pub const fn created(&self) -> Option<jiff::Timestamp> {
        self.created
    }

    /// Decides among policies that match equally well: the smaller value wins. A
    /// policy without a time of creation counts as the youngest.
    #[must_use]
    pub fn age_and_name(&self) -> impl Ord + '_ {
        (self.created.is_none(), self.created, &self.name)
    }

    /// The proxies it applies to.
    #[must_use]
    pub const fn targets(&self) -> &PolicyTargets {
        &self.targets
    }

    /// The version of the module that it names; `None`: its namespace's version, or the default.
    #[must_use]
    pub fn module(&self) -> Option<&str> {
        self.module.as_deref()
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

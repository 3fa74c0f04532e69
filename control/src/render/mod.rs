//! What a proxy is to run: policies and a proxy in, configuration out.
//!
//! One policy wins and its configuration is used as it is: policies are not
//! merged, so that what a proxy runs can be read in one place. The version is
//! a hash of the bytes: the same configuration has the same version on every
//! replica and after every restart, and is never pushed twice.
//!
//! Edges: a proxy that no policy matches gets [`UNMATCHED`], which observes.

mod canonical;
mod proxy;
mod version;

pub use canonical::canonical;
pub use proxy::Proxy;
pub use version::Version;

use std::sync::Arc;

use crate::policy::{Policies, Policy, PolicyName};

/// What a proxy runs that no policy matches: it sheds nothing, and counts what
/// would have been shed at an objective that a service misses only in trouble.
pub const UNMATCHED: &str =
    r#"{"mode":"observe","slo":{"latency":{"quantile":0.99,"target":"1s"}}}"#;

/// What a proxy is to run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The filter's configuration, canonical JSON.
    pub config: Arc<str>,
    /// Hash of the configuration.
    pub version: Version,
    /// The policy it comes from; `None`: no policy matches.
    pub policy: Option<PolicyName>,
    /// Policies that match as well and lost, the next in line first.
    pub overruled: Vec<PolicyName>,
}

/// What `proxy` is to run under `policies`.
#[must_use]
pub fn render(policies: &Policies, proxy: &Proxy) -> Rendered {
    let mut matching = policies.matching(proxy).into_iter();
    let Some(winner) = matching.next() else {
        return Rendered {
            config: Arc::from(UNMATCHED),
            version: Version::of(UNMATCHED),
            policy: None,
            overruled: Vec::new(),
        };
    };
    let (config, version) = plugin_config(winner);
    Rendered {
        config: Arc::from(config),
        version,
        policy: Some(winner.name().clone()),
        overruled: matching.map(|policy| policy.name().clone()).collect(),
    }
}

/// The configuration that proxies run under `policy`, and its version.
#[must_use]
pub fn plugin_config(policy: &Policy) -> (String, Version) {
    let config = canonical(policy.document());
    let version = Version::of(&config);
    (config, version)
}

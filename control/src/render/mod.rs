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
mod renderer;
mod version;

pub use canonical::canonical;
pub use proxy::Proxy;
pub use renderer::{Changes, Renderer};
pub use version::Version;

use std::sync::Arc;

use crate::policy::{Claim, Policies, Policy, PolicyName};

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
    let claims = policies.claims(proxy);
    let winner = claims
        .first()
        .and_then(|claim| policies.get(claim.policy()));
    let config = winner.map_or_else(PluginConfig::unmatched, |policy| PluginConfig::of(policy));
    config.won(&claims)
}

/// The configuration of a plugin and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginConfig {
    /// Canonical JSON.
    pub config: Arc<str>,
    /// Hash of it.
    pub version: Version,
}

impl PluginConfig {
    /// What proxies run under `policy`.
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        Self::from_text(&canonical(policy.document()))
    }

    /// What proxies run that no policy matches.
    #[must_use]
    pub fn unmatched() -> Self {
        Self::from_text(UNMATCHED)
    }

    fn from_text(config: &str) -> Self {
        Self {
            config: Arc::from(config),
            version: Version::of(config),
        }
    }

    /// This configuration, as that of the first of `claims`.
    fn won(self, claims: &[Claim]) -> Rendered {
        let mut names = claims.iter().map(|claim| claim.policy().clone());
        Rendered {
            config: self.config,
            version: self.version,
            policy: names.next(),
            overruled: names.collect(),
        }
    }
}

//! The configuration of a plugin, and which policy it comes from.

use std::sync::Arc;

use serde_json::Value;

use tidegate_core::config::Node;

use super::version::ConfigVersion;
use crate::document::canonical;
use crate::policy::{CheckedPolicy, Policies, PolicyClaim, PolicyName, ProxyNode};

/// The configuration of a proxy that no policy matches: it sheds nothing, and counts what it
/// would have shed for a loose objective, which a healthy service meets.
pub const UNMATCHED: &str =
    r#"{"mode":"observe","slo":{"latency":{"quantile":0.99,"target":"1s"}}}"#;

/// [`UNMATCHED`], while all policies are off.
const UNMATCHED_AND_OFF: &str =
    r#"{"enabled":false,"mode":"observe","slo":{"latency":{"quantile":0.99,"target":"1s"}}}"#;

/// The key of the filter's own switch.
const ENABLED: &str = "enabled";

/// What a proxy should run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The filter's configuration, canonical JSON.
    pub config: Arc<str>,
    /// Hash of the configuration.
    pub version: ConfigVersion,
    /// The policy it comes from; `None`: no policy matches.
    pub policy: Option<PolicyName>,
    /// Policies that match as well but lost, best match first.
    pub overruled: Vec<PolicyName>,
}

impl Rendered {
    /// The digest by which the filter's `tidegate_info` names the configuration.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&self.config)
    }
}

fn digest(config: &str) -> String {
    let node = Node::parse(config.as_bytes());
    node.map_or_else(|_| String::new(), |node| format!("{:016x}", node.digest()))
}

/// What `proxy` should run under `policies`.
#[must_use]
pub fn render(policies: &Policies, proxy: &ProxyNode) -> Rendered {
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
    /// Hash of the configuration.
    pub version: ConfigVersion,
}

impl PluginConfig {
    /// The configuration of proxies that `policy` wins.
    #[must_use]
    pub fn of(policy: &CheckedPolicy) -> Self {
        Self::from_text(&canonical(policy.document()))
    }

    /// The configuration of proxies that `policy` wins; with all policies off, one that lets every request pass.
    #[must_use]
    pub fn under(policy: &CheckedPolicy, is_off: bool) -> Self {
        if !is_off {
            return Self::of(policy);
        }
        let mut document = policy.document().clone();
        document.insert(ENABLED.to_owned(), Value::from(false));
        Self::from_text(&canonical(&document))
    }

    /// The configuration of proxies that no policy matches.
    #[must_use]
    pub fn unmatched() -> Self {
        Self::from_text(UNMATCHED)
    }

    /// The configuration of proxies that no policy matches, while all policies are off.
    #[must_use]
    pub fn unmatched_and_off() -> Self {
        Self::from_text(UNMATCHED_AND_OFF)
    }

    /// The digest by which the filter's `tidegate_info` names it.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&self.config)
    }

    fn from_text(config: &str) -> Self {
        Self {
            config: Arc::from(config),
            version: ConfigVersion::of(config),
        }
    }

    /// This configuration as the one of the first of `claims`.
    pub(super) fn won(self, claims: &[PolicyClaim]) -> Rendered {
        let mut names = claims.iter().map(|claim| claim.policy().clone());
        Rendered {
            config: self.config,
            version: self.version,
            policy: names.next(),
            overruled: names.collect(),
        }
    }
}

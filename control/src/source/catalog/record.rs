//! What status pages show of the policies in force.

use serde::Serialize;
use tidegate_core::config::{Config, RuleIndex};

use super::Catalog;
use crate::fleet::ClaimedPolicy;
use crate::policy::PolicyName;

/// What status pages show of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRecord {
    /// Its name.
    pub name: String,
    /// `files`, `rest` or `kubernetes`.
    pub source: &'static str,
    /// Version of its configuration.
    pub version: String,
    /// Digest of its configuration, by which the metrics of proxies name it (`tidegate_info`).
    pub config: String,
    /// Number of streams that it matches, whether it wins or not.
    pub proxies: usize,
    /// Number of streams whose proxies have acknowledged its configuration, and run it.
    pub current: usize,
    /// Whether it is on: `enabled: false` turns it off, and so does the switch for all policies.
    pub enabled: bool,
    /// Its mode at the top level, `observe` or `enforce`; rules for single upstreams may have another one.
    pub mode: &'static str,
}

impl Catalog {
    /// Every policy in force, for status pages.
    #[must_use]
    pub fn records(&self) -> Vec<PolicyRecord> {
        // Take the versions that are rendered already, so that showing them costs no rendering.
        let claims = self.fleet.claims();
        let is_off = self.shutoff.borrow().is_off();
        let inner = self.lock();
        let record = |(name, claimed): (PolicyName, ClaimedPolicy)| {
            let config = inner.policies.get(&name).map(|policy| policy.config());
            PolicyRecord {
                source: inner.source(&name),
                enabled: !is_off && config.is_some_and(Config::enabled),
                mode: config.map_or("", |config| {
                    config.policy(RuleIndex::TopLevel).mode().name()
                }),
                name: name.to_string(),
                version: claimed.version.to_string(),
                config: claimed.digest,
                proxies: claimed.streams,
                current: claimed.current,
            }
        };
        claims.into_iter().map(record).collect()
    }
}

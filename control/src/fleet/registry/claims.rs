//! How many streams each policy matches, and how many of them run it.

use std::collections::BTreeMap;

use super::ProxyFleet;
use crate::policy::PolicyName;
use crate::render::ConfigVersion;

/// A policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedPolicy {
    /// The version of its configuration.
    pub version: ConfigVersion,
    /// The digest by which the metrics of proxies name the configuration.
    pub digest: String,
    /// The streams that it matches, including those where another policy wins.
    pub streams: usize,
    /// The streams whose proxies have acknowledged its configuration, and run it.
    pub current: usize,
}

impl ProxyFleet {
    /// The policies in force, with the number of streams that they match and that are current.
    #[must_use]
    pub fn claims(&self) -> BTreeMap<PolicyName, ClaimedPolicy> {
        let inner = self.lock();
        let mut current: BTreeMap<&str, usize> = BTreeMap::new();
        for stream in inner.streams.values() {
            if let Some(policy) = stream
                .record
                .policy
                .as_deref()
                .filter(|_| stream.record.is_current())
            {
                *current.entry(policy).or_default() += 1;
            }
        }
        let names = inner.renderer.policies().iter().map(|policy| policy.name());
        let claim = |name: &PolicyName| {
            let config = inner.renderer.config(name)?;
            let policy = ClaimedPolicy {
                version: config.version.clone(),
                digest: config.digest(),
                streams: inner.renderer.claimed_by(name).count(),
                current: current
                    .get(name.to_string().as_str())
                    .copied()
                    .unwrap_or_default(),
            };
            Some((name.clone(), policy))
        };
        names.filter_map(claim).collect()
    }
}
